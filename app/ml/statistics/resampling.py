"""The rows of one evaluation: sums over them and over draws of them, which every metric is a function of.

Rows that count differently, and rows of groups whose members are alike, have fewer rows' worth of information. A share
p of theirs with the variance v counts as that of p(1 − p)/v rows, with which the exact interval of a share is taken
(Korn & Graubard 1998, Survey Methodology 24:193).
"""

from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.effective_rows import effective_rows
from app.ml.statistics.intervals import (
    CONFIDENCE,
    RESAMPLES,
    Bounds,
    Resamples,
    clopper_pearson,
    mean_of_scores,
    ratio,
    score,
)
from app.ml.statistics.metric_value import Metric, metric, proportion
from app.ml.statistics.studentised_ratios import log_ratio


class Tally(NamedTuple):
    """Counts of each code 0 … k-1 among the rows."""

    rows: Labels
    """(k,)"""
    total: Vector
    """(k,) the same by weight."""
    units: Matrix
    """(groups, k) by weight, in every group of rows that is drawn as a whole."""

    def from_last(self) -> "Tally":
        """Counts of each code and all after it."""
        return Tally(*(np.flip(np.flip(part, -1).cumsum(axis=-1), -1) for part in self))


class StandardError(NamedTuple):
    """Standard error by the infinitesimal jackknife."""

    value: float
    """NaN without draws."""
    freedom: float
    """Number of rows, or of groups of rows, that carry the variance (Kish's number of squares)."""


