"""Agreement of two labellings of the same rows, whatever the labels are called.

References: Hubert & Arabie (1985), J. Classif. 2:193; Vinh, Epps & Bailey (2010), J. Mach. Learn. Res. 11:2837.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector


def contingency(one: Labels, other: Labels) -> Matrix:
    """(j, k) rows with each pair of labels; labels from 0."""
    k = int(other.max(initial=-1)) + 1
    counts = np.bincount(one * k + other, minlength=(int(one.max(initial=-1)) + 1) * k)
    return counts.reshape(-1, k).astype(np.float64)


def adjusted_rand(table: Matrix) -> float:
    """Share of pairs of rows on which both agree, less what chance makes, of what is possible: 1 if they are equal, 0
    on average if they have nothing to do with each other. NaN where both put all rows, or no two, into one cluster.
    """
    n = table.sum()
    together, one, other = _pairs(table.ravel()), _pairs(table.sum(axis=1)), _pairs(table.sum(axis=0))
    expected = one * other / (n * (n - 1) / 2) if n > 1 else 0.0
    most = (one + other) / 2
    return float((together - expected) / (most - expected)) if most > expected else float("nan")


def _pairs(counts: Vector) -> float:
    return float((counts * (counts - 1)).sum() / 2)
