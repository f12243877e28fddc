"""The rows of one evaluation: sums over them and over draws of them, which every metric is a function of."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.effective_rows import effective_rows
from app.ml.statistics.intervals import CONFIDENCE, Resamples, mean_of_shares, ratio
from app.ml.statistics.metric_value import Metric, bootstrapped, metric, proportion


class Tally(NamedTuple):
    """Counts of each code 0 … k-1 among the rows."""

    rows: Labels
    """(k,)"""
    total: Vector
    """(k,) the same by weight."""
    drawn: Matrix
    """(draws, k) by weight, in every draw."""

    def from_last(self) -> "Tally":
        """Counts of each code and all after it."""
        return Tally(*(np.flip(np.flip(part, -1).cumsum(axis=-1), -1) for part in self))


class Rows(NamedTuple):
    """Draws of rows, and how much each row counts."""

    draws: Resamples
    weights: Vector | None = None

    def total(self, values: Vector) -> float:
        return float(values.sum() if self.weights is None else self.weights @ values)

    def mean(self, values: Vector) -> float:
        return float(np.average(values, weights=self.weights))

    def sums(self, values: Vector) -> Vector:
        """The sum over each draw, shape (draws,)."""
        return self.draws.sums(values if self.weights is None else self.weights * values)

    def means(self, values: Vector) -> Vector:
        return ratio(self.sums(values), self.sums(np.ones(values.size)))

    def pairs(self, sums: Vector) -> Vector:
        """(1 + draws,) sums over pairs of rows, in all rows and in each draw. sums: (n,) over the pairs of each row.

        Of a draw it is the part that is linear in how often each row counts (Hájek's projection): the rest vanishes as
        rows grow in number. No row makes a pair with itself, however often it is drawn. Rows count once.
        """
        whole = sums.sum() / 2
        return np.concatenate([[whole], self.draws.sums(sums) - whole])

    def worths(self, codes: Labels, k: int) -> Vector:
        """(k,) the effective number of the rows of each code."""
        if self.weights is None:
            return np.bincount(codes, minlength=k).astype(np.float64)
        ends = np.cumsum(np.bincount(codes, minlength=k))[:-1]
        parts = np.split(self.weights[np.argsort(codes, kind="stable")], ends)
        return np.array([effective_rows(part) for part in parts])

    def mean_share(self, name: str, part: Tally, whole: Tally, codes: Labels) -> Metric:
        """The mean over codes of the part of the rows of each, codes (n,) without rows left out."""
        there = whole.total > 0
        shares, trials = (part.total / np.where(there, whole.total, 1.0))[there], self.worths(codes, there.size)[there]
        bounds = mean_of_shares(shares, trials) if self.draws.counts.size else None
        return metric(name, float(shares.mean()), bounds, "score (of independent shares)", n=codes.size, label=None)

    def standard_error(self, slopes: Vector) -> float:
        """Standard error of a metric with derivatives `slopes` (n,) by the weights of rows; NaN without draws."""
        pull = slopes if self.weights is None else slopes * self.weights
        return float(np.sqrt(pull @ pull)) if self.draws.counts.size else np.nan

    def tally(self, codes: Labels, k: int) -> Tally:
        """Codes below 0 do not count."""
        kept = codes >= 0
        rows = np.bincount(codes[kept], minlength=k)
        if self.weights is None:
            return Tally(rows, rows.astype(np.float64), self.draws.tallies(codes, k))
        groups = self.draws.counts.shape[1]
        table = np.bincount(self.draws.group[kept] * k + codes[kept], self.weights[kept], groups * k).reshape(groups, k)
        return Tally(rows, table.sum(axis=0), self.draws.counts @ table)

    def share(
        self,
        name: str,
        part: Tally,
        whole: Tally,
        code: int = 0,
        label: str | None = None,
        *,
        confidence: float = CONFIDENCE,
        kept: NDArray[np.bool_] | None = None,
    ) -> Metric:
        """The part of the rows of a code: with exact bounds where all rows count the same.

        kept: (n,) rows of the code, whose effective number a share of 0 or 1 rests on; None: that of all rows.
        """
        hits, trials = int(part.rows[code]), int(whole.rows[code])
        if self.weights is None:
            return proportion(name, hits, trials, label, confidence=confidence)
        value, drawn = ratio(part.total[code], whole.total[code]), ratio(part.drawn[:, code], whole.drawn[:, code])
        fewest = min(trials, self.worth(kept))
        return bootstrapped(name, value, drawn, trials, label, trials=fewest, confidence=confidence)

    def worth(self, kept: NDArray[np.bool_] | None = None) -> int:
        """Effective number of rows. kept: (n,) of these only."""
        w = np.ones(self.draws.group.size) if self.weights is None else self.weights
        w = w if kept is None else w[kept]
        return int(effective_rows(w))
