"""Distortions of clusters: inertia, squared distances of all pairs, and diameter.

Source: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 22.2.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.neighbours.compiled.distances import squares_to
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
    found = Distortion(np.bincount(labels, minlength=k), *np.zeros((4, k)))
    squares = np.empty(len(x))
    squares_to.lean(np.ascontiguousarray(x), np.ascontiguousarray(centres), labels, squares)
    order, left = np.argsort(labels.astype(np.min_scalar_type(k)), kind="stable"), PAIRS
    for j, rows in enumerate(np.split(order, np.cumsum(found.sizes)[:-1])):
        if rows.size:
            moved, radii = x[rows] - centres[j], np.sqrt(squares[rows])
            found.inertias[j] = weights[rows] @ squares[rows]
            found.pairwise[j] = _pairwise(moved, weights[rows], found.inertias[j])
            found.radii[j] = radii.max()
            found.diameters[j], compared = _diameter(moved, radii, left)
            left -= compared
    return found


def _diameter(x: Matrix, radii: Vector, most: int) -> tuple[float, int]:
    """Distance of the farthest two rows, and how many were compared; NaN if more than `most` must be.

    x: (n, d) rows less their centre. radii: (n,) their lengths. Two rows are at most as far apart as both radii
    together, so rows near the centre need no comparison once two rows far apart are found.
    """
    if len(x) < 2:
        return 0.0, 0
    first = norms(x - x[radii.argmax()])
    best = float(np.sqrt(max(first.max(), norms(x - x[first.argmax()]).max())))
    far = np.flatnonzero(radii + radii.max() > best)
    rows = len(far)
    if rows * rows > most:
        return np.nan, 0
    far = far[np.argsort(-radii[far], kind="stable")]
    x, radii = x[far], radii[far]
    for block in blocks(rows, rows):
        reach = int((radii[:rows] + radii[block][0] > best).sum())
        if reach:
            best = max(best, float(np.sqrt(squared_distances(x[:rows][block], x[:reach]).max())))
    return best, rows * rows


def _pairwise(moved: Matrix, weights: Vector, inertia: float) -> float:
    """Σ over pairs wᵢwⱼ‖xᵢ − xⱼ‖² = W Σ wᵢ‖xᵢ − c‖² − ‖Σ wᵢ(xᵢ − c)‖², for any point c. moved: the rows less c."""
    mean = weights @ moved
    return max(0.0, float(weights.sum() * inertia - mean @ mean))
