"""Mutual information of a column of numbers by the distances of nearest rows, without bins. In nats.

Of two columns of numbers, each divided by its standard deviation, let ε_i be the distance max(|Δx|, |Δy|) of row i to
its k-th nearest row, and n_x, n_y the rows that are nearer than ε_i in one column alone, the row itself among them.
Then (Kraskov, Stögbauer & Grassberger's first estimate)

    I = ψ(n) + ψ(k) − ⟨ψ(n_x) + ψ(n_y)⟩.

With classes instead of y, let ε_i be the distance to the k-th nearest row of the same class of n_c rows, and m_i the
rows of any class that are nearer (Ross):

    I = ψ(n) + ⟨ψ(k_i)⟩ − ⟨ψ(n_c)⟩ − ⟨ψ(m_i)⟩.

Rows that are alone in their class do not count. Columns with equal values get noise of 10⁻¹⁰ of their standard
deviation, always the same, as those estimates are of densities; columns without have none. Rounded to tenths of a
standard deviation, two columns of 150 rows so have an error of 0.00 on average. Counting equal rows instead (Gao et
al. 2017) gave 0.19 too much. The value does not go below 0.

The terms depend on each other through their neighbours, so that the interval is somewhat narrow. Coverage of 95 %
intervals in 1,000 simulations, k = 3: two normal columns of correlation 0.6, and a column that is normal in each of two
classes, 1.5 standard deviations apart:

| rows | two columns | column and classes |
|---|---|---|
| 100 | .84 | .89 |
| 300 | .88 | .93 |
| 1,000 | .91 | .93 |
| 3,000 | .90 | .94 |

References: Kraskov, Stögbauer & Grassberger (2004), Phys. Rev. E 69:066138, eq. 8; Ross (2014), PLoS ONE 9:e87357.
"""

import math

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.dependence.compiled.neighbour_counts import class_counts, pair_counts
from app.ml.numerics.dependence.dependence import UNDEFINED, Dependence

NOISE = 1e-10
"""Standard deviations that part equal values."""


def of_numbers(x: Vector, y: Vector, k: int) -> Dependence:
    """Information of two columns of numbers (n,); NaN for a constant one, and for k rows or fewer."""
    if x.size <= k or np.ptp(x) == 0 or np.ptp(y) == 0:
        return UNDEFINED
    rng = np.random.Generator(np.random.PCG64(0))
    x, y = standard(x, rng), standard(y, rng)
    by_x, by_y = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    start = np.linspace(0, x.size, max(1, math.isqrt(x.size // k)) + 1).astype(np.int64)
    strip = np.empty(x.size, np.int64)
    strip[by_x] = np.repeat(np.arange(start.size - 1), np.diff(start))
    order = by_y[np.argsort(strip[by_y], kind="stable")]
    near_x, near_y = np.empty((2, x.size), np.int64)
    places = _places(by_x)[order], _places(by_y)[order]
    pair_counts(x[order], y[order], x[by_x], y[by_y], *places, start, k, near_x, near_y)
    digamma = _digamma(x.size)
    return _mean(digamma[x.size] + digamma[k] - digamma[near_x] - digamma[near_y])


def of_classes(x: Vector, codes: Labels, k: int) -> Dependence:
    """Information of a column of numbers and one of classes (n,) each; NaN for a constant one."""
    count = np.bincount(codes)
    repeated = count[codes] > 1
    x, codes = x[repeated], np.unique(codes[repeated], return_inverse=True)[1]
    if x.size == 0 or np.ptp(x) == 0 or codes.max() == 0:
        return UNDEFINED
    x = standard(x, np.random.Generator(np.random.PCG64(0)))
    order = np.argsort(x, kind="stable")
    codes = codes[order]
    sizes = np.bincount(codes)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    near = np.empty(x.size, np.int64)
    class_counts(x[order], np.argsort(codes, kind="stable").astype(np.int64), start, k, near)
    digamma = _digamma(x.size)
    neighbours = np.minimum(k, sizes - 1)
    return _mean(digamma[x.size] + digamma[neighbours[codes]] - digamma[sizes[codes]] - digamma[near])


def standard(x: Vector, rng: np.random.Generator) -> Vector:
    """(n,) with mean 0 and standard deviation 1, equal values apart by noise. No square overflows."""
    x = x - x.mean()
    x = x / np.abs(x).max()
    x = x / x.std()
    if np.unique(x).size < x.size:
        x = x + NOISE * rng.standard_normal(x.size)
    return np.asarray(x)


def _places(order: Labels) -> Labels:
    """(n,) where each of the rows stands in an order of them."""
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return places


def _digamma(n: int) -> Vector:
    """(n + 1,) ψ of the whole numbers; that of 0 is not used."""
    return np.concatenate([[0.0], scipy.special.digamma(np.arange(1, n + 1))])


def _mean(terms: Vector) -> Dependence:
    return Dependence.of_information(float(terms.mean()), 0.0, float(terms.std()), terms.size)
