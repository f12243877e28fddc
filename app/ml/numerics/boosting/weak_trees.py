"""Small trees for boosting: the columns are binned once, and every round grows a tree with other weights.

Beside the d bytes of a row's codes it takes 5 bytes to grow a tree, 8 for its weight or slope, and for each class one
sum of votes or of steps: of many rows 4 bytes, as those are not large; of counted votes 2 or less. So of many rows it
is at most twice d where d is at least 14 + 4 k: 30 columns for 4 classes.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Task, Vector
from app.ml.numerics.boosting.losses import batches
from app.ml.numerics.trees.binning import MAX_BYTE_BINS, binned, ranked
from app.ml.numerics.trees.compiled.column_split import GINI, NEWTON, VARIANCE
from app.ml.numerics.trees.compiled.node_split import MIN_CURVATURE
from app.ml.numerics.trees.forest import total_of_grown
from app.ml.numerics.trees.growth import Grower, Grown, Rules, planted

EXACT = 5_000
"""Up to so many rows every value may divide a column, beyond them 255 bins."""
MIN_LEAF_SHARE = 1e-12
"""Weight that a leaf must have, as a share of all."""
Codes = NDArray[np.unsignedinteger]
"""(n,) the class of each row by a tree, in few bytes."""


class Weak:
    """Trees of so many levels of splits. exact: whether any value may divide a column, however many rows
    there are; None: if they are few.

    Missing values go to the side where more is gained. With a branch of their own at every split they leave few rows
    for the next one: trees of depth three lose what a tenth of missing cells could cost many times over.
    """

    def __init__(self, data: Data, max_depth: int, *, exact: bool | None = None) -> None:
        self._data = data
        few = len(data.x) <= EXACT if exact is None else exact
        if few and not any(np.isnan(column).any() for column in data.x.T):
            self._table, self._order = ranked(data)
        else:  # a side for the missing is found where values are counted
            self._table, self._order = binned(data, len(data.x) if few else MAX_BYTE_BINS), np.zeros((0, 0), np.int32)
        self._rules = Rules(GINI, max_depth=max_depth, missing_branch=False, missing_side=True)
        self.real = np.dtype(np.float64 if few else np.float32)
        """Type of the sums over trees beside the codes."""

    def grown(self, weights: Vector) -> tuple[Grown, Codes]:
        """The tree for weights (n,) that add up to 1, and the class of each row by it."""
        tree = self._grow(self._data, weights, GINI, 1.0)
        leaves = planted(tree, self._data.levels, tree.value)
        result = np.empty(weights.size, np.min_scalar_type(tree.value.shape[1]))
        for batch in batches(result.size):
            result[batch] = total_of_grown(leaves, self._data.x[batch]).argmax(axis=1)
        return tree, result

    def stepped(self, slopes: Vector) -> Grown:
        """The tree of Newton steps along the slopes g (n,) of a likelihood, truth less probability: by least squares
        nearest to g/h, with weights h = |g| (1 - |g|), the curvatures, times those of the rows.
        """
        weights = self._data.weights
        if self._order.size:
            bent = _curvature(slopes)
            shares = weights * bent
            return self._grow(self._numbers(slopes / bent), shares / shares.sum(), VARIANCE, 1.0)
        mass = sum(float(weights[batch] @ _curvature(slopes[batch])) for batch in batches(slopes.size))
        return self._grow(self._numbers(slopes), weights, NEWTON, mass)

    def _numbers(self, y: Vector) -> Data:
        return replace(self._data, task=Task.REGRESSION, y=y)

    def _grow(self, data: Data, weights: Vector, criterion: int, mass: float) -> Grown:
        """mass: what the rows weigh together, in what is compared."""
        order = self._order.copy() if self._order.size else None  # growing uses it up
        least = MIN_LEAF_SHARE * mass
        rules = self._rules._replace(criterion=criterion, min_samples_split=least, min_samples_leaf=least)
        return Grower(data, self._table, order).grow(weights, rules)


def _curvature(slopes: Vector) -> Vector:
    size = np.abs(slopes)
    return np.asarray(np.maximum(size * (1 - size), MIN_CURVATURE))


class Majority:
    """Rows of classes: what they weigh for the next tree, and what those before it voted."""

    def __init__(self, data: Data, kind: np.dtype[np.generic]) -> None:
        """kind: of the sums of votes."""
        self.weights: Vector = data.weights / data.weights.sum()
        """(n,), adding up to 1."""
        self._data = data
        self._votes = np.zeros(data.targets.shape, kind)

    def error(self, result: Codes) -> float:
        """Weight of the rows that a tree got wrong."""
        return sum(float((self.weights[batch] * self._wrong(result, batch)).sum()) for batch in batches(result.size))

    def add(self, result: Codes, vote: float) -> float:
        """One vote more for the classes of a tree: the training error of the majority."""
        wrong = 0.0
        for batch in batches(result.size):
            votes = self._votes[batch]
            votes[np.arange(len(votes)), result[batch]] += vote
            wrong += float((self._data.weights[batch] * (votes.argmax(axis=1) != self._data.y[batch])).sum())
        return wrong / float(self._data.weights.sum())

    def stress(self, result: Codes, factor: float) -> None:
        """Let rows that a tree got wrong weigh so many times as much."""
        for batch in batches(result.size):
            np.multiply(self.weights[batch], factor, out=self.weights[batch], where=self._wrong(result, batch))
        self.weights /= self.weights.sum()

    def _wrong(self, result: Codes, batch: slice) -> NDArray[np.bool_]:
        return np.asarray(result[batch] != self._data.y[batch])
