"""Class weights: rows of a class count more or less in the fit, and as they are in every metric.

The weight of a row in the fit is its own weight times that of its class. Balanced, class c of k has the weight
W / (k W_c), with W_c the sum of its rows' weights and W that of all: every class then counts as much, and the sum of
all weights stays (King & Zeng 2001, Political Analysis 9:137).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.base.suggestions import no_such
from app.ml.contract.algorithm import Data, Task, Vector
from app.ml.contract.labels import Class

AT = "/class_weight"
Weight = Annotated[float, Field(gt=0, le=1e6)]

ClassWeight: TypeAlias = Literal["balanced"] | dict[str, Weight]


def class_weight_faults(how: ClassWeight | None, task: Task | None, batch_rows: int | None = None) -> Iterator[Fault]:
    """batch_rows: rows learned at a time, where memory does not hold all."""
    if how is not None and task is not None and not task.of_classes:
        yield Fault(AT, f"Only classes have weights; this is {task}. Leave it out.")
    if how == "balanced" and batch_rows is not None:
        detail = (
            "The table is too large for the memory of a job, which learns it in batches and cannot balance classes."
        )
        yield Fault(AT, f"{detail} Give each class its weight, or raise VALIANT_JOB_MEMORY_BYTES.")


def weighted(how: ClassWeight | None, data: Data) -> Data:
    """The rows with the weights that they have in a fit. Raises InvalidData for a class that there is none of."""
    if how is None:
        return data
    weights = data.weights * _factors(how, data)[data.codes]
    weights.setflags(write=False)
    return replace(data, weights=weights)


def _factors(how: ClassWeight, data: Data) -> Vector:
    """(k,) of the classes; those without rows count once."""
    if how == "balanced":
        totals = data.weights @ data.targets
        present = totals > 0
        return np.where(present, totals.sum() / (present.sum() * np.where(present, totals, 1.0)), 1.0)
    places = {written(label): place for place, label in enumerate(data.labels)}
    if faults := [*_unknown(how, places)]:
        raise InvalidData("The target lacks classes that have weights.", faults=faults)
    factors = np.ones(len(places))
    for name, weight in how.items():
        factors[places[name]] = weight
    return factors


def _unknown(how: Mapping[str, float], places: Mapping[str, int]) -> Iterator[Fault]:
    for name in how:
        if name not in places:
            yield Fault(f"{AT}/{name}", no_such("The target has no class", name, places), "unknown_class")


def written(label: Class) -> str:
    """A class as the name of a field of JSON: its text, `true`, `1` or `0.5`."""
    return str(label).lower() if isinstance(label, bool) else str(label)
