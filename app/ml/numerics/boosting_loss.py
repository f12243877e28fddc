"""The loss of a sum of trees, of numbers or of classes, and where it leads down for each of many rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Data, Labels, Matrix, Vector
from app.ml.numerics.boosting import LOT, Slopes
from app.ml.numerics.kernels.boosting import tell
from app.ml.numerics.trees import Trees, total

FAR = 1024
"""Rows held out whose columns are gathered at a time."""


class Course(NamedTuple):
    """n rows, and where they stand."""

    data: Data
    classes: int
    raw: Matrix
    """(k, n) the sums of the trees so far."""
    logs: Vector
    """(n,) logarithm of Σ e^raw when the round began, of more than two classes: their trees start from the same."""

    @classmethod
    def of(cls, data: Data, base: Vector, classes: int) -> "Course":
        raw = np.repeat(base[:, None], len(data.x), axis=1)
        return cls(data, classes, raw, np.empty(len(data.x) if len(base) > 1 else 0))

    @property
    def targets(self) -> Matrix:
        """(n, k) numbers, or truths of the class: of two classes only of the second."""
        return self.data.targets[:, -len(self.raw) :]

    def begin(self) -> None:
        """A round."""
        for lot in _lots(self.logs.size):
            self.logs[lot] = log_total(self.raw[:, lot])

    def slopes(self, k: int, pairs: NDArray[np.float32], units: Vector) -> Slopes:
        """Of one sum; written to `pairs` (n, 2)."""
        weights, largest = self.data.weights, np.zeros(2)
        for lot in _lots(len(pairs)):
            at = self._told(k, lot)
            most = tell(at, self.targets[lot, k], weights[lot], not self.classes, units, pairs[lot])
            largest = np.maximum(largest, most)
        return Slopes(pairs, units, largest, not self.classes and bool(weights.min() == weights.max()))

    def _told(self, k: int, lot: slice) -> Vector:
        """The number, or the probability of the class."""
        raw: Vector = self.raw[k, lot]
        if not self.classes:
            return raw
        return share(raw) if len(self.raw) == 1 else np.exp(raw - self.logs[lot])

    def loss(self, rows: Labels) -> float:
        """Mean squared error, or mean minus log-likelihood, of some rows."""
        losses = weights = 0.0
        for lot in _lots(rows.size):
            some = rows[lot]
            raw, targets = self.raw[:, some], self.targets[some].T
            if not self.classes:
                each = (raw[0] - targets[0]) ** 2
            elif len(raw) == 1:
                each = np.logaddexp(0, raw[0]) - targets[0] * raw[0]
            else:
                each = log_total(raw) - (targets * raw).sum(axis=0)
            losses += float(each @ self.data.weights[some])
            weights += float(self.data.weights[some].sum())
        return losses / weights

    def add(self, k: int, tree: Trees, rows: Labels) -> None:
        """What the tree says of rows that it did not grow from."""
        for lot in _lots(rows.size, FAR):
            some = rows[lot]
            self.raw[k, some] += total(tree, self.data.x[some])[:, 0]


def _lots(rows: int, size: int = LOT) -> list[slice]:
    """Some rows at a time: what is computed of them takes little memory."""
    return [slice(first, first + size) for first in range(0, rows, size)]


def log_total(raw: Matrix) -> Vector:
    """Logarithm of the sum of e^raw over the classes, (n,)."""
    top = raw.max(axis=0)
    logs: Vector = top + np.log(np.exp(raw - top).sum(axis=0))
    return logs


def share(raw: Vector) -> Vector:
    """The logistic function."""
    with np.errstate(over="ignore"):  # infinitely unlikely: 0
        found: Vector = 1 / (1 + np.exp(-raw))
    return found
