"""Compactness and separation of clusters: silhouettes, and the indices of Calinski-Harabasz and Davies-Bouldin.

None of them needs a target, and none must grow with the number of clusters, as the scatter within clusters falls.

References: Rousseeuw (1987), J. Comput. Appl. Math. 20:53; Calinski & Harabasz (1974), Commun. Stat. 3:1;
Davies & Bouldin (1979), IEEE Trans. Pattern Anal. 1:224.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.neighbours.distances import norms, squared_distances

DISTANCES = 2**25
"""Distances of all silhouettes together; of more rows some are sampled, MIN_SAMPLE_ROWS at least."""
MIN_SAMPLE_ROWS = 200
BLOCK = 2**20
"""Distances held at a time."""


def sampled(n: int) -> Labels:
    """Rows of n whose silhouettes are computed, evenly spaced."""
    most = max(MIN_SAMPLE_ROWS, DISTANCES // max(n, 1))
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(np.intp)


def silhouettes(x: Matrix, labels: Labels, rows: Labels, square: Matrix | None = None) -> Vector:
    """(m,) for these rows (m,) of x (n, d): (b - a) / max(a, b), from -1 to 1, larger where a row is nearer to its own
    cluster. a: mean distance to the others of its cluster; b: that to the nearest other cluster. 0 for a row that is
    alone in its cluster; NaN where there is one cluster only.

    square: (n, n) distances, instead of the Euclidean ones of x.
    """
    clusters, codes = np.unique(labels, return_inverse=True)
    if clusters.size < 2:
        return np.full(rows.size, np.nan)
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    starts, sorted_x = np.cumsum(counts) - counts, x[order] if square is None else x
    result, step = np.empty(rows.size), max(1, BLOCK // len(x))
    for start in range(0, rows.size, step):
        some = rows[start : start + step]
        if square is None:
            distances = np.sqrt(np.maximum(squared_distances(x[some], sorted_x), 0.0))
        else:
            distances = square[np.ix_(some, order)]
        sums, mine, places = np.add.reduceat(distances, starts, axis=1), codes[some], np.arange(some.size)
        inside = sums[places, mine] / np.maximum(counts[mine] - 1, 1)
        means = sums / counts
        means[places, mine] = np.inf
        outside = means.min(axis=1)
        larger = np.maximum(inside, outside)
        alone = (counts[mine] == 1) | (larger == 0)
        result[start : start + step] = np.where(alone, 0.0, (outside - inside) / np.where(alone, 1.0, larger))
    return result


def scatters(x: Matrix, labels: Labels, centres: Matrix) -> tuple[Vector, Vector]:
    """(n,) squared distance of each row to its centre, and of its centre to the mean of all."""
    own_centres = centres[labels]
    return norms(x - own_centres), norms(own_centres - own_centres.mean(axis=0))


def davies_bouldin(spread: Matrix, centres: Matrix) -> Vector:
    """(m,) of m sets of clusters with the same centres (k, d): the mean over clusters of how much the most similar
    other cluster overlaps it, (sᵢ + sⱼ) / ‖cᵢ − cⱼ‖. 0 is best. Clusters at one point count 0, as if they were one.

    spread: (m, k) mean distance of the rows of each cluster to its centre; NaN for a cluster without rows, which does
    not count. NaN where fewer than two clusters have rows.
    """
    worst = np.full(spread.shape, -np.inf)
    for j, centre in enumerate(centres):
        distances = np.sqrt(norms(centres - centre))
        distances[j] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            overlap = np.where(distances > 0, (spread + spread[:, j, None]) / distances, 0.0)
        overlap[:, j] = -np.inf
        worst[:, j] = np.fmax.reduce(np.where(np.isnan(overlap), -np.inf, overlap), axis=1)
    there = ~np.isnan(spread) & np.isfinite(worst)
    counted = there.sum(axis=1)
    total = np.where(there, worst, 0.0).sum(axis=1)
    return np.where(counted > 1, total / np.maximum(counted, 1), np.nan)
