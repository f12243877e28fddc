"""Out-of-bag error of a forest: votes of the trees for rows that they have not seen.

Reference: Breiman (2001), Machine Learning 45:5.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Task, Vector
from app.ml.contract.capacity import GibbsRisk
from app.ml.numerics.ensembles import calibration
from app.ml.numerics.linear_algebra.solve import near_one
from app.ml.numerics.trees.compiled.out_of_bag import add_votes, reach
from app.ml.numerics.trees.forest import Trees
from app.ml.numerics.trees.growth import BLOCK, chosen

MOST_ROWS = 2000
"""Rows, at most, by which each tree estimates the importance of columns, and of each point of the curve."""


class Unseen(NamedTuple):
    """Rows that one tree has not seen, in few bytes."""

    rows: NDArray[np.uint8]
    """(⌈n/8⌉,) a bit for each row."""
    ends: NDArray[np.int32]
    """Leaf of each of them; -1 - node where it goes to both children."""


def unseen(data: Data, tree: Trees, rows: NDArray[np.int32]) -> Unseen:
    bits, ends = np.zeros(len(data.x), np.bool_), np.empty(rows.size, np.int32)
    bits[rows] = True
    reach(data.x, rows, *tree[1:5], *tree[6:8], ends)
    return Unseen(np.packbits(bits), ends)


def _bits(packed: NDArray[np.uint8], some: slice) -> NDArray[np.bool_]:
    """Bits of whole bytes."""
    return np.unpackbits(packed[some.start // 8 : some.stop // 8]).view(np.bool_)


class OutOfBag:
    """For each row the sum over the trees that have not seen it: votes, or by how much numbers are wrong, in a
    unit that brings that near 1. Of either four bytes are enough, of votes that are counted one or two.
    """

    def __init__(self, data: Data, trees: int, *, counted: bool) -> None:
        """trees: how many there will be, at most. counted: a leaf's vote is for one class."""
        self._data = data
        classes = data.task is Task.CLASSIFICATION
        self._truth = data.y[:0] if classes else data.y
        self._unit = 1.0 if classes else near_one(float(data.y.max()) - float(data.y.min()))
        few = np.min_scalar_type(trees)
        self._votes: NDArray[Any] = np.zeros(data.targets.shape, few if counted else np.float32)
        self._seen = np.zeros(len(data.x), few)
        self._losses, self._sizes = list[float](), list[int]()

    def add(self, tree: Trees, part: Unseen) -> None:
        rows = chosen(len(self._seen), lambda some: _bits(part.rows, some))
        if part.ends.min(initial=0) < 0:  # its vote is divided
            self._votes = self._votes.astype(np.float32, copy=False)
        add_votes(self._data.x, rows, part.ends, *tree[1:], self._truth, self._unit, self._votes)
        self._seen[rows] += 1
        if rows.size and not self._truth.size:
            whole = part.ends >= 0  # the others count as wrong: an upper bound of their loss
            right = tree.values[tree.left[part.ends[whole]], self._data.codes[rows[whole]]]
            self._losses.append(1 - float(right.sum()) / rows.size)
            self._sizes.append(rows.size)

    def gibbs(self, trees: int) -> GibbsRisk | None:
        """Losses of the trees of a classifier on the rows that each has not seen; None unless each of them has some."""
        return GibbsRisk.of(self._losses, self._sizes, trees)

    @property
    def evaluated_rows(self) -> int:
        """Rows that some tree has not seen."""
        return int(np.count_nonzero(self._seen))

    def calibrated(self) -> Vector:
        """(2,) the powers by which the votes of classes have been probabilities."""
        return calibration.learned(self._votes, self._seen, self._data.targets, self._data.weights)

    def error(self, step: int = 1) -> tuple[float, float]:
        """Error on every `step`-th of these rows: error rate or mean squared error, and its standard error."""
        whole = error = squares = 0.0
        for weights, errors in self._errors(step):
            whole += float(weights.sum())
            error += float((weights * errors).sum())
        if not whole:
            return math.nan, math.nan
        error /= whole
        for weights, errors in self._errors(step):
            squares += float(((weights / whole * (errors - error)) ** 2).sum())
        return error, math.sqrt(squares)

    def _errors(self, step: int) -> Iterator[tuple[Vector, Vector]]:
        """Weight and error of these, some at a time."""
        for first in range(0, len(self._seen), step * BLOCK):
            some = slice(first, first + step * BLOCK, step)
            seen, result, y = self._seen[some], self._votes[some], self._data.y[some]
            evaluated = seen > 0
            if self._data.task is Task.CLASSIFICATION:
                errors: Vector = (result[evaluated].argmax(axis=1) != y[evaluated]).astype(np.float64)
            else:
                errors = (result[evaluated, 0].astype(np.float64) / self._unit / seen[evaluated]) ** 2
            yield self._data.weights[some][evaluated], errors


def always_seen(rows: int) -> list[str]:
    """A warning of so many rows that every member has seen."""
    return [f"{rows} rows are known to every member: the out-of-bag error is that of the others."] if rows else []
