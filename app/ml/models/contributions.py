"""Contributions of the columns of a request to the raw score of each row: Shapley values, which add up to it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import BodyTooLarge, NoContributions
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.labels import Class
from app.ml.models.background import MAX_CELLS
from app.ml.models.model import Model
from app.ml.models.players import players_of
from app.ml.models.sampled_contributions import estimate, evaluations
from app.ml.numerics.linear_models.column_sums import LinearScores
from app.ml.numerics.trees.path_contributions import ExplainedTrees, TreeScores
from app.ml.preparation.projected import Projected

CONTRIBUTIONS, INTERVENTIONAL = "contributions", "interventional_contributions"
"""Names by which a prediction includes them: by the model's own method, or, of trees, with training rows in place of
absent columns."""
TOLERANCE = 1e-9
"""Largest difference between the raw score and the sum of its parts, beside the size of these, or 1."""
MAX_COST, MAX_EVALUATIONS = 4e9, 4e5
"""Largest number of visits of nodes, and of predictions, for one request: about ten seconds."""


class Explained(Protocol):
    """Scores of a fit, ready to explain rows."""

    @property
    def mean(self) -> Vector: ...

    @property
    def cost(self) -> float: ...

    def contributions(self, x: Matrix, /) -> NDArray[np.float64]: ...


class Scores(Protocol):
    """Raw scores of a fit, as algorithms state them behind the query `contributions`."""

    @property
    def method(self) -> str: ...

    @property
    def unit(self) -> str: ...

    def raw(self, x: Matrix, /) -> Matrix: ...

    def explained(self, players: Labels, /) -> Explained: ...


class Contributions(NamedTuple):
    """Contributions of p columns to k scores of n rows."""

    method: str
    """path_dependent, interventional, linear, additive or permutations."""
    unit: str
    """Unit of the scores."""
    columns: tuple[str, ...]
    """(p,) names of the columns of the request; after them functions of several columns."""
    scores: tuple[Class | None, ...]
    """(k,) the class of each score, or the level of a quantile; None: the score is of a number."""
    base: Vector
    """(k,) scores that no column has moved."""
    raw: Matrix
    """(n, k) scores of the rows."""
    values: NDArray[np.float64]
    """(n, k, p); with the base they add up to the scores."""
    standard_errors: NDArray[np.float64] | None = None
    """(n, k, p); None: the contributions are exact."""

    def part(self, start: int, stop: int) -> "Contributions":
        """Those of these rows."""
        errors = None if self.standard_errors is None else self.standard_errors[start:stop]
        return self._replace(raw=self.raw[start:stop], values=self.values[start:stop], standard_errors=errors)


def method_in(names: Sequence[str]) -> str | None:
    """The name of contributions among those that a request includes; the first of both."""
    return next((name for name in names if name in {CONTRIBUTIONS, INTERVENTIONAL}), None)


def demand_contributions(model: Model, name: str = CONTRIBUTIONS) -> None:
    """Raises NoContributions for a model that has none of this name."""
    if model.background.rows is None:
        scores = _scores(model)
        if name == INTERVENTIONAL and isinstance(scores, TreeScores):
            raise NoContributions(
                "The version keeps no training rows: an earlier release trained it, or it is imported."
            )


def with_background(model: Model, table: pa.Table) -> Model:
    """The model with the raw rows of a table, where contributions may start from them."""
    if not (model.task.of_numbers or model.task.of_classes) or not model.inputs:
        return model
    try:
        closed = not isinstance(_scores(model), TreeScores)
    except NoContributions:
        closed = False
    if closed:
        return model
    raw = model.preparation.raw(table.slice(0, MAX_CELLS // len(model.inputs)))
    has_rows = isinstance(raw, np.ndarray) and len(raw)
    return replace(model, background=model.background._replace(rows=raw)) if has_rows else model


def _estimated(model: Model, rows: Matrix, raw: Matrix, max_evaluations: float) -> Contributions:
    cost = evaluations(*rows.shape)
    if len(raw) * cost > max_evaluations:
        detail = f"Contributions of {model.name} are estimated for at most {int(max_evaluations / cost)} rows"
        raise BodyTooLarge(f"{detail} in one request: a job of the kind predict takes any number.")
    estimated = estimate(model, rows, raw)
    _demand_sum(estimated.base, estimated.values, estimated.raw)
    unit, names = "target" if model.classes is None else "probability", tuple(column.name for column in model.inputs)
    scores = _named(model, len(estimated.base))
    return Contributions(
        "permutations", unit, names, scores, estimated.base, estimated.raw, estimated.values, estimated.standard_errors
    )


def contributions_of(model: Model, raw: Matrix, name: str = CONTRIBUTIONS, *, limited: bool = False) -> Contributions:
    """Contributions of this name for a raw matrix (n, p); limited: to rows that one request may have.

    Raises NoContributions, and BodyTooLarge for more rows.
    """
    rows = model.background.rows
    try:
        scores = _scores(model)
    except NoContributions:
        if rows is None:
            raise
        return _estimated(model, rows, raw, MAX_EVALUATIONS if limited else math.inf)
    players = players_of(model.preparation)
    explained = scores.explained(players.of_columns)
    method = scores.method
    if name == INTERVENTIONAL and isinstance(explained, ExplainedTrees) and rows is not None:
        explained, method = explained.from_background(model.preparation.matrix(rows)), "interventional"
    if limited and len(raw) * explained.cost > MAX_COST:
        most = int(MAX_COST / explained.cost)
        raise BodyTooLarge(f"Contributions of this model are computed for at most {most} rows in one request.")
    x = model.preparation.matrix(raw)
    parts, totals = explained.contributions(x), scores.raw(x)
    values = np.zeros((*parts.shape[:2], len(players.names)))
    values[:, :, : parts.shape[2]] = parts
    _demand_sum(explained.mean, values, totals)
    unit = scores.unit
    if unit == "target" and model.linearising != "none":
        unit = f"{model.linearising}(target)"
    named = getattr(scores, "levels", ()) or _named(model, totals.shape[1])
    return Contributions(method, unit, players.names, named, explained.mean, totals, values)


def _scores(model: Model) -> Scores:
    algorithm = model.algorithm
    if isinstance(model.preparation, Projected):
        raise NoContributions("Behind a projection the columns of a request have no contributions of their own.")
    if CONTRIBUTIONS in algorithm.queries:
        scores: Scores = algorithm.queries[CONTRIBUTIONS](model.params, model.state)
        return scores
    if algorithm.linear is None:
        raise NoContributions(
            f"Predictions of {model.name} have no closed form, and the version keeps no training rows."
        )
    if model.background.centre is None:
        raise NoContributions("An earlier release trained this version, without the means of its columns.")
    form: Any = algorithm.linear(model.state)
    unit = "target" if model.classes is None else "log_odds" if model.name == "logistic" else "score"
    return LinearScores(form, model.background.centre, unit if form.coef.shape[1] == 1 else "score")


def _named(model: Model, count: int) -> tuple[Class | None, ...]:
    """The class of each score: of two classes the second has the only one."""
    if model.classes is None:
        return (None,) * count
    if count == 1:
        return model.classes[-1:]
    if count != len(model.classes):
        raise NoContributions("Some classes had no training rows, so that the scores are of others.")
    return model.classes


def _demand_sum(base: Vector, values: NDArray[np.float64], raw: Matrix) -> None:
    """Raises NoContributions unless the parts add up to the scores."""
    with np.errstate(all="ignore"):
        size = np.maximum(1.0, np.abs(base) + np.abs(values).sum(axis=2))
        off = np.abs(base + values.sum(axis=2) - raw) / size
    if not (off <= TOLERANCE).all():  # nor NaN
        raise NoContributions(
            "The contributions of a row do not add up to its score, which is not finite or too large."
        )
