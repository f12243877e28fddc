"""Multinomial distribution of the counts of rows in each class, with added counts (Lidstone smoothing), in logarithms.

Reference: McCallum & Nigam (1998), AAAI-98 Workshop on Learning for Text Categorization: 41.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import JSON, Data, Matrix
from app.ml.contract.sparse_rows import columns_where, mapped
from app.ml.numerics.density.class_columns import LISTED

MIN_PROBABILITY = 1e-300
"""Stands for a probability of 0 in logarithms."""


class Multinomials(NamedTuple):
    log_shares: Matrix
    """(k, d) logarithms of the shares of the columns in the counts of each class."""


def multinomials(data: Data, smoothing: float) -> Multinomials:
    """smoothing: added to the count of each column in each class; a class without any count has even shares. Numbers
    below 0 count as 0.
    """
    counts = (data.targets * data.weights[:, None]).T @ mapped(data.x, _held) + smoothing
    totals = counts.sum(axis=1, keepdims=True)
    even = np.full_like(counts, 1 / counts.shape[1])
    shares = np.divide(counts, totals, out=even, where=totals > 0)
    return Multinomials(np.log(np.maximum(shares, MIN_PROBABILITY)))


def multinomial_log_densities(multinomials: Multinomials, x: Matrix) -> Matrix:
    """(n, k) without the number of orders of the counts, which all classes of a row have in common."""
    return np.asarray(mapped(x, _held) @ multinomials.log_shares.T)


def below_zero(data: Data) -> list[str]:
    """A warning where columns hold numbers below 0."""
    columns = columns_where(data.x, lambda values: values < 0)
    return [f"{columns.size} columns have numbers below 0, which count as 0."] if columns.size else []


def _held(values: Matrix) -> Matrix:
    return np.maximum(values, 0.0)


def column_shares(multinomials: Multinomials) -> JSON:
    """Shares of each column, a list with one for each class; None where there are too many."""
    shares = np.exp(multinomials.log_shares.T)
    return (
        None
        if shares.size > LISTED
        else [{"column": j, "shares": column_shares_} for j, column_shares_ in enumerate(shares.tolist())]
    )
