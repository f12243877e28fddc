"""Large margins of nearest neighbours: rows of a class close to each other, rows of others a margin farther away.

With the target neighbours T(i) of each row, the k nearest of its class by the plain distance, the loss is the mean of

    (1 − μ) Σⱼ d²ᵢⱼ + μ Σⱼ Σₗ [1 + d²ᵢⱼ − d²ᵢₗ]₊,   j in T(i), l of another class,

where d is the distance under L. Its gradient is 2L times a weighted scatter of pairs, (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ, which comes
from the Laplacian of their weights: only the pairs within the margin have one.

Reference: Weinberger & Saul (2009), J. Mach. Learn. Res. 10:207.
"""

from typing import NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix
from app.ml.contract.relations import Edges
from app.ml.numerics.linear_algebra.pair_scatter import of_edges
from app.ml.numerics.metric_learning.class_blocks import ClassRows
from app.ml.numerics.neighbours.distances import norms


class Margins(NamedTuple):
    """Rows with their target neighbours."""

    rows: ClassRows
    targets: Labels
    """(n, k) places of the target neighbours; the row itself where its class has too few rows."""
    push: float
    """μ: share of the loss that is of rows within the margin."""

    @classmethod
    def of(cls, rows: ClassRows, k: int, push: float) -> Self:
        return cls(rows, target_neighbours(rows, k), push)

    @property
    def there(self) -> NDArray[np.bool_]:
        """(n, k) true for a target neighbour, false for a row in place of one."""
        return np.asarray(self.targets != np.arange(len(self.targets))[:, None])

    def loss(self, factor: Matrix) -> tuple[float, Matrix]:
        """The loss under the factor L (p, d), and its gradient (p, d)."""
        x, weights, n = self.rows.x, self.rows.weights, len(self.rows.x)
        z = x @ factor.T
        near = np.stack([norms(z - z[column]) for column in self.targets.T], axis=1)
        pushed, counts, scatter = self._impostors(z, np.where(self.there, 1 + near, -np.inf))
        pull = weights[:, None] * (1 - self.push) + self.push * counts
        whole = self._pulled(pull) - self.push * scatter
        value = (1 - self.push) * float(weights @ near.sum(axis=1)) + self.push * pushed
        return value / n, factor @ whole * (2 / n)

    def _impostors(self, z: Matrix, reach: Matrix) -> tuple[float, Matrix, Matrix]:
        """Sum of the hinges; what each target neighbour (n, k) counts in it; and the scatter (d, d) of the impostors.

        z: (n, p) the rows under L. reach: (n, k) squared distance below which a row of another class is an impostor.
        """
        x, weights = self.rows.x, self.rows.weights
        squares, farthest = norms(z), reach.max(axis=1)
        total, counts, degrees, cross = 0.0, np.zeros(reach.shape), np.zeros(len(x)), np.zeros((x.shape[1],) * 2)
        for block, class_rows in self.rows.blocks():
            far = squares - 2 * z[block] @ z.T
            far += squares[block, None]
            far[:, class_rows] = np.inf
            row, other = np.nonzero(far < farthest[block, None])
            hinge = reach[block][row] - far[row, other][:, None]
            heavy = weights[block][row] * weights[other]
            total += float(heavy @ np.maximum(hinge, 0).sum(axis=1))
            active = (hinge > 0) * heavy[:, None]
            size = len(far)
            counts[block] = np.stack([np.bincount(row, part, size) for part in active.T], axis=1)
            degrees[block] += counts[block].sum(axis=1)
            degrees += np.bincount(other, active.sum(axis=1), len(x))
            starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))])
            matrix = scipy.sparse.csr_array((active.sum(axis=1), other, starts), (size, len(x)))
            cross += x[block].T @ (matrix @ x)
        return total, counts, (x * degrees[:, None]).T @ x - cross - cross.T

    def _pulled(self, values: Matrix) -> Matrix:
        """(d, d) scatter of the rows and their target neighbours, each pair with its weight (n, k)."""
        x, scatter = self.rows.x, np.zeros((self.rows.x.shape[1],) * 2)
        for column, value in zip(self.targets.T, values.T, strict=True):
            scatter += of_edges(x, Edges(np.arange(len(x)), column, value), value)
        return scatter


def target_neighbours(rows: ClassRows, k: int) -> Labels:
    """(n, k) the nearest other rows of the class of each; the row itself where there are no more."""
    targets = np.repeat(np.arange(len(rows.x))[:, None], k, axis=1)
    squares = norms(rows.x)
    for block, class_rows in rows.blocks():
        x, count = rows.x[class_rows], min(k, class_rows.stop - class_rows.start - 1)
        if not count:
            continue
        far = squares[class_rows] - 2 * rows.x[block] @ x.T
        row_numbers = np.arange(len(far))
        far[row_numbers, block.start - class_rows.start + row_numbers] = np.inf
        targets[block, :count] = class_rows.start + _smallest(far, count)
    return targets


def _smallest(far: Matrix, k: int) -> Labels:
    """(b, k) places of the smallest numbers in each row."""
    places = np.argpartition(far, k - 1, axis=1)[:, :k]
    order: Labels = np.argsort(np.take_along_axis(far, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)
