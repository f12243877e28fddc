"""Number of clusters with the largest Calinski-Harabasz index: the scatter between clusters over that within them.

The index of k clusters of n rows is (T - W)/(k - 1) over W/(n - k), where T is the sum of the squared distances of the
rows to their mean, and W of those to the nearest centre. Weights of rows count as numbers of rows.

Reference: Caliński & Harabasz (1974), Commun. Stat. 3:1.
"""

import math
from collections.abc import Callable

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.clustering.lloyd import means
from app.ml.numerics.neighbours.distances import nearest

MAX_CLUSTERS = 10
NO_SCATTER = 1e-12
"""Share of the scatter of all rows that is none."""


def choose_count(x: Matrix, weights: Vector, fit_centres: Callable[[int], Matrix]) -> int:
    """The number of clusters, from 2 to `MAX_CLUSTERS`, with the largest index; the smallest that leaves no scatter
    within them; 1 where all rows are equal.

    x: (n, d). weights: (n,). fit_centres: from a number of clusters to their centres (k, d).
    """
    total = _inertia(x, weights, means(x, weights, np.zeros(len(x), np.intp), 1))
    if total <= 0:
        return 1
    best, largest = 2, -math.inf
    for k in range(2, min(MAX_CLUSTERS, len(x) - 1) + 1):
        centres = fit_centres(k)
        within = _inertia(x, weights, centres)
        if within <= NO_SCATTER * total:
            return len(centres)
        index = (total - within) / (k - 1) / within * max(float(weights.sum()) - k, 0.0)
        if index > largest:
            best, largest = k, index
    return best


def _inertia(x: Matrix, weights: Vector, centres: Matrix) -> float:
    return float(weights @ nearest(x, centres)[1])
