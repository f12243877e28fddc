"""Mutual information of a column of numbers by the distances of nearest rows, without bins. In nats.

Of two columns of numbers, each divided by its standard deviation, let ε_i be the distance max(|Δx|, |Δy|) of row i to
its k-th nearest row, and n_x, n_y the rows that are nearer than ε_i in one column alone, the row itself among them.
Then (Kraskov, Stögbauer & Grassberger's first estimate)

    I = ψ(n) + ⟨ψ(k)⟩ − ⟨ψ(n_x) + ψ(n_y)⟩.

With classes instead of y, let ε_i be the distance to the k-th nearest row of the same class of n_c rows, and m_i the
rows of any class that are nearer (Ross):

    I = ψ(n) + ⟨ψ(k_i)⟩ − ⟨ψ(n_c)⟩ − ⟨ψ(m_i)⟩.

A row with more than k equals has ε_i = 0 and counts its equals, itself among them, as k (Gao et al.): no noise is
added to break ties. Rows that are alone in their class do not count. The value does not go below 0. Its interval takes
the terms of the mean for independent.

The terms depend on each other through their neighbours, so that the interval is somewhat narrow. Coverage of 95 %
intervals in 1,000 simulations, k = 3: two normal columns of correlation 0.6, and a column that is normal in each of two
classes, 1.5 standard deviations apart:

| rows | two columns | column and classes |
|---|---|---|
| 100 | .84 | .89 |
| 300 | .88 | .93 |
| 1,000 | .91 | .93 |
| 3,000 | .90 | .94 |

References: Kraskov, Stögbauer & Grassberger (2004), Phys. Rev. E 69:066138, eq. 8; Ross (2014), PLoS ONE 9:e87357; Gao,
Kannan, Oh & Viswanath (2017), NeurIPS 30:5986, for equal rows.
"""

import math

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.dependence.compiled.neighbour_counts import class_counts, pair_counts
from app.ml.numerics.dependence.dependence import UNDEFINED, Dependence


def of_numbers(x: Vector, y: Vector, k: int) -> Dependence:
    """Information of two columns of numbers (n,); NaN for a constant one, and for k rows or fewer."""
    if x.size <= k or np.ptp(x) == 0 or np.ptp(y) == 0:
        return UNDEFINED
    x, y = _scaled(x), _scaled(y)
    by_x, by_y = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    start = np.linspace(0, x.size, max(1, math.isqrt(x.size // k)) + 1).astype(np.int64)
    strip = np.empty(x.size, np.int64)
    strip[by_x] = np.repeat(np.arange(start.size - 1), np.diff(start))
    order = by_y[np.argsort(strip[by_y], kind="stable")]
    equal, (near_x, near_y) = _equal(x, y)[order], np.empty((2, x.size), np.int64)
    pair_counts(
        x[order],
        y[order],
        x[by_x],
        y[by_y],
        _places(by_x)[order],
        _places(by_y)[order],
        start,
        equal,
        k,
        near_x,
        near_y,
    )
    digamma = _digamma(x.size)
    return _mean(digamma[x.size] + digamma[np.where(equal > k, equal, k)] - digamma[near_x] - digamma[near_y])


def of_classes(x: Vector, codes: Labels, k: int) -> Dependence:
    """Information of a column of numbers and one of classes (n,) each; NaN for a constant one."""
    count = np.bincount(codes)
    kept = count[codes] > 1
    x, codes = x[kept], np.unique(codes[kept], return_inverse=True)[1]
    if x.size == 0 or np.ptp(x) == 0 or codes.max() == 0:
        return UNDEFINED
    order = np.argsort(x, kind="stable")
    codes = codes[order]
    start = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
    neighbours, near = np.empty(x.size, np.int64), np.empty(x.size, np.int64)
    by_class = np.argsort(codes, kind="stable").astype(np.int64)
    class_counts(x[order], by_class, start, k, neighbours, near)
    digamma = _digamma(x.size)
    return _mean(digamma[x.size] + digamma[neighbours] - digamma[np.diff(start)[codes]] - digamma[near])


def _scaled(x: Vector) -> Vector:
    """In standard deviations. Divided by the largest first: no square overflows."""
    x = x / np.abs(x).max()
    return np.asarray(x / x.std())


def _places(order: Labels) -> Labels:
    """(n,) where each of the rows stands in an order of them."""
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return places


def _equal(x: Vector, y: Vector) -> Labels:
    """(n,) rows with the same pair of values as each."""
    order = np.lexsort((y, x))
    a, b = x[order], y[order]
    group = np.concatenate([[0], np.cumsum((a[1:] != a[:-1]) | (b[1:] != b[:-1]))])
    equal = np.empty(x.size, np.int64)
    equal[order] = np.bincount(group)[group]
    return equal


def _digamma(n: int) -> Vector:
    """(n + 1,) ψ of the whole numbers; that of 0 is not used."""
    return np.concatenate([[0.0], scipy.special.digamma(np.arange(1, n + 1))])


def _mean(terms: Vector) -> Dependence:
    return Dependence.of_information(float(terms.mean()), 0.0, float(terms.std()), terms.size)
