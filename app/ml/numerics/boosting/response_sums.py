"""Sums of trees for losses of numbers other than the squared one, and their slopes for each of many rows."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.contract.threads import count_threads, run_at_once
from app.ml.numerics.boosting.gradient_trees import MIN_PARALLEL_ROWS, NO_CURVATURES, LeafValue, Slopes
from app.ml.numerics.boosting.losses import BATCH_AT_ONCE
from app.ml.numerics.boosting.response_losses import ResponseLoss, weighted_quantile
from app.ml.numerics.linear_algebra.solve import near_one
from app.ml.numerics.row_blocks import sections
from app.ml.numerics.trees.forest import Trees, total_of_grown


class ResponseSums(NamedTuple):
    """n rows, and a sum of trees for each of k losses, as `RowSums` of the squared and the logistic loss."""

    losses: tuple[ResponseLoss, ...]
    x: Matrix
    y: Vector
    """(n,) numbers, or truths of the second class."""
    raw: Matrix
    """(k, n) the sums of the trees so far."""
    gradients: NDArray[np.float32]
    """(n,) the slopes of one sum at a time."""
    curvatures: NDArray[np.float32]
    units: tuple[float, ...]
    all_weights: Vector
    weights: Vector
    """(n,); none if they do not differ."""
    weight: float
    """Weight of all rows; of rows that differ, about the largest, to count in."""

    @classmethod
    def of(cls, losses: Sequence[ResponseLoss], data: Data, base: Vector, offset: Vector | float) -> "ResponseSums":
        """base: (k,). offset: (n,) beside the trees; 0 where there is none."""
        x, y, weights = data.x, np.ascontiguousarray(data.targets[:, -1]), data.weights
        n, heaviest = len(x), float(weights.max())
        alike = weights.min() == heaviest
        curvatures = np.empty(n if any(loss.bends for loss in losses) else 0, np.float32)
        units = tuple(loss.unit(start) for loss, start in zip(losses, base.tolist(), strict=True))
        row_weights, weight = (weights[:0], heaviest) if alike else (weights, 1 / near_one(heaviest))
        raw = np.array(np.broadcast_to(base[:, None] + offset, (len(losses), n)))
        return cls(tuple(losses), x, y, raw, np.empty(n, np.float32), curvatures, units, weights, row_weights, weight)

    def begin(self) -> None:
        """A round: sums need nothing."""

    def slopes(self, k: int) -> Slopes:
        """Slopes of one sum at the current scores of the rows."""
        n, bends = len(self.gradients), self.losses[k].bends
        threads = count_threads() if n >= MIN_PARALLEL_ROWS else 1
        largest = run_at_once(
            [partial(self._slopes, k, section) for section in (sections(n, 1) if threads > 1 else [slice(0, n)])]
        )
        steepest, most = (max(part) for part in zip(*largest, strict=True))
        curvatures, unit = (self.curvatures, self.units[k]) if bends else (NO_CURVATURES, 1.0)
        weighed = self.weights, self.weight
        return Slopes(self.gradients, True, self.units[k], *weighed, (steepest, most), curvatures, unit)

    def _slopes(self, k: int, section: slice) -> tuple[float, float]:
        """Write the slopes of these rows: the largest of both, with their weights."""
        loss, unit, steepest, most = self.losses[k], self.units[k], 0.0, 0.0
        for first in range(section.start, section.stop, BATCH_AT_ONCE):
            batch = slice(first, min(first + BATCH_AT_ONCE, section.stop))
            gradients, bends = loss.slopes(self.raw[k, batch], self.y[batch])
            weights = self.weights[batch] / self.weight if self.weights.size else 1.0
            self.gradients[batch] = gradients * unit
            steepest = max(steepest, float(np.max(np.abs(self.gradients[batch]) * weights)))
            if bends is None:
                most = max(most, float(np.max(weights)))
            else:
                self.curvatures[batch] = bends * unit
                most = max(most, float(np.max(self.curvatures[batch] * weights)))
        return steepest, most

    def leaf_value(self, k: int) -> LeafValue | None:
        """The best value of a leaf where that is a quantile of the rests."""
        level = self.losses[k].level
        if level is None:
            return None

        def value(rows: NDArray[np.int32]) -> float:
            return weighted_quantile(self.y[rows] - self.raw[k, rows], self.all_weights[rows], level)

        return value

    def loss(self, rows: Iterable[Labels]) -> float:
        """Mean loss of some rows, and of all sums."""
        losses = weights = 0.0
        for some in rows:
            each = [loss.losses(raw[some], self.y[some]) for loss, raw in zip(self.losses, self.raw, strict=True)]
            losses += float(np.mean(each, axis=0) @ self.all_weights[some])
            weights += float(self.all_weights[some].sum())
        return losses / weights

    def add(self, k: int, tree: Trees, rows: Iterable[Labels]) -> None:
        """The values of the tree for rows that it did not grow from."""
        grown = tree._replace(left=tree.left.copy())  # its packed nodes are forgotten with it
        for some in rows:
            self.raw[k, some] += total_of_grown(grown, self.x[some])[:, 0]
