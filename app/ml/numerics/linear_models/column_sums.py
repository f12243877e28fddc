"""Contributions of columns to scores that are sums of one function of each column: linear forms and additive models.

The Shapley value of such a sum is what the column adds beyond its mean over the training rows, whatever the others are.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, LinearForm, Matrix, Vector


class LinearScores(NamedTuple):
    """Scores that are linear in the columns."""

    form: LinearForm
    centre: Vector
    """(d,) mean of each column over the training rows."""
    unit: str

    @property
    def method(self) -> str:
        return "linear"

    def raw(self, x: Matrix) -> Matrix:
        """(n, k) the scores of rows (n, d)."""
        return np.asarray(x @ self.form.coef + self.form.intercept)

    def explained(self, players: Labels) -> "ExplainedSum":
        """players: (d,) the player of each column."""
        coef, count = self.form.coef, _count(players)
        weights = np.zeros((coef.shape[1], len(coef), count))
        weights[:, np.arange(len(coef)), players] = coef.T

        def contributions(x: Matrix) -> NDArray[np.float64]:
            if isinstance(x, np.ndarray):
                return np.stack([(x - self.centre) @ part for part in weights], axis=1)
            return np.stack([np.asarray(x @ part - self.centre @ part) for part in weights], axis=1)  # sparse rows

        return ExplainedSum(self.raw(self.centre[None])[0], contributions)


class AdditiveScores(NamedTuple):
    """A score that is a mean and the sum of one function of each column."""

    mean: float
    predict: Callable[[Matrix], Vector]
    components: Callable[[Matrix], Matrix]
    """Maps rows (n, d) to what each column adds (n, d), of mean 0 over the training rows."""
    unit: str = "target"

    @property
    def method(self) -> str:
        return "additive"

    def raw(self, x: Matrix) -> Matrix:
        """(n, 1) the scores of rows (n, d)."""
        return self.predict(x)[:, None]

    def explained(self, players: Labels) -> "ExplainedSum":
        """players: (d,) the player of each column."""
        joined = np.eye(_count(players))[players]
        return ExplainedSum(np.array([self.mean]), lambda x: (self.components(x) @ joined)[:, None])


class ExplainedSum(NamedTuple):
    """Scores of a sum, ready to explain rows."""

    mean: Vector
    """(k,) scores where all players are at their mean."""
    contributions: Callable[[Matrix], NDArray[np.float64]]
    """Maps rows (n, d) to (n, k, players)."""

    @property
    def cost(self) -> float:
        return 1.0


def _count(players: Labels) -> int:
    return int(players.max(initial=-1)) + 1
