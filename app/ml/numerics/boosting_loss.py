"""The loss of a sum of trees, of numbers or of classes, and where it leads down for each of many rows."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Data, Labels, Matrix, Vector
from app.ml.numerics.boosting import LOT, Slopes
from app.ml.numerics.kernels.boosting import tell
from app.ml.numerics.trees import Trees, total

FAR = 512
"""Rows held out whose columns are gathered at a time."""


class Course(NamedTuple):
    """n rows, and where they stand."""

    data: Data
    classes: int
    raw: Matrix
    """(k, n) the sums of the trees so far."""
    logs: Vector
    """(n,) logarithm of Σ e^raw when the round began, of more than two classes: their trees start from the same."""

    told: NDArray[np.float32]
    """(n, 1 or 2) the slopes of one sum at a time."""
    units: Vector
    """(2,) what brings them near 1, so that four bytes are enough; for rows of weight 1 if all weigh the same."""

    @classmethod
    def of(cls, data: Data, base: Vector, classes: int) -> "Course":
        n, weights = len(data.x), data.weights
        raw, alike = np.repeat(base[:, None], n, axis=1), bool(weights.min() == weights.max())
        heaviest = 1.0 if alike else _near_one(float(weights.max()))
        farthest = 1.0 if classes else _near_one(float(max(data.y.max() - base[0], base[0] - data.y.min())))
        logs, told = np.empty(n if len(base) > 1 else 0), np.empty((n, 1 if alike else 2), np.float32)
        return cls(data, classes, raw, logs, told, np.array([farthest * heaviest, heaviest]))

    @property
    def targets(self) -> Matrix:
        """(n, k) numbers, or truths of the class: of two classes only of the second."""
        return self.data.targets[:, -len(self.raw) :]

    def begin(self) -> None:
        """A round."""
        for lot in lots(self.logs.size):
            self.logs[lot] = log_total(self.raw[:, lot])

    def slopes(self, k: int) -> Slopes:
        """Of one sum, where the rows stand now."""
        weights, largest, numbers = self.data.weights, np.zeros(2), not self.classes
        for lot in lots(len(self.told)):
            most = tell(self._told(k, lot), self.targets[lot, k], weights[lot], numbers, self.units, self.told[lot])
            largest = np.maximum(largest, most)
        weight = weights[0] if self.told.shape[1] == 1 else 1.0
        return Slopes(self.told, self.units / weight, largest, numbers)

    def _told(self, k: int, lot: slice) -> Vector:
        """The number, or the probability of the class."""
        raw: Vector = self.raw[k, lot]
        if not self.classes:
            return raw
        return share(raw) if len(self.raw) == 1 else np.exp(raw - self.logs[lot])

    def loss(self, rows: Labels) -> float:
        """Mean squared error, or mean minus log-likelihood, of some rows."""
        losses = weights = 0.0
        for lot in lots(rows.size):
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
        for lot in lots(rows.size, FAR):
            some = rows[lot]
            self.raw[k, some] += total(tree, self.data.x[some])[:, 0]


def lots(rows: int, size: int = LOT) -> list[slice]:
    """Some rows at a time: what is computed of them takes little memory."""
    return [slice(first, first + size) for first in range(0, rows, size)]


def _near_one(size: float) -> float:
    """The power of two that brings this between 1/2 and 1."""
    return 2.0 ** -math.frexp(size)[1]


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
