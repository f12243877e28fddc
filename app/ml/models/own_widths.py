"""Widths of the intervals that an algorithm computes itself, as a unit of errors on rows that it has not seen."""

from typing import Any

import numpy as np

from app.ml.contract.algorithm import Algorithm, Matrix, Params, Vector

CONFIDENCE = 0.6827
"""Confidence of an interval of one standard deviation to either side, if errors are normal."""
MIN_WIDTH = float(np.finfo(np.float64).tiny)


def has_own(algorithm: Algorithm[Any, Any], params: Params) -> bool:
    """True if the algorithm itself gives intervals under these parameters."""
    return algorithm.interval is not None and algorithm.own_interval(params)


def scales_own(algorithm: Algorithm[Any, Any], params: Params) -> bool:
    """True if errors of unseen rows may scale these intervals: those of new targets, not of their mean."""
    return has_own(algorithm, params) and not algorithm.interval_of_mean(params)


def own_widths(algorithm: Algorithm[Any, Any], params: Params, state: Any, x: Matrix) -> Vector:
    """(n,) half of the width of the algorithm's interval for each row, above 0."""
    assert algorithm.interval is not None  # noqa: S101 - see `has_own`
    lower, upper = algorithm.interval(params, state, x, CONFIDENCE).T
    widths: Vector = np.maximum((upper - lower) / 2, MIN_WIDTH)
    return widths