class Rows(NamedTuple):
    """Draws of rows, and how much each row counts."""

    draws: Resamples
    weights: Vector | None = None

    @property
    def alike(self) -> bool:
        """True if all rows count the same and are independent of each other."""
        return self.weights is None and not self.draws.clustered

    def total(self, values: Vector) -> float:
        return float(values.sum() if self.weights is None else self.weights @ values)

    def mean(self, values: Vector) -> float:
        return float(np.average(values, weights=self.weights))

    def units(self, values: Vector) -> Vector:
        """The sum in each group of rows that is drawn as a whole, shape (groups,)."""
        return self.draws.units(values if self.weights is None else self.weights * values)

    def sums(self, values: Vector) -> Vector:
        """The sum over each draw, shape (draws,)."""
        return self.draws.counts @ self.units(values)

    def means(self, values: Vector) -> Vector:
        return ratio(self.sums(values), self.sums(np.ones(values.size)))

    def log_ratio(self, above: Vector, below: Vector, confidence: float = CONFIDENCE) -> Bounds | None:
        """Bounds of the logarithm of the ratio of the sums of two values that are not negative; None without draws."""
        return log_ratio(self.units(above), self.units(below), self.draws.counts[:RESAMPLES], confidence)

    def pairs(self, sums: Vector) -> Vector:
        """(1 + draws,) sums over pairs of rows, in all rows and in each draw. sums: (n,) over the pairs of each row.

        Of a draw it is the part that is linear in how often each row counts (Hájek's projection): the rest vanishes as
        rows grow in number. No row makes a pair with itself, however often it is drawn. Rows count once.
        """
        whole = sums.sum() / 2
        return np.concatenate([[whole], self.draws.sums(sums) - whole])

    def mean_share(self, name: str, part: Tally, whole: Tally) -> Metric:
        """The mean over codes of the part of the rows of each, without codes that have no rows."""
        shares, trials, pulls = self.shares(part, whole, whole.total > 0)
        ends = score(shares, trials, max(1.0, trials.sum() - shares.size))
        return self.mean_score(name, shares, *ends, pulls, n=int(whole.rows.sum()))

    def shares(self, part: Tally, whole: Tally, codes: Any) -> tuple[Vector, Vector, Matrix]:
        """Shares (k,) of the rows of these codes, as many trials as each counts for, and pulls (groups, k) on it."""
        total, units = whole.total[codes], whole.units[:, codes]
        shares = part.total[codes] / total
        pulls = (part.units[:, codes] - shares * units) / total
        rows = whole.rows[codes].astype(np.float64)
        if self.alike:
            return shares, rows, pulls
        variances = (pulls * pulls).sum(axis=0) * len(units) / max(1, len(units) - 1)
        informative = ratio(shares * (1 - shares), variances)
        worths = effective_rows(units.T)
        if self.draws.clustered:
            groups = (units > 0).sum(axis=0)
            worths = np.where(np.isnan(informative), worths, informative * _of_few_groups(groups, rows))
        else:
            worths = np.fmin(informative, worths)
        return shares, np.clip(worths, 1.0, rows), pulls

    def worths(self, whole: Tally) -> Vector:
        """(k,) the effective number of the rows of each code, or of the groups of rows that are alike."""
        return whole.rows.astype(np.float64) if self.alike else effective_rows(whole.units.T)

    def mean_score(self, name: str, values: Vector, lower: Vector, upper: Vector, pulls: Matrix, *, n: int) -> Metric:
        """The mean of scores (k,) with intervals of their own. pulls: (groups, k) of each group on each score."""
        bounds = mean_of_scores(values, lower, upper, _correlations(pulls)) if self.draws.counts.size else None
        value = float(values.mean()) if values.size else np.nan
        return metric(name, value, bounds, "score (of shares)", n=n, label=None)

    def standard_error(self, slopes: Vector) -> StandardError:
        """Standard error of a metric with derivatives `slopes` (n,) by the weights of rows."""
        pulls = slopes if self.weights is None else slopes * self.weights
        return self.error_of_pulls(self.draws.units(pulls) if self.draws.clustered else pulls)

    def error_of_pulls(self, pulls: Vector) -> StandardError:
        """Standard error of a metric on which independent rows, or groups of rows, pull so much."""
        if not self.draws.counts.size:
            return StandardError(np.nan, 0.0)
        squares = pulls * pulls
        return StandardError(float(np.sqrt(squares.sum())), float(effective_rows(squares)))

    def tally(self, codes: Labels, k: int) -> Tally:
        """Codes below 0 do not count."""
        there, groups = codes >= 0, self.draws.counts.shape[1]
        weights = None if self.weights is None else self.weights[there]
        cells = np.bincount(self.draws.group[there] * k + codes[there], weights, groups * k)
        units = cells.reshape(groups, k).astype(np.float64)
        return Tally(np.bincount(codes[there], minlength=k), units.sum(axis=0), units)

    def share(
        self,
        name: str,
        part: Tally,
        whole: Tally,
        code: int = 0,
        label: str | None = None,
        *,
        confidence: float = CONFIDENCE,
    ) -> Metric:
        """The part of the rows of a code: with exact bounds where all rows count the same."""
        rows = int(whole.rows[code])
        if self.alike or not whole.total[code] > 0:
            return proportion(name, int(part.rows[code]), rows, label, confidence=confidence)
        (share,), (trials,), _ = self.shares(part, whole, [code])
        bounds = clopper_pearson(share * trials, trials, confidence) if self.draws.counts.size else None
        how = "clopper-pearson (of effective rows)"
        return metric(name, float(share), bounds, how, n=rows, label=label, confidence=confidence)

    def worth(self, chosen: NDArray[np.bool_] | None = None) -> int:
        """Effective number of rows, or of the groups of rows that are alike. chosen: (n,) of these only."""
        counted = np.ones(self.draws.group.size) if chosen is None else chosen.astype(np.float64)
        if self.draws.clustered:
            return int(effective_rows(self.units(counted)))
        return int(effective_rows(counted if self.weights is None else counted * self.weights))


def _of_few_groups(groups: Labels, rows: Vector) -> Vector:
    """(k,) factor on a number of rows that a variance between so many groups states (Korn & Graubard's eq. 2)."""
    quantiles = (scipy.special.stdtrit(np.maximum(count - 1.0, 1.0), (1 + CONFIDENCE) / 2) for count in (rows, groups))
    return np.asarray((next(quantiles) / next(quantiles)) ** 2)


def _correlations(pulls: Matrix) -> Matrix:
    """(k, k) of columns (m, k) of mean 0: one without spread is independent of the others."""
    products = pulls.T @ pulls
    sizes = np.sqrt(np.diag(products))
    correlations = products / np.outer(*[np.where(sizes > 0, sizes, 1.0)] * 2)
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations)
