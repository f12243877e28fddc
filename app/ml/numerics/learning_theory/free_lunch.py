r"""No free lunch: averaged over all labellings of a finite domain, no learner beats guessing on points it has not seen.

m rows drawn uniformly from |X| points leave a point unseen with probability (1 − 1/|X|)^m, and half of all labellings
contradict any guess there: the expected error, averaged over labellings, is ½(1 − 1/|X|)^m for every learner that keeps
what it has seen. By Markov's inequality, if |X| ≥ 2m some labelling has P(error ≥ 1/8) ≥ 1/7.

References: Wolpert (1996), Neural Comput. 8:1341; Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning,
Theorem 5.1.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Vector

LEARNERS = ("zero", "majority", "nearest")
"""Labels of unseen points: 0; the most frequent of the seen rows, else 0; that of the nearest seen point, the lower of
two."""


def average_error(points: int, rows: int) -> float:
    """Expected error, averaged over all labellings, of every learner that keeps the labels it has seen.

    >>> average_error(4, 2)
    0.28125
    """
    return float((1 - 1 / points) ** rows / 2)


def errors_by_labelling(points: int, rows: int, learner: str) -> tuple[Vector, Vector]:
    """Expected error of a learner for each of 2^points labellings, and its probability of an error of 1/8 or more.

    Exact: over all points^rows samples.
    """
    labellings = (np.arange(2**points)[:, None] >> np.arange(points)) & 1
    expected, large = np.zeros(2**points), np.zeros(2**points)
    for sample in product(range(points), repeat=rows):
        wrong = (_guess(labellings, np.array(sample, np.intp), learner) != labellings).mean(axis=1)
        expected += wrong
        large += wrong >= 1 / 8
    return expected / points**rows, large / points**rows


def _guess(labellings: NDArray[np.intp], sample: Labels, learner: str) -> NDArray[np.intp]:
    """(2^points, points) predictions after the rows of a sample, for every labelling."""
    points = labellings.shape[1]
    match learner:
        case "majority":
            most = (2 * labellings[:, sample].sum(axis=1) > sample.size).astype(np.intp)
            guess = np.broadcast_to(most[:, None], labellings.shape).copy()
        case "nearest" if sample.size:
            seen = np.unique(sample)
            nearest = seen[np.abs(np.arange(points)[:, None] - seen).argmin(axis=1)]
            guess = labellings[:, nearest].copy()
        case _:
            guess = np.zeros_like(labellings)
    guess[:, sample] = labellings[:, sample]
    return guess
