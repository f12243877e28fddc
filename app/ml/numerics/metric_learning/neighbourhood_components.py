"""Neighbourhood components: the expected error of a nearest neighbour that is drawn by distance, and its gradient.

Row i draws row j ≠ i with probability pᵢⱼ ∝ vⱼ exp(−‖L(xᵢ − xⱼ)‖²), and is right with pᵢ = Σ pᵢⱼ over the rows of its
class. The loss is the mean of 1 − pᵢ. With Wᵢⱼ = vᵢ pᵢⱼ (pᵢ − [same class]) its gradient is that of a weighted
scatter of pairs, −2L Σ Wᵢⱼ (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ, which is XᵀRX − XᵀWX − (XᵀWX)ᵀ with R the sums of the columns of W: two
products of matrices for a block of rows, and no differences of pairs.

Reference: Goldberger, Roweis, Hinton & Salakhutdinov (2005), NIPS 17:513.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.metric_learning.class_blocks import ClassRows
from app.ml.numerics.neighbours.distances import norms

SINGLE_ROWS = 1000
"""From so many rows on, single precision pays."""
SINGLE_SQUARE = 2.0**12
"""Largest squared length of a row with which a score in single precision is right to about 1e-3."""


def expected_error(rows: ClassRows, factor: Matrix) -> tuple[float, Matrix]:
    """Mean of 1 − pᵢ under the factor L (p, d), and its gradient (p, d). At least two rows."""
    z = rows.x @ factor.T
    squares = norms(z)
    single = len(z) >= SINGLE_ROWS and squares.max() < SINGLE_SQUARE
    real: Any = np.float32 if single else np.float64
    x, z, weights = (part.astype(real, copy=False) for part in (rows.x, z, rows.weights))
    offsets = (np.log(rows.weights) - squares).astype(real, copy=False)
    right, pulls, scatter = 0.0, np.zeros(len(x)), np.zeros((x.shape[1],) * 2)
    for block, class_rows in rows.blocks():
        shares = _shares(2 * z[block] @ z.T + offsets, block.start)
        hits = shares[:, class_rows].sum(axis=1)
        right += float((weights[block] * hits).sum(dtype=np.float64))
        shares *= weights[block, None]
        missed = shares[:, class_rows] * (hits - 1)[:, None]
        shares *= hits[:, None]
        shares[:, class_rows] = missed
        pulls += shares.sum(axis=0)
        scatter += x[block].T @ (shares @ x)
    whole = (rows.x * pulls[:, None]).T @ rows.x - scatter - scatter.T
    return 1 - right / len(x), factor @ whole * (-2 / len(x))


def _shares(scores: NDArray[Any], first: int) -> NDArray[Any]:
    """Probabilities in place, from scores (b, n) of the rows `first` … `first` + b - 1, none of which draws itself."""
    row_numbers = np.arange(len(scores))
    scores[row_numbers, first + row_numbers] = -np.inf
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores *= 1 / scores.sum(axis=1, keepdims=True)
    return scores
