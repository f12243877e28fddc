"""At both ends of every bounded parameter a fit is refused with a reason or gives sane predictions."""

import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from app.base.errors import ValiantError
from app.ml.contract.task import PredictionKind
from tests.ml.contract.conftest import Case

BUDGETS = {"n_estimators": 30, "n_init": 4, "epochs": 12, "stages": 5, "max_iter": 1000}
"""Parameters that repeat work: their upper end costs hours and shows nothing that some repetitions do not."""
SMALL = {"n_estimators": 8, "n_init": 2, "epochs": 6, "stages": 3, "max_iter": 500}
"""Their values while another parameter is at an end."""


class End(NamedTuple):
    """The first or last value of a parameter."""

    name: str
    side: str
    value: float
    item: bool
    """True if the value is that of an item in a list."""

    def params(self, base: Mapping[str, Any]) -> dict[str, Any]:
        return {**base, self.name: [self.value] if self.item else self.value}


CONSTANT = {
    ("n_clusters", "low"): "one cluster is requested",
    ("n_components", "low"): "one component is requested",
    ("distance_threshold", "high"): "all rows are nearer to each other than the threshold",
    ("prototypes", "low"): "a single row predicts all others",
    ("n_neighbors", "high"): "all rows are neighbours",
    ("max_depth", "low"): "a tree without a split",
    ("min_samples_leaf", "high"): "no leaf may have so few rows as there are",
    ("min_samples_split", "high"): "no node has rows enough to split",
    ("min_impurity_decrease", "high"): "no split gains as much",
    ("ccp_alpha", "high"): "no split is worth its cost",
    ("max_delta_step", "low"): "no leaf moves the model",
    ("max_samples", "low"): "each member has one row",
    ("learning_rate", "low"): "no step moves the model",
    ("learning_rate", "high"): "the divergence is reported, and the first point is the best",
    ("tol", "high"): "the start is within the tolerance",
    ("init_range", "low"): "a network whose weights are all 0 stays so",
    ("gamma", "low"): "all rows are alike by the kernel",
    ("gamma", "high"): "no two rows are alike by the kernel",
    ("C", "low"): "no row may pull the boundary",
    ("epsilon", "high"): "all rows are within the tube",
    ("l1", "high"): "the penalty leaves no coefficient",
    ("l2", "high"): "the penalty leaves every leaf at 0",
    ("alpha", "high"): "smoothing leaves no difference between components",
    ("length_scale", "high"): "all rows are alike by the kernel",
    ("amplitude", "low"): "the function is 0",
    ("sigma", "high"): "the rows are noise",
    ("prior_variance", "low"): "coefficients are 0",
    ("n_components", "high"): "each row has a component of its own",
}
"""Ends at which a prediction without differences is right, and why. Elsewhere it is a collapse."""


def ends(case: Case) -> Iterator[End]:
    """Both ends of the numbers of each parameter, as its JSON schema states them."""
    for name, schema in case.algorithm.params.model_json_schema()["properties"].items():
        for option in schema.get("anyOf", [schema]):
            item = option.get("type") == "array"
            number = option.get("items", {}) if item else option
            if number.get("type") in {"integer", "number"}:
                yield from (End(name, side, value, item) for side, value in _bounds(name, number))


def _bounds(name: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for side, bound, direction in (("low", "inimum", 1), ("high", "aximum", -1)):
        inclusive, exclusive = schema.get(f"m{bound}"), schema.get(f"exclusiveM{bound}")
        if inclusive is None and exclusive is None:
            continue
        value = inclusive
        if value is None:
            whole = schema["type"] == "integer"
            value = exclusive + direction if whole else math.nextafter(exclusive, math.inf * direction)
        yield side, min(value, BUDGETS.get(name, math.inf))


def differences(case: Case, predicted: Any) -> int:
    """Number of different predictions: of groups, of the most probable classes, or of other values."""
    kind = case.task.record.prediction
    values = predicted.argmax(axis=1) if kind is PredictionKind.PROBABILITIES else predicted
    return len(np.unique(values, axis=0))


def test_ends_of_all_ranges_are_refused_or_sane(entry, shape_of_prediction):
    case = Case(entry, min(entry.algorithm.tasks))
    data = case.data(rows=60, columns=2)
    base = {name: value for name, value in SMALL.items() if name in case.algorithm.params.model_fields}
    faults = []
    for end in ends(case):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # numbers so near 0 may underflow, which harms nothing
                params = case.algorithm.for_task(case.algorithm.params.model_validate(end.params(base)), case.task)
                fit = case.fit(data, params)
                predicted = case.predict(fit.state, data.x, params)
                if case.algorithm.summary is not None:
                    case.algorithm.summary(params, fit.state)
            shape_of_prediction(case, predicted, rows=60)
        except (ValiantError, ValidationError) as refusal:
            faults += [] if str(refusal) else [f"{end}: refused without a reason"]
            continue
        except Exception as error:  # noqa: BLE001  all ends at fault are listed at once
            faults.append(f"{end}: {error!r}")
            continue
        if differences(case, predicted) == 1 and (end.name, end.side) not in CONSTANT:
            faults.append(f"{end}: all predictions are the same, and CONSTANT gives no reason")
    assert not faults, "\n".join(faults)
