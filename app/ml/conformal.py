"""Intervals of any regression, from its errors on rows that it has not seen: split conformal prediction.

If the rows held out and a new one could as well have come in any other order, the new error is as likely to take any
rank among theirs. So prediction ± the ⌈(m + 1)·confidence⌉-th smallest of m absolute errors holds a new target with at
least this confidence, whatever the model and the distribution: on average over rows, not for every kind of row. With
too few rows nothing bounds it.

References: Vovk, Gammerman & Shafer (2005), Algorithmic Learning in a Random World; Lei et al. (2018), J. Amer.
Statist. Assoc. 113:1094.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from app.ml.contract import Algorithm, Matrix, Params, Vector

ROUNDING = 1e-12


def has_own(algorithm: Algorithm[Any, Any], params: Params) -> bool:
    """Whether the algorithm itself gives intervals under these parameters."""
    return algorithm.interval is not None and algorithm.own_interval(params)


def with_intervals(algorithm: Algorithm[Any, Any], params: Params, errors: Vector) -> Algorithm[Any, Any]:
    """The algorithm with its own intervals, else those of `errors` on rows held out, ascending, else without any."""
    if has_own(algorithm, params):
        return algorithm
    if not errors.size:
        return replace(algorithm, interval=None)

    def interval(params: Any, state: Any, x: Matrix, confidence: float) -> Matrix:
        middle = algorithm.predict(params, state, x)
        with np.errstate(invalid="ignore"):
            return np.column_stack([middle - reach(errors, confidence), middle + reach(errors, confidence)])

    return replace(algorithm, interval=interval)


def reach(errors: Vector, confidence: float) -> float:
    """The error that a new row exceeds with no more than the rest of the confidence.

    >>> reach(np.arange(1.0, 20.0), 0.95), reach(np.arange(1.0, 19.0), 0.95)
    (19.0, inf)
    """
    rank = math.ceil((errors.size + 1) * confidence * (1 - ROUNDING))
    return float(errors[rank - 1]) if rank <= errors.size else math.inf
