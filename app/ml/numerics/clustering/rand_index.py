"""Agreement of two labellings of the same rows, whatever the labels are called.

References: Hubert & Arabie (1985), J. Classif. 2:193; Vinh, Epps & Bailey (2010), J. Mach. Learn. Res. 11:2837.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector


def contingency(labels: Labels, other: Labels) -> Matrix:
    """(j, k) rows with each pair of labels; labels from 0."""
    k = int(other.max(initial=-1)) + 1
    counts = np.bincount(labels * k + other, minlength=(int(labels.max(initial=-1)) + 1) * k)
    return counts.reshape(-1, k).astype(np.float64)


def adjusted_rand(table: Matrix) -> float:
    """Share of pairs of rows on which both agree, less what chance makes, of what is possible: 1 if they are equal, 0
    on average if they have nothing to do with each other. NaN where both put all rows, or no two, into one cluster.
    """
    parts = table.ravel(), table.sum(axis=1), table.sum(axis=0), np.array([table.sum()])
    return float(beyond_chance(*(np.array([_pairs(counts)]) for counts in parts))[0])


def beyond_chance(both: Vector, first: Vector, other: Vector, every: Vector) -> Vector:
    """(m,) the same from numbers of pairs of rows (m,): that both labellings, the one and the other put together; and
    of all pairs.
    """
    chance, most = first * other / np.where(every > 0, every, 1.0), (first + other) / 2
    possible = most > chance
    return np.where(possible, (both - chance) / np.where(possible, most - chance, 1.0), np.nan)


def _pairs(counts: Vector) -> float:
    return float((counts * (counts - 1)).sum() / 2)
