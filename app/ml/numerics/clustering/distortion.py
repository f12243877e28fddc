"""Distortions of clusters: inertia, squared distances of all pairs, and diameter.

Source: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 22.2.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.bounds import Clusters
from app.ml.numerics.neighbours.compiled.distances import squares_to
from app.ml.numerics.neighbours.distances import norms

PAIRS = 2**22
"""Pairs of rows compared for the diameters of all clusters."""
BLOCK_NUMBERS = 2**16
"""Products of pairs held at a time."""


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
    k, x = len(centres), np.ascontiguousarray(x)
    clusters = Clusters.of(x, weights, labels, k)
    moved = clusters.sums - clusters.masses[:, None] * centres
    squares = _squares_to(x, centres, labels)
    order = np.argsort(labels.astype(np.min_scalar_type(k)), kind="stable")
    members = np.split(order, np.cumsum(clusters.sizes)[:-1])
    parts = Distortion(clusters.sizes, *np.zeros((4, k)))
    for j, rows in enumerate(members):
        if rows.size:
            parts.inertias[j] = weights[rows] @ squares[rows]
            parts.radii[j] = np.sqrt(squares[rows].max())
    # Σ over pairs wᵢwⱼ‖xᵢ − xⱼ‖² = W Σ wᵢ‖xᵢ − c‖² − ‖Σ wᵢ(xᵢ − c)‖², for any point c.
    parts.pairwise[:] = np.maximum(0.0, clusters.masses * parts.inertias - norms(moved))
    parts.diameters[:] = _diameters(x, labels, members, squares)
    return parts


def _squares_to(x: Matrix, points: Matrix, labels: Labels) -> Vector:
    squares = np.empty(len(x))
    squares_to.lean(x, np.ascontiguousarray(points), labels, squares)
    return squares


def _diameters(x: Matrix, labels: Labels, members: list[Labels], squares: Vector) -> Vector:
    """(k,) distances of the farthest two rows of each cluster; NaN from where more pairs than `PAIRS` must be compared.

    squares: (n,) squared distances to the centres. First the row farthest from the centre is compared with all, then
    the one that is farthest from it.
    """
    best, from_last = np.zeros(len(members)), squares
    for _ in range(2):
        farthest = [rows[from_last[rows].argmax()] if rows.size else 0 for rows in members]
        from_last = _squares_to(x, x[farthest], labels)
        reached = [from_last[rows].max() if rows.size else 0.0 for rows in members]
        best = np.maximum(best, np.sqrt(reached))
    left = PAIRS
    for j, rows in enumerate(members):
        if rows.size > 1:
            best[j], compared = _diameter(x, rows, np.sqrt(squares[rows]), float(best[j]), left)
            left -= compared
    return best


def _diameter(x: Matrix, members: Labels, radii: Vector, best: float, most: int) -> tuple[float, int]:
    """Distance of the farthest two rows, and how many were compared; NaN if more than `most` must be.

    radii: (m,) distances of these rows to their centre. best: distance of two of them. Two rows are at most as far
    apart as both radii together, so rows near the centre need no comparison once two rows far apart are found.
    """
    far = np.flatnonzero(radii + radii.max() > best)
    rows = len(far)
    if rows * rows > most:
        return np.nan, 0
    far = far[np.argsort(-radii[far], kind="stable")]
    x, radii = x[members[far]], radii[far]
    x -= x.mean(axis=0) if rows else 0.0
    lengths, step = norms(x), max(1, BLOCK_NUMBERS // max(1, rows))
    for start in range(0, rows, step):
        reach = int((radii + radii[start] > best).sum())
        if reach <= start + 1:
            break
        block = slice(start, min(start + step, reach))
        squares = (-2 * x[block]) @ x[start:reach].T
        squares += lengths[start:reach]
        squares += lengths[block, None]
        first, second = divmod(int(squares.argmax()), reach - start)
        best = max(best, float(np.linalg.norm(x[start + first] - x[start + second])))
    return best, rows * rows
