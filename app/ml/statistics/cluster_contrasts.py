"""Tests of a column in each cluster against all other rows: rank test of Mann and Whitney, and chi-squared.

The effect size of the rank test is the rank-biserial correlation 2 U / (m n) - 1, from -1 to 1: how much oftener a row
of the cluster has the larger value of two than one outside. That of chi-squared is Cramér's V, from 0 to 1. Neither
depends on the unit of the column, nor on the number of rows. Clusters are made from these columns, so that small
probabilities describe a cluster and prove nothing.

References: Mann & Whitney (1947), Ann. Math. Statist. 18:50; Wendt (1972), Eur. J. Soc. Psychol. 2:463;
Cramér (1946), Mathematical Methods of Statistics, section 21.9.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.statistics.intervals import ratio


class Contrast(NamedTuple):
    """One column in each of k clusters."""

    effects: Vector
    """(k,) effect sizes; NaN where no row is in the cluster, or none outside."""
    p_values: Vector
    """(k,)"""
    inside: Vector
    """(k,) mean of a number, or the share of one category, in the cluster."""
    outside: Vector
    """(k,) the same of all other rows."""
    codes: Labels
    """(k,) that category, whose share differs most; -1 of a number."""


def rank_contrast(values: Vector, labels: Labels, k: int) -> Contrast:
    """Contrast of numbers (n,); rows without one (NaN) do not count."""
    there = ~np.isnan(values)
    values, labels = values[there], labels[there]
    n, inside = values.size, np.bincount(labels, minlength=k).astype(np.float64)
    outside = n - inside
    ranks, ties = _ranks(values)
    above = np.bincount(labels, ranks, k) - inside * (inside + 1) / 2
    pairs = inside * outside
    spread = np.sqrt(pairs / 12 * np.maximum(n + 1 - ties / max(n * (n - 1), 1), 0.0))
    excess = np.maximum(np.abs(above - pairs / 2) - 0.5, 0.0)
    p = np.minimum(2 * scipy.special.ndtr(-ratio(excess, spread)), 1.0)
    p = np.where(spread > 0, p, 1.0)
    sums, total = np.bincount(labels, values, k), values.sum()
    return Contrast(
        2 * ratio(above, pairs) - 1,
        np.where(pairs > 0, p, np.nan),
        ratio(sums, inside),
        ratio(total - sums, outside),
        np.full(k, -1),
    )


def _ranks(values: Vector) -> tuple[Vector, float]:
    """(n,) mean ranks from 1, and the sum of t³ - t over groups of t equal values."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    counts = counts.astype(np.float64)
    means = np.cumsum(counts) - (counts - 1) / 2
    return means[places], float((counts**3 - counts).sum())


def category_contrast(codes: Labels, labels: Labels, k: int, levels: int) -> Contrast:
    """Contrast of codes (n,) of so many categories; rows with a negative one do not count."""
    there = codes >= 0
    counts = np.bincount(labels[there] * levels + codes[there], minlength=k * levels).reshape(k, levels).astype(float)
    totals, inside = counts.sum(axis=0), counts.sum(axis=1)
    n = totals.sum()
    outside = n - inside
    pairs = inside * outside
    gaps = counts - inside[:, None] * totals / max(n, 1.0)
    squared = ratio(n**2 * np.nan_to_num(ratio(gaps**2, totals)).sum(axis=1), pairs)
    degrees = max(int((totals > 0).sum()) - 1, 0)
    p = scipy.special.chdtrc(degrees, squared) if degrees else np.ones(k)
    shares = _shares(counts, totals, inside, outside)
    code = np.nan_to_num(shares[0] - shares[1], nan=-2.0).argmax(axis=1)
    cells = np.arange(k), code
    return Contrast(
        np.sqrt(squared / max(n, 1.0)), np.where(pairs > 0, p, np.nan), shares[0][cells], shares[1][cells], code
    )


def _shares(counts: Matrix, totals: Vector, inside: Vector, outside: Vector) -> tuple[Matrix, Matrix]:
    """(k, levels) of each category, in the cluster and outside."""
    return ratio(counts, inside[:, None]), ratio(totals - counts, outside[:, None])
