"""Bins of about equally many rows, for measures that count."""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Vector

MAX_BINS = 16
"""Bins that are chosen at most."""
ROWS = 5
"""Rows of a cell of two binned columns, on average."""


def bins_for(n: int) -> int:
    """Number of bins for n rows: two columns then have a table with at least 5 rows to a cell, as far as possible."""
    return min(MAX_BINS, max(2, math.isqrt(n // ROWS)))


def quantile_bins(x: Vector, count: int) -> Labels:
    """(n,) codes from 0 of at most so many bins. Equal values share a bin; few different values have one each."""
    ordered = np.sort(x)
    new = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1
    cuts = new if new.size < count else np.arange(1, count) * x.size // count
    edges = np.unique(ordered[cuts])
    return np.searchsorted(edges, x, side="right")
