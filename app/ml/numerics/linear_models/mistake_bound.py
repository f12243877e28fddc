"""Bound of the mistakes of a perceptron, by the hinge loss of any weights on the rows of its mistakes.

References: Novikoff (1962), Symp. Math. Theory of Automata 12:615; Shalev-Shwartz & Ben-David (2014), Understanding
Machine Learning, theorem 21.16.
"""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.sparse_rows import sparse

MAX_SUMMABLE = 1e145
"""Numbers whose squares can be added up."""
SCALES = np.geomspace(1e-3, 1e3, 61)
"""Sizes of w* tried for the bound, relative to the one with median gap 1."""


def mistake_bound(gaps: Vector, counts: Labels, radius: float, norm: float) -> float:
    """The smallest F + R‖w*‖√F + R²‖w*‖² over multiples w* of the weights; NaN where no number is large enough.

    gaps: (n,) lead of the class of each row. counts: (n,) mistakes. radius: R. norm: ‖w*‖ of the weights themselves.
    """
    sizes = SCALES / max(float(np.median(np.abs(gaps))), 1e-300)
    if gaps.min() > 0:
        sizes = np.append(sizes, 1 / gaps.min())
    hinge = np.array([counts @ np.maximum(1 - size * gaps, 0) for size in sizes])
    reach = radius * norm * sizes
    with np.errstate(over="ignore"):  # rows all of which lie on the boundary allow any number of mistakes
        bound = float((hinge + reach * np.sqrt(hinge) + reach**2).min())
    return bound if math.isfinite(bound) else math.nan


def longest_row(x: Matrix) -> float:
    """Length of the longest row, sparse or not."""
    with np.errstate(over="ignore"):
        if (rows := sparse(x)) is not None:
            return math.sqrt(float(rows.row_sums(np.square(rows.csr.data)).max()))
        square = float(np.vecdot(x, x).max())
    if 1 / MAX_SUMMABLE < square < math.inf:
        return math.sqrt(square)
    largest = float(np.abs(x).max(initial=0.0))
    return largest * math.sqrt(float(np.square(x / largest).sum(axis=1).max())) if largest > 0 else 0.0
