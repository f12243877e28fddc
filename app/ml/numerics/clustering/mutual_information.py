"""Mutual information of cluster labels and classes, and what chance alone makes of it. In nats.

Reference: Vinh, Epps & Bailey (2010), J. Mach. Learn. Res. 11:2837.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Vector


def pointwise(cell: Vector, label: Vector, kind: Vector) -> tuple[Vector, Vector]:
    """(n,) each, whose means are the mutual information and the mean of the two entropies.

    cell, label, kind: (n,) how many rows have the label and the class of each row, its label, its class.
    """
    n = label.size
    return np.log(n * cell / (label * kind)), -(np.log(label / n) + np.log(kind / n)) / 2


def expected(labels: Labels, kinds: Labels) -> float:
    """Mean mutual information of labels and classes of these sizes, if rows are matched at random.

    labels: (k,), kinds: (c,) how many of the same n rows have each, at least 1. Equal sizes share a sum.
    """
    n, total = int(labels.sum()), 0.0
    (a_sizes, a_counts), (b_sizes, b_counts) = (np.unique(sizes, return_counts=True) for sizes in (labels, kinds))
    for a, a_count in zip(a_sizes.tolist(), a_counts.tolist(), strict=True):
        for b, b_count in zip(b_sizes.tolist(), b_counts.tolist(), strict=True):
            total += a_count * b_count * _of_sizes(a, b, n)
    return total


def _of_sizes(a: int, b: int, n: int) -> float:
    """The part of one label of a rows and one class of b rows: the rows that share both are hypergeometric."""
    shared = np.arange(max(1, a + b - n), min(a, b) + 1)
    return float(shared / n @ (np.log(n * shared / (a * b)) * np.exp(_log_probability(shared, a, b, n))))


def _log_probability(shared: Labels, a: int, b: int, n: int) -> Vector:
    log = scipy.special.gammaln
    chosen = log(a + 1) + log(b + 1) + log(n - a + 1) + log(n - b + 1) - log(n + 1)
    return np.asarray(
        chosen - log(shared + 1) - log(a - shared + 1) - log(b - shared + 1) - log(n - a - b + shared + 1)
    )
