"""Distortions of clusters: inertia, squared distances of all pairs, and diameter.

Source: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 22.2.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.neighbours.distances import norms, squared_distances
from app.ml.numerics.row_blocks import blocks

PAIRS = 2**22
"""Pairs of rows compared for the diameters of all clusters."""


class Distortion(NamedTuple):
    sizes: Labels
    """(k,) number of rows."""
    inertias: Vector
    """(k,) weighted sum of squared distances to the centre."""
    pairwise: Vector
    """(k,) sum over pairs of rows of their squared distance times both weights."""
    radii: Vector
    """(k,) distance of the farthest row to the centre."""
    diameters: Vector
    """(k,) distance of the farthest two rows; NaN where too many pairs must be compared."""


def distortion(x: Matrix, weights: Vector, labels: Labels, centres: Matrix) -> Distortion:
    """Distortions of the clusters 0 … k - 1. One without rows has zeros."""
    k = len(centres)
    squares = norms(x - centres[labels])
    order = np.lexsort((-squares, labels))
    groups = np.split(order, np.cumsum(np.bincount(labels, minlength=k))[:-1])
    radii = np.array([np.sqrt(squares[rows[0]]) if rows.size else 0.0 for rows in groups])
    inertias = np.bincount(labels, weights * squares, k).astype(np.float64)
    pairwise = np.array(
        [_pairwise(x[rows], weights[rows], centre) for rows, centre in zip(groups, centres, strict=True)]
    )
    diameters, left = np.empty(k), PAIRS
    for j, rows in enumerate(groups):
        diameters[j], compared = _diameter(x[rows], np.sqrt(squares[rows]), left)
        left -= compared
    return Distortion(np.bincount(labels, minlength=k), inertias, pairwise, radii, diameters)


def _diameter(x: Matrix, radii: Vector, most: int) -> tuple[float, int]:
    """Distance of the farthest two rows, and how many were compared; NaN if more than `most` must be.

    radii: (n,) distances to the centre, from the largest on. Two rows are at most as far apart as both radii together,
    so rows near the centre need no comparison once two rows far apart are found.
    """
    if len(x) < 2:
        return 0.0, 0
    first = norms(x - x[0])
    best = float(np.sqrt(max(first.max(), norms(x - x[first.argmax()]).max())))
    rows = int((radii + radii[0] > best).sum())
    if rows * rows > most:
        return np.nan, 0
    for block in blocks(rows, rows):
        reach = int((radii[:rows] + radii[block][0] > best).sum())
        if reach:
            best = max(best, float(np.sqrt(squared_distances(x[:rows][block], x[:reach]).max())))
    return best, rows * rows


def _pairwise(x: Matrix, weights: Vector, centre: Vector) -> float:
    """Σ over pairs wᵢwⱼ‖xᵢ − xⱼ‖² = W Σ wᵢ‖xᵢ − c‖² − ‖Σ wᵢ(xᵢ − c)‖², for any point c."""
    moved = x - centre
    mean = weights @ moved
    return max(0.0, float(weights.sum() * (weights @ norms(moved)) - mean @ mean))
