"""Choosing among candidates: all on the same folds, compared pair by pair (B3.7, B3.16, B5.9, B5.11, B8.4).

The folds divide the training rows; the test rows see the chosen one only. Preparation is learned anew in every fold.
The figures of many candidates on the same folds flatter the best of them: its test figures tell what to expect.

The interval of a difference is Student's t of the differences fold by fold, which share their rows: approximate, but
free of what makes a fold easy or hard for everyone.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field

from app.errors import InvalidData, ValiantError
from app.ml.candidates import Candidate
from app.ml.contract import Labels, Task, Vector
from app.ml.evaluation import Evaluation, evaluate
from app.ml.figures import MEASURES, fold_mean
from app.ml.fitting import fit_rows, judge
from app.ml.learners import EACH
from app.ml.material import Material
from app.ml.planning import TrainSpec, plan
from app.ml.progress import Stages
from app.ml.report import Figure
from app.ml.schema import TableColumn
from app.ml.splits import Split, holdout, kfold
from app.wire import Wire

USUAL = {
    Task.REGRESSION: "rmse",
    Task.CLASSIFICATION: "log_loss",
    Task.CLUSTERING: "quantisation_error",
    Task.PROJECTION: "reconstruction_error",
    Task.DENSITY: "log_density",
}
Q = "q"
"""The probability that chance alone makes χ² as large, of a fit of all training rows (B5.8)."""
TIE = 1e-9
"""Relative difference of two means below which neither is better."""


class Setting(Wire):
    pointer: str
    value: Any


class Tried(Wire):
    """One candidate and how it did."""

    algorithm: str
    settings: list[Setting] = Field(description="What sets it apart from the request.")
    rank: int | None = Field(None, description="From 1; absent where it could not be judged.")
    validation: Figure | None = Field(None, description="Mean over the folds.")
    train: Figure | None = Field(None, description="The same on the rows that were learned from: never a promise.")
    folds: list[float | None] = Field([], description="The measure, fold by fold.")
    behind: Figure | None = Field(
        None, description="How much worse than the first in rank, fold by fold, with the interval of the difference."
    )
    error: str | None = Field(None, description="Why it could not be judged.")


class Ranking(NamedTuple):
    measure: str
    tried: list[Tried]
    best: int
    """Place of the chosen one."""
    rests_on: str


class _Scores(NamedTuple):
    validation: Vector
    """(folds,) NaN where undefined."""
    train: Vector
    error: str | None = None

    @property
    def mean(self) -> float:
        return float(self.validation.mean()) if self.validation.size else np.nan


def rank(
    found: Sequence[Candidate],
    table: pa.Table,
    columns: Sequence[TableColumn],
    *,
    folds: int,
    measure: str | None,
    rule: Literal["best", "one_standard_error"],
    stages: Stages,
    share: float,
) -> Ranking:
    """Judge every candidate and choose one.

    folds: K. measure: a name of `MEASURES`, or Q. share: of the progress that is ours.
    rule: the best, ties going to the first; or the first whose mean is within the best one's standard error.
    Raises InvalidData if none can be judged.
    """
    first = found[0].spec
    material = Material.read(first, plan(first, columns, table.num_rows), table, columns)
    rng = np.random.Generator(np.random.PCG64(first.seed))
    rows = holdout(material.rows, first.validation.test_fraction, rng, material.target.codes).train
    codes = None if material.target.codes is None else material.target.codes[rows]
    splits = kfold(rows.size, folds, rng, codes)
    name = measure or USUAL[material.task]
    scores: list[_Scores] = []
    stages(0.0, f"candidate 1 of {len(found)}")
    works = [partial(_scores, material, candidate.spec, rows, splits, name) for candidate in found]
    for score in EACH.get()(_Scores, works):
        scores.append(score)
        stages(share * len(scores) / len(found), f"candidate {len(scores)} of {len(found)}", {name: score.mean})
    judges = "all" if name == Q else f"the same {len(splits)} folds of"
    told = f"{len(found)} candidates on {judges} {rows.size} training rows."
    return _ranked(found, scores, name, rule, told)


def _scores(material: Material, spec: TrainSpec, rows: Labels, splits: Sequence[Split], measure: str) -> _Scores:
    validation, train, seed = [], [], spec.seed
    try:
        material = material.of(spec)
        if measure == Q:
            return _Scores(np.array([_q(material, rows, seed)]), np.zeros(0))
        for split in splits:
            rng = np.random.Generator(np.random.PCG64(seed))
            fitted = fit_rows(material, rows[split.train], seed)
            validation.append(_value(judge(material, fitted, rows[split.test], rng), measure))
            train.append(_value(evaluate(fitted.learned, fitted.data, fitted.data, material.classes, rng), measure))
    except ValiantError as error:
        return _Scores(np.zeros(0), np.zeros(0), error.detail)
    return _Scores(np.array(validation), np.array(train))


def _q(material: Material, rows: Labels, seed: int) -> float:
    fitted, summary = fit_rows(material, rows, seed), material.algorithm.summary
    told = summary(material.params, fitted.fit.state) if summary else None
    value = told.get(Q) if isinstance(told, dict) else None
    if value is None:
        raise InvalidData("It has no goodness of fit Q: that takes a fit of known error, such as linear with sigma.")
    return float(value)


def _value(evaluation: Evaluation, measure: str) -> float:
    values = [figure.value for figure in evaluation.figures if figure.name == measure and figure.label is None]
    return np.nan if not values or values[0] is None else values[0]


def _ranked(found: Sequence[Candidate], scores: Sequence[_Scores], measure: str, rule: str, told: str) -> Ranking:
    better = 1 if measure == Q else MEASURES[measure].better
    cost = np.array([-better * score.mean for score in scores])
    if not np.isfinite(cost).any():
        errors = [score.error for score in scores if score.error]
        raise InvalidData(errors[0] if errors else f"No candidate has a defined {measure} here.")
    order = _order(cost)
    if rule == "one_standard_error":
        limit = cost[order[0]] + _standard_error(scores[order[0]].validation)
        chosen = int(np.flatnonzero(cost <= limit)[0])
        order = np.array([chosen, *(place for place in order if place != chosen)])
    best = int(order[0])
    ranks = {int(place): i + 1 for i, place in enumerate(order) if np.isfinite(cost[place])}
    tried = [
        Tried(
            algorithm=candidate.spec.algorithm.name,
            settings=[Setting(pointer=pointer, value=value) for pointer, value in candidate.settings.items()],
            rank=ranks.get(place),
            validation=_mean(measure, score.validation),
            train=_mean(measure, score.train),
            folds=[None if np.isnan(value) else value for value in score.validation.tolist()],
            behind=None if place == best else _behind(measure, better, scores[best], score),
            error=score.error or (None if np.isfinite(score.mean) else f"Its {measure} is undefined."),
        )
        for place, (candidate, score) in enumerate(zip(found, scores, strict=True))
    ]
    return Ranking(measure, tried, best, told)


def _behind(measure: str, better: int, best: _Scores, other: _Scores) -> Figure | None:
    if other.validation.shape != best.validation.shape:
        return None
    return _mean(f"{measure}_difference", better * (best.validation - other.validation))


def _order(cost: Vector) -> Labels:
    """Ascending; of costs that are equal but for rounding the first comes first, what is not a number last."""
    sorted_, order = np.sort(cost), np.argsort(cost, kind="stable")
    steps = np.diff(sorted_) > TIE * np.abs(sorted_[1:])
    group = np.concatenate(([0], np.cumsum(steps | np.isnan(sorted_[1:]))))
    return order[np.lexsort((order, group))]


def _standard_error(values: Vector) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def _mean(measure: str, values: Vector) -> Figure | None:
    return fold_mean(measure, values) if values.size and np.isfinite(values).all() else None
