"""Error bars: exact for proportions, bootstrap for the rest, Student's t for means of a few folds.

References: Clopper & Pearson (1934), Biometrika 26:404; Efron (1979), Ann. Statist. 7:1.
"""

from typing import NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from app.ml.contract import Labels, Matrix, Vector

CONFIDENCE = 0.95
RESAMPLES = 1000
GROUPS = 1000
"""More rows than this are resampled in random groups, so the cost stays that of a small table."""


class Bounds(NamedTuple):
    lower: float
    upper: float


def clopper_pearson(successes: int, trials: int, confidence: float = CONFIDENCE) -> Bounds | None:
    """The proportions that an exact binomial test does not reject; None without trials."""
    if trials == 0:
        return None
    tail = (1 - confidence) / 2
    lower = scipy.special.betaincinv(successes, trials - successes + 1, tail) if successes else 0.0
    upper = scipy.special.betaincinv(successes + 1, trials - successes, 1 - tail) if successes < trials else 1.0
    return Bounds(float(lower), float(upper))


def student_t(values: Vector, confidence: float = CONFIDENCE) -> Bounds | None:
    """Bounds of the mean of normal values; None for fewer than two."""
    if values.size < 2:
        return None
    reach = scipy.special.stdtrit(values.size - 1, (1 + confidence) / 2) * values.std(ddof=1) / np.sqrt(values.size)
    return Bounds(float(values.mean() - reach), float(values.mean() + reach))


def percentile(replicates: ArrayLike, confidence: float = CONFIDENCE) -> Bounds | None:
    """The middle `confidence` of bootstrap replicates (B5.13) that are defined; None if hardly any is."""
    values = np.asarray(replicates, np.float64)
    values = values[np.isfinite(values)]
    if values.size < RESAMPLES // 10:
        return None
    lower, upper = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Bounds(float(lower), float(upper))


class Resamples(NamedTuple):
    """Draws of n rows with replacement, shared by all figures of one evaluation.

    Every figure is a function of sums over rows, so a draw needs only to say how often each row counts.
    Many rows are first dealt at random into equal groups, and groups are drawn: sums over random groups
    are as independent as rows are, so the spread comes out the same for a bounded amount of work.
    """

    group: Labels
    """(n,) the group of each row."""
    counts: Matrix
    """(RESAMPLES, groups) how often each group was drawn."""

    @classmethod
    def of(cls, n: int, rng: np.random.Generator) -> Self:
        groups = min(n, GROUPS)
        picks = rng.integers(0, groups, (RESAMPLES, groups))
        picks += np.arange(RESAMPLES)[:, None] * groups
        counts = np.bincount(picks.ravel(), minlength=RESAMPLES * groups).reshape(RESAMPLES, groups)
        return cls(rng.permutation(n) % groups, counts.astype(np.float64))

    def sums(self, values: Vector) -> Vector:
        """The sum of values (n,) over each draw, shape (RESAMPLES,)."""
        return self.counts @ np.bincount(self.group, values, self.counts.shape[1])

    def tallies(self, codes: Labels, k: int) -> Matrix:
        """How often each code 0 … k-1 is in each draw, shape (RESAMPLES, k). Codes below 0 do not count."""
        kept = codes >= 0
        cells = self.group[kept] * k + codes[kept]
        table = np.bincount(cells, minlength=self.counts.shape[1] * k).reshape(-1, k)
        return self.counts @ table.astype(np.float64)

    def size(self) -> Vector:
        """Rows in each draw, shape (RESAMPLES,); equal to n unless groups differ in size."""
        return self.sums(np.ones(self.group.size))


def ratio(above: ArrayLike, below: ArrayLike) -> NDArray[np.float64]:
    """The quotient, NaN where `below` is 0 (B3.17: undefined, never 0)."""
    top, bottom = np.asarray(above, np.float64), np.asarray(below, np.float64)
    quotient = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    np.divide(top, bottom, out=quotient, where=bottom > 0)
    return quotient
