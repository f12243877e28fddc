"""What the trees of a forest say of rows that they have not seen.

Reference: Breiman (2001), Machine Learning 45:5.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Data, Labels, Matrix, Task, Vector
from app.ml.numerics import calibration
from app.ml.numerics.growth import chosen
from app.ml.numerics.kernels.out_of_bag import permuted, reach, tell
from app.ml.numerics.trees import Trees

JUDGES = 2000
"""Rows, at most, that each tree tells the columns' importance by, and that each point of the curve is of."""


class Unseen(NamedTuple):
    """Rows that one tree has not seen, in few bytes."""

    rows: NDArray[np.uint8]
    """(⌈n/8⌉,) a bit for each row."""
    ends: NDArray[np.int32]
    """Of each of them the leaf it ends in; -1 - node where it goes both ways."""


def unseen(data: Data, tree: Trees, rows: NDArray[np.int32]) -> Unseen:
    bits, ends = np.zeros(len(data.x), np.bool_), np.empty(rows.size, np.int32)
    bits[rows] = True
    reach(data.x, rows, *tree[1:5], *tree[6:8], ends)
    return Unseen(np.packbits(bits), ends)


class OutOfBag:
    """For each row the sum of what the trees say that have not seen it."""

    def __init__(self, data: Data) -> None:
        self._data = data
        kind = np.float32 if data.task is Task.CLASSIFICATION else np.float64  # four bytes hold counts of votes
        self._told = np.zeros(data.targets.shape, kind)
        self._seen = np.zeros(len(data.x), np.uint16)

    def add(self, tree: Trees, part: Unseen) -> None:
        rows = chosen(np.unpackbits(part.rows, count=len(self._seen)).view(np.bool_))
        tell(self._data.x, rows, part.ends, *tree[1:], self._told)
        self._seen[rows] += 1

    @property
    def judged(self) -> int:
        """Rows that some tree has not seen."""
        return int(np.count_nonzero(self._seen))

    def calibrated(self) -> Vector:
        """(2,) the powers by which the votes of classes have been probabilities."""
        return calibration.learned(self._told, self._seen, self._data.targets, self._data.weights)

    def error(self, step: int = 1) -> tuple[float, float]:
        """Of these, among every `step`-th row: error rate or mean squared error, and its standard error."""
        seen = self._seen[::step]
        judged: NDArray[np.bool_] = seen > 0
        if not judged.any():
            return math.nan, math.nan
        parts, errors = self._data.weights[::step][judged], self._errors(step)[judged]
        parts /= parts.sum()
        error = float(parts @ errors)
        errors -= error
        return error, float(np.sqrt(np.square(parts, parts) @ np.square(errors, errors)))

    def _errors(self, step: int) -> Vector:
        told, y = self._told[::step], self._data.y[::step]
        if self._data.task is Task.CLASSIFICATION:
            best: Labels = told.argmax(axis=1)
            wrong: Vector = (best != y).astype(np.float64)
            return wrong
        errors: Vector = told[:, 0] / np.maximum(self._seen[::step], 1)
        errors -= y
        errors *= errors
        return errors


def permuted_increases(data: Data, tree: Trees, rows: NDArray[np.int32], rng: np.random.Generator) -> Vector:
    """The tree's error on rows it has not seen, and by how much each column's permutation raises it: (1 + d,)."""
    judges = rows[:: -(-rows.size // JUDGES)].copy()
    found = np.empty(1 + data.x.shape[1])
    numbers = data.task is Task.REGRESSION
    seed = np.uint64(rng.integers(2**63))
    found[0] = permuted(data.x, data.y, data.weights, numbers, judges, seed, *tree[1:], found[1:])
    return found


def importances(rises: Matrix) -> tuple[float, Vector, Vector]:
    """Means over the trees, and the standard errors of the columns' means."""
    rises = rises[~np.isnan(rises[:, 0])]
    t = len(rises)
    if not t:
        return math.nan, np.zeros(0), np.zeros(0)
    mean, spread = rises.mean(axis=0), rises.std(axis=0, ddof=1 if t > 1 else 0) / math.sqrt(t)
    return float(mean[0]), mean[1:], spread[1:]
