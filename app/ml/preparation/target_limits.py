"""Limits of a regression's target: prediction intervals end there."""

import math
from collections.abc import Iterator

import numpy as np

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import Task, Vector
from app.ml.preparation.request import Preprocessing

MIN_ROWS = 50
"""Rows that show a minimum of 0: that the next target is the first below has a probability of at most 1 in 51."""


def target_limits(how: Preprocessing, y: Vector) -> tuple[float, float]:
    """The least and the greatest target, infinite without a limit. y: (n,) of the training rows.

    Raises InvalidData where rows lie beyond a limit that was given.
    """
    greatest = math.inf if how.target_maximum is None else how.target_maximum
    least = -math.inf if how.target_minimum is None else how.target_minimum
    if how.target_minimum is None and how.detect_target_minimum and _starts_at_0(y) and greatest > 0:
        least = 0.0
    faults = list(_beyond(y, least, greatest))
    if faults:
        raise InvalidData("Training rows have targets beyond the limits that were given.", faults=faults)
    return least, greatest


def _starts_at_0(y: Vector) -> bool:
    return y.size >= MIN_ROWS and bool(y.min() >= 0)


def _beyond(y: Vector, least: float, greatest: float) -> Iterator[Fault]:
    for name, side, count in (
        ("target_minimum", "below", np.count_nonzero(y < least)),
        ("target_maximum", "above", np.count_nonzero(y > greatest)),
    ):
        if count:
            detail = f"{count} of {y.size} training rows have a target {side} it: correct it, or leave it out."
            yield Fault(f"/preprocessing/{name}", detail, "beyond_limit")


def limit_faults(how: Preprocessing, task: Task | None) -> Iterator[Fault]:
    """Limits that the task does not have. task: None where it is not known."""
    if task is None or task.of_numbers:
        return
    for name, limit in (("target_minimum", how.target_minimum), ("target_maximum", how.target_maximum)):
        if limit is not None:
            yield Fault(f"/preprocessing/{name}", "Only the target of a regression has limits: leave it out.")
