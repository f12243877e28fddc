"""Loss of a sum of trees, of numbers or of classes, and its slopes for each of many rows."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.contract.threads import count_threads, run_at_once
from app.ml.numerics.boosting.compiled.rows import gradients_of
from app.ml.numerics.boosting.gradient_trees import BATCH, MIN_PARALLEL_ROWS, NUMBERS, Slopes
from app.ml.numerics.class_probabilities.log_totals import log_total
from app.ml.numerics.linear_algebra.solve import near_one
from app.ml.numerics.row_blocks import sections
from app.ml.numerics.trees.forest import Trees, total_of_grown

BATCH_AT_ONCE = 2**14
"""Rows of a batch of one of several threads, which wait for each other at its ends."""


class RowSums(NamedTuple):
    """n rows, and the sums of trees so far."""

    data: Data
    classes: int
    raw: Matrix | NDArray[np.float32]
    """(k, n) the sums of the trees so far; of more than two classes less a number of the row, as `begin` states."""
    gradients: NDArray[np.float32]
    """(n,) the slopes of one sum at a time."""
    unit: float
    """Factor that brings the gradients near 1, so that four bytes are enough."""
    weights: Vector
    """(n,); none if they do not differ."""
    weight: float
    """Weight of all rows; of rows that differ, about the largest, to count in."""

    @classmethod
    def of(cls, data: Data, base: Vector, classes: int, offset: Vector | float = 0.0) -> "RowSums":
        n, heaviest = len(data.x), float(data.weights.max())
        alike = data.weights.min() == heaviest
        raw = np.empty((len(base), n), np.float32 if classes else np.float64)
        raw[:] = base[:, None] + offset
        rests = data.y if classes or isinstance(offset, float) else data.y - offset
        unit = 1.0 if classes else near_one(float(max(rests.max() - base[0], base[0] - rests.min())))
        weights, weight = (data.weights[:0], heaviest) if alike else (data.weights, 1 / near_one(heaviest))
        return cls(data, classes, raw, np.empty(n, np.float32), unit, weights, weight)

    @property
    def targets(self) -> Matrix:
        """(n, k) numbers, or truths of the class: of two classes only of the second."""
        return self.data.targets[:, -len(self.raw) :]

    def begin(self) -> None:
        """A round. Of more than two classes the sums become logarithms of probabilities, so that all trees of the round
        start from the same: each changes one sum.
        """
        for batch in batches(len(self.gradients) if len(self.raw) > 1 else 0, len(self.raw)):
            raw = self.raw[:, batch].astype(np.float64)
            raw -= log_total(raw)
            self.raw[:, batch] = raw

    def slopes(self, k: int) -> Slopes:
        """Slopes of one sum at the current scores of the rows."""
        n = len(self.gradients)
        threads = count_threads() if n >= MIN_PARALLEL_ROWS else 1
        calls = [partial(self._slopes, k, section) for section in sections(n, 1)] if threads > 1 else []
        steepest, most = zip(*(run_at_once(calls) if calls else [self._slopes(k, slice(0, n))]), strict=True)
        largest = max(steepest), max(most)
        return Slopes(self.gradients, not self.classes, self.unit, self.weights, self.weight, largest)

    def _slopes(self, k: int, section: slice) -> tuple[float, float]:
        """Write the gradients of these rows: the largest of both slopes."""
        steepest, curved = 0.0, 0.0
        step = BATCH if section.start == 0 and section.stop == len(self.gradients) else BATCH_AT_ONCE
        for first in range(section.start, section.stop, step):
            batch = slice(first, min(first + step, section.stop))
            weighed = self.weights[batch], 1 / self.weight, not self.classes, self.unit
            most = gradients_of(self._predicted(k, batch), self.targets[batch, k], *weighed, self.gradients[batch])
            steepest, curved = max(steepest, most[0]), max(curved, most[1])
        return steepest, curved

    def _predicted(self, k: int, batch: slice) -> Vector:
        """The number, or the probability of the class."""
        raw = self.raw[k, batch].astype(np.float64)
        if not self.classes:
            return raw
        return share(raw) if len(self.raw) == 1 else np.exp(raw)

    def leaf_value(self, k: int) -> None:
        """None: the best values of leaves are Newton steps."""

    def loss(self, rows: Iterable[Labels]) -> float:
        """Mean squared error, or mean minus log-likelihood, of some rows."""
        losses = weights = 0.0
        for some in rows:
            raw, targets = self.raw[:, some].astype(np.float64), self.targets[some].T
            if not self.classes:
                each = (raw[0] - targets[0]) ** 2
            elif len(raw) == 1:
                each = np.logaddexp(0, raw[0]) - targets[0] * raw[0]
            else:
                each = log_total(raw) - np.einsum("ki,ki->i", targets, raw)
            losses += float(each @ self.data.weights[some])
            weights += float(self.data.weights[some].sum())
        return losses / weights

    def add(self, k: int, tree: Trees, rows: Iterable[Labels]) -> None:
        """The values of the tree for rows that it did not grow from."""
        copied = tree._replace(left=tree.left.copy())  # its packed nodes are forgotten with it
        for some in rows:
            self.raw[k, some] += total_of_grown(copied, self.data.x[some])[:, 0]


def batches(rows: int, each: int = 1) -> list[slice]:
    """Batches of rows, of which so many numbers are computed each."""
    step = min(BATCH, max(1, NUMBERS // each))
    return [slice(first, first + step) for first in range(0, rows, step)]


def others(train_mask: NDArray[np.bool_], each: int) -> Iterator[Labels]:
    """Places of the false ones, some at a time."""
    for batch in batches(train_mask.size, each):
        yield np.flatnonzero(~train_mask[batch]) + batch.start


@np.errstate(over="ignore")  # infinitely unlikely: 0
def share(raw: Vector) -> Vector:
    """The logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-raw)))
