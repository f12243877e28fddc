"""Small trees for boosting: the columns are binned once, and every round grows a tree with other weights."""

from dataclasses import replace

import numpy as np

from app.ml.contract import Data, Labels, Task, Vector
from app.ml.numerics.binning import MOST, binned, ranked
from app.ml.numerics.growth import Grower, Grown, Rules, planted
from app.ml.numerics.kernels.questions import GINI, VARIANCE
from app.ml.numerics.trees import total

EXACT = 5_000
"""Up to so many rows every value may divide a column, beyond them 255 bins."""
LIGHTEST = 1e-12
"""Weight that a leaf must have, as a share of all."""


class Weak:
    """Trees of so many questions one after the other, on rows of weights that add up to 1. exact: whether any value may
    divide a column, however many rows there are; absent: if they are few.

    Missing values go to the side where more is gained. With a way of their own at every question they leave few rows
    for the next one: trees three questions deep lose what a tenth of missing cells could cost many times over.
    """

    def __init__(self, data: Data, max_depth: int, *, exact: bool | None = None) -> None:
        self._data = data
        few = len(data.x) <= EXACT if exact is None else exact
        if few and not any(np.isnan(column).any() for column in data.x.T):
            self._table, self._order = ranked(data)
        else:  # a side for the missing is found where values are counted
            self._table, self._order = binned(data, len(data.x) if few else MOST), np.zeros((0, 0), np.int32)
        self._rules = Rules(
            GINI,
            max_depth=max_depth,
            min_samples_split=LIGHTEST,
            min_samples_leaf=LIGHTEST,
            missing_branch=False,
            missing_side=True,
        )

    def taught(self, weights: Vector) -> tuple[Grown, Labels]:
        """The tree, and the class of each row (n,) by it."""
        tree = self._grow(self._data, weights, GINI)
        leaves = planted(tree, self._data.levels, tree.value)
        return tree, total(leaves, self._data.x).argmax(axis=1)

    def fitted(self, y: Vector, weights: Vector) -> Grown:
        """The tree that is nearest to the numbers y (n,) in the mean of squares. The weights shall add up to 1."""
        return self._grow(replace(self._data, task=Task.REGRESSION, y=y), weights, VARIANCE)

    def _grow(self, data: Data, weights: Vector, criterion: int) -> Grown:
        order = self._order.copy() if self._order.size else None  # growing uses it up
        return Grower(data, self._table, order).grow(weights, self._rules._replace(criterion=criterion))
