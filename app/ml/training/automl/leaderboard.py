"""Leaderboard of a search: what each candidate did, and which of them are statistically the same.

Differences to the best are fold by fold. Folds share training rows, so their variance is enlarged (Nadeau & Bengio
2003, Machine Learning 52:239); p-values of all candidates are corrected by Holm's method. One fold is divided into
blocks of rows, which are independent given the fit.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import scipy
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Labels, Vector
from app.ml.evaluation.row_losses import metric_of, worse_by
from app.ml.statistics.intervals import CONFIDENCE, Bounds
from app.ml.statistics.metric_value import Metric, metric
from app.ml.statistics.multiple_testing import holm

BLOCKS = 10
"""Blocks of rows of a single fold."""
ALPHA = 0.05


class LeaderboardRow(Wire):
    """One candidate of a search for the best model."""

    id: int = Field(description="Number of the candidate, from 0, in the order of admission.")
    algorithm: str = Field(description="Name of the algorithm.")
    parameters: dict[str, Any] = Field(description="Parameters that differ from their defaults.")
    state: Literal["waiting", "running", "paused", "dropped", "failed", "skipped", "done"] = Field(
        description="done: all folds of all rows. paused: it was not among the best third of its rung when the search "
        "ended. dropped: surely worse than the leader. failed: a fit raised an error. skipped: it was not begun. "
        "waiting and running: the search ended before."
    )
    reason: str | None = Field(None, description="Reason of the state; null: none is needed.")
    rank: int | None = Field(None, description="Rank from 1 among candidates with all folds; null for the others.")
    validation: Metric | None = Field(
        None, description="Metric over the folds that it has; the best of many looks better than it is. Null: none."
    )
    behind: Metric | None = Field(
        None, description="Difference by which it is worse than the first in rank, with an interval; null: not known."
    )
    same_as_best: bool | None = Field(
        None, description="True if the difference may be 0, corrected for the number of candidates; null: not known."
    )
    microseconds_a_row: float | None = Field(
        None, description="Time to prepare and predict the rows of a fold at once, for each of them; null: not known."
    )
    size_bytes: int | None = Field(None, description="Size of the fitted state of one fold; null: not known.")
    seconds: float = Field(0.0, description="Time of its fits and predictions so far.")


class Comparison(NamedTuple):
    """Candidates with all folds, the best first."""

    metric: str
    values: Sequence[Vector]
    """(candidates, blocks) the metric of each fold, or of each block of the only one."""
    folds: int

    @classmethod
    def of(cls, metric: str, losses: Sequence[Sequence[Vector]]) -> Self:
        """losses: (candidates, folds) of rows."""
        values = [np.array([metric_of(metric, block) for block in _blocks(each)]) for each in losses]
        return cls(metric, values, len(losses[0]))

    def behind(self, candidate: int) -> tuple[Metric, float]:
        """The difference by which it is worse than the first, and the two-sided p-value of none."""
        excess = worse_by(self.metric, self.values[candidate], self.values[0])
        count = excess.size
        mean, error = float(excess.mean()), math.sqrt(float(excess.var(ddof=1)) * self._variance_factor(count))
        name = f"{self.metric}_difference"
        if not error > 0:
            return metric(name, mean, None, "", n=count, label=None), 1.0 if mean == 0 else 0.0
        reach = float(scipy.special.stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * error
        p = 2 * float(scipy.special.stdtr(count - 1, -abs(mean) / error))
        bounds = Bounds(mean - reach, mean + reach)
        return metric(name, mean, bounds, "student-t (approximate)", n=count, label=None), p

    def lower_gain(self, values: Vector, confidence: float) -> float:
        """One-sided lower bound of the mean by which values of the folds are better than 0."""
        count = values.size
        error = math.sqrt(float(values.var(ddof=1)) * self._variance_factor(count))
        return float(values.mean()) - float(scipy.special.stdtrit(count - 1, confidence)) * error

    def _variance_factor(self, count: int) -> float:
        return 1 / count + (1 / (self.folds - 1) if self.folds > 1 else 0.0)

    @property
    def differences(self) -> list[tuple[Metric | None, bool]]:
        """The difference of each candidate, and true where it may be 0."""
        others = [self.behind(index) for index in range(1, len(self.values))]
        corrected = holm(np.array([p for _, p in others]))
        return [(None, True), *((metric, bool(p > ALPHA)) for (metric, _), p in zip(others, corrected, strict=True))]


def _blocks(losses: Sequence[Vector]) -> Sequence[Vector]:
    return np.array_split(losses[0], min(BLOCKS, losses[0].size)) if len(losses) == 1 else losses


def pareto_front(costs: np.ndarray) -> Labels:
    """Rows (m,) of costs (n, d), each the lower the better, that no other row beats or equals in all columns.

    >>> pareto_front(np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]])).tolist()
    [0, 1]
    """
    front: list[int] = []
    for row in np.lexsort(costs.T[::-1]):
        if not any((costs[other] <= costs[row]).all() for other in front):
            front.append(int(row))
    return np.array(sorted(front), np.intp)
