"""Least squares about each query: rows count by their nearness, many queries at a time.

Memory is O(BLOCK) besides the result, however many queries and rows there are.
Source: Atkeson, Moore & Schaal (1997), Artif. Intell. Rev. 11:11.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Size, Vector
from app.ml.numerics.clustering.seeding import canonical_order

BLOCK = 2**20
"""Numbers worked on at a time."""
MAX_COORDINATE = 1e150
"""Coordinates beyond which a query counts as no farther: its squared distances, too, are numbers."""
SOUND = 1e-8
"""Least eigenvalue, of the largest 1, with which the normal equations are trusted."""
WIDTHS = 4.0 ** np.arange(3, -7, -1)
"""Kernel widths that cross-validation tries, as multiples of the mean squared distance of two rows."""
PROBES, LABOUR = 500, 2**23
"""Most rows left out in cross-validation; most pairs of them and all rows."""

Predictor: TypeAlias = Callable[[Matrix, Matrix, Matrix, float], Vector]
"""From queries (q, d), squared distances to all rows (q, n), weights of rows (q, n) and a width to predictions (q,)."""


class LocalFits(NamedTuple):
    coef: Matrix
    """(q, p)."""
    factor: NDArray[np.float64]
    """(q, p, p): FFᵀ is the inverse of the matrix of the normal equations."""
    sound: NDArray[np.bool_]
    """(q,): whether the equations were well enough conditioned."""


def seconds(size: Size) -> float:
    """Time to choose a width and to predict a quarter as many rows: each weighs all rows and solves for a plane."""
    n, p = size.rows, size.columns + 1
    each = n * (2e-8 + 2e-9 * p + 1.5e-10 * p * p) + 3e-10 * p**3
    return (1.4 * len(WIDTHS) * probe_count(n) + n / 4) * each


def probe_count(n: float) -> float:
    """Rows left out to choose the width for n rows."""
    return min(n, PROBES, max(50, LABOUR // n))


def blocks(x: Matrix, rows: Matrix) -> Iterator[tuple[slice, Matrix]]:
    """Blocks of the queries x (n, d), with their squared distances to all rows."""
    step = max(1, BLOCK // (len(rows) * (rows.shape[1] + 2)))
    near = np.clip(x, -MAX_COORDINATE, MAX_COORDINATE)
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        yield block, scipy.spatial.distance.cdist(near[block], rows, "sqeuclidean")  # the same beside any others


def relative_weights(squares: Matrix, counted: Matrix, width: float, power: int) -> Matrix:
    """(q, n): exp(−power · squares/width) times `counted`, both as shares of the nearest row that counts.

    So at least one weight of each query is not 0, however far it is from all rows.
    """
    reached = np.where(counted > 0, squares, np.inf)
    with np.errstate(over="ignore"):
        gaps = (reached - reached.min(axis=1, keepdims=True)) * power / width
    return np.asarray(np.exp(-gaps) * counted)


def local_fits(design: Matrix, y: Vector, weights: Matrix, precision: Vector) -> LocalFits:
    """For each query minimise Σ wᵢ(yᵢ − aᵢβ)² + Σ precisionⱼβⱼ², with aᵢ the rows of `design` (n, p), weights (q, n).

    Normal equations with unit diagonal by eigenvalues, corrected once with the residuals. A column that is 0 wherever
    rows count has coefficient 0.
    """
    gram = np.matmul(weights[:, None, :] * design.T, design)
    p = design.shape[1]
    gram[:, np.arange(p), np.arange(p)] += precision
    scale = np.sqrt(gram[:, np.arange(p), np.arange(p)])
    scale = np.where(scale > 0, scale, np.inf)
    values, vectors = np.linalg.eigh(
        gram / scale[:, None, :] / scale[:, :, None] + np.eye(p) * np.isinf(scale)[:, None]
    )
    least = SOUND * values[:, -1:]
    factor = vectors / scale[:, :, None] / np.sqrt(np.maximum(values, least))[:, None, :]

    def solved(right: Matrix) -> Matrix:
        return np.asarray(np.einsum("qij,qj->qi", factor, np.einsum("qji,qj->qi", factor, right)))

    coef = solved((weights * y) @ design)
    coef += solved((weights * (y - coef @ design.T)) @ design - precision * coef)
    return LocalFits(coef, factor, values[:, 0] > least[:, 0])


def choose_width(x: Matrix, y: Vector, weights: Vector, predict: Predictor) -> float:
    """The width with the least squared error on rows left out one at a time, together with all that are equal to them.

    Of many rows a part is left out, spread evenly from the middle outwards.
    """
    n = len(x)
    centre = weights @ x / weights.sum()
    unit = 2 * float(weights @ ((x - centre) ** 2).sum(axis=1) / weights.sum())
    if unit == 0:
        return 1.0
    probes: Labels = np.unique(np.linspace(0, n - 1, int(probe_count(n))).astype(np.intp))
    probes = canonical_order(x)[probes]
    losses = np.zeros(len(WIDTHS))
    for block, squares in blocks(x[probes], x):
        probed_rows = probes[block]
        counted = np.where(squares > 0, weights, 0.0)
        some = counted.any(axis=1)
        for place, width in enumerate(WIDTHS * unit):
            predictions = predict(x[probed_rows[some]], squares[some], counted[some], float(width))
            losses[place] += weights[probed_rows[some]] @ (y[probed_rows[some]] - predictions) ** 2
    return float(WIDTHS[losses.argmin()] * unit)
