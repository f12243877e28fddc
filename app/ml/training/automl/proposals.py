"""Candidates of a search: the portfolio with the columns of the request, and steps about the best of them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from app.base.errors import InvalidRequest
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Size
from app.ml.kinds.job import Sheet
from app.ml.training.automl.portfolio import STEPS, Setting
from app.ml.training.planning.cost import encoded_widths
from app.ml.training.planning.plan import Plan, plan
from app.ml.training.planning.train_spec import TrainSpec

MAX_CANDIDATES = 200
BEST, FACTOR, ATTEMPTS = 3, 1.5, 20
"""Candidates about which steps are made, the factor of a step, and draws until there is a new one."""
TUNABLE: Mapping[str, Mapping[str, float]] = {
    "gradient_boosting": {"learning_rate": 0.1, "max_leaf_nodes": 31, "min_samples_leaf": 20.0, "l2": 1.0},
    "random_forest": {"min_samples_leaf": 1.0, "max_features": 0.5},
    "logistic": {"l2": 0.01},
    "knn": {"n_neighbors": 5},
    "svm": {"C": 1.0},
    "svr": {"C": 1.0, "epsilon": 0.1},
    "mlp": {"l2": 1e-4, "dropout": 0.1},
    "decision_tree": {"min_samples_leaf": 5.0},
    "rules": {"min_samples_leaf": 3.0},
}
"""Parameters that steps change, with the value from which they start where a candidate has none."""


class Offer(NamedTuple):
    """A candidate: a training with one setting."""

    setting: Setting
    spec: TrainSpec
    planned: Plan
    width: int
    """Columns of its matrix."""

    @property
    def family(self) -> str:
        return self.setting.family

    def seconds(self, rows: float) -> float:
        """Estimated seconds of one fit of so many rows and its predictions."""
        spec, task = self.planned.spec, self.planned.task
        size = Size(max(1.0, rows), self.width, self._classes)
        return (
            0.005
            + 1e-7 * size.cells
            + nested.seconds(nested.entry_of(spec.algorithm).algorithm, spec.algorithm, task, size)
        )

    @property
    def _classes(self) -> int:
        if not self.planned.task.of_classes:
            return 0
        return next((column.distinct or 0 for column in self.planned.columns if column.name == self.spec.target), 0)

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: value for name, value in self.setting.algorithm.items() if name != "name"}


class Table(NamedTuple):
    """The request without an algorithm, and the table that it is about."""

    body: Mapping[str, Any]
    """Fields of a `TrainSpec`."""
    sheet: Sheet
    memory_bytes: float

    def spec(self, algorithm: Mapping[str, Any]) -> TrainSpec:
        """Raises pydantic's ValidationError for parameters out of bounds."""
        return TrainSpec.model_validate({**self.body, "algorithm": dict(algorithm)})

    def offer(self, setting: Setting) -> Offer:
        """Raises InvalidRequest where the algorithm cannot learn from this table."""
        spec = self.spec(setting.algorithm)
        planned = plan(spec, self.sheet.columns, self.sheet.rows, self.memory_bytes, whole=True)
        chosen = [column for column in planned.columns if column.name in set(planned.features)]
        return Offer(setting, spec, planned, sum(encoded_widths(planned.spec, planned.task, chosen)))


def step_near(table: Table, best: Sequence[Offer], number: int, existing: Sequence[Offer], seed: int) -> Offer | None:
    """A candidate that differs in one parameter from one of the best, which take turns; None: none is left.

    number: steps before this one. existing: candidates that there are.
    """
    tried_settings = [offer.setting.algorithm for offer in existing]
    rng = np.random.Generator(np.random.PCG64([seed, number]))
    near = [offer for offer in best if offer.family in TUNABLE][:BEST]
    for attempt in range(ATTEMPTS if near else 0):
        start = near[(number + attempt) % len(near)]
        algorithm = _stepped(start.setting.algorithm, rng)
        if algorithm in tried_settings:
            continue
        try:
            return table.offer(start.setting._replace(algorithm=algorithm))
        except (ValidationError, InvalidRequest):
            continue
    return None


def _stepped(algorithm: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    starts = TUNABLE[algorithm["name"]]
    name = str(rng.choice(sorted(starts)))
    value = algorithm.get(name, starts[name])
    stepped = value * FACTOR if rng.random() < 0.5 else value / FACTOR
    if isinstance(value, int):
        stepped = round(stepped) if round(stepped) != value else value + 1
    else:
        stepped = float(f"{min(stepped, 1.0) if name in {'max_features', 'dropout', 'learning_rate'} else stepped:.3g}")
    changed = {**algorithm, name: stepped}
    if algorithm["name"] == "gradient_boosting" and name == "learning_rate":
        changed["n_estimators"] = round(STEPS / stepped)
    return changed
