"""Shapley values of sums of trees, where an absent column sends a row both ways by the shares of the training rows.

What a leaf adds is a product over the players (columns, or groups of them) on its path, and the Shapley value of a
product is an integral of a polynomial: `app.ml.numerics.trees.compiled.path_integrals` computes it exactly.

References: Lundberg et al. (2020), Nature Machine Intelligence 2:56 (path-dependent); Yu et al. (2022), Linear
TreeShap, NeurIPS; Owen (1972), Management Science 18:64 (the integral).
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.base.errors import CorruptModel
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.trees.compiled.background_integrals import add_background_contributions
from app.ml.numerics.trees.compiled.path_integrals import ROWS, add_path_contributions, order_paths
from app.ml.numerics.trees.forest import Trees, sound, total


class TreePaths(NamedTuple):
    """Trees, the order in which their M nodes are visited, and the quadrature."""

    trees: Trees
    begin: NDArray[np.int64]
    """(T + 1,) where the nodes of each tree begin."""
    node: NDArray[np.int32]
    level: NDArray[np.int32]
    player: NDArray[np.int32]
    previous: NDArray[np.int32]
    branch: NDArray[np.int32]
    ratio: Vector
    lanes: NDArray[np.int32]
    """(T,) nodes of the quadrature."""
    points: Matrix
    weights: Matrix
    players: int
    mean: Vector
    """(k,) the sum of the trees where all players are absent."""

    @classmethod
    def of(cls, trees: Trees, shares: Vector, players: Labels) -> Self:
        """shares: (N,) as `shares_of` has them. players: (d,) the player of each column.

        Raises CorruptModel for arrays that are no trees.
        """
        columns, size = np.ascontiguousarray(players, np.int32), sound(trees).column.size
        begin, lanes = np.zeros(trees.root.size + 1, np.int64), np.ones(trees.root.size, np.int32)
        node, level, player, previous, branch = (np.empty(size, np.int32) for _ in range(5))
        ratio, reach = np.empty(size), np.empty(size)
        visited = begin, node, level, player, previous, branch, ratio
        above = trees.root, trees.column, trees.left, trees.missing, shares, columns
        if order_paths(*above, *visited, reach, lanes) < 0:
            raise CorruptModel("The branches of a stored tree meet again.")
        reached = node[: begin[-1]]
        ends = trees.column[reached] < 0
        mean = reach[: reached.size][ends] @ trees.values[trees.left[reached[ends]]]
        points, weights = _quadratures(int(lanes.max(initial=1)))
        return cls(trees, *visited, lanes, points, weights, int(players.max(initial=-1)) + 1, mean)

    @property
    def cost(self) -> int:
        """Nodes of all trees times those of their quadratures."""
        return int(np.diff(self.begin) @ self.lanes)

    def contributions(self, x: Matrix) -> NDArray[np.float64]:
        """(n, players, k) for rows (n, d): by how much each player moves the sum of the trees from its mean."""
        out = np.zeros((len(x), self.players, self.trees.values.shape[1]))
        add_path_contributions(np.ascontiguousarray(x, np.float64), *self.trees[1:], *self[1:-2], out)
        return out

    def from_background(self, x: Matrix, background: Matrix) -> NDArray[np.float64]:
        """(n, players, k) the same from the mean over background rows (m, d), whose values absent players have."""
        out = np.zeros((len(x), self.players, self.trees.values.shape[1]))
        rows = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(background, np.float64)
        add_background_contributions(*rows, *self.trees[1:], *self[1:7], *self[8:-2], out)
        return out / len(background)


class TreeScores(NamedTuple):
    """Scores that are sums, or means, of the values of trees."""

    trees: Trees
    shares: Vector
    """(N,) as `shares_of` has them."""
    base: Vector
    """(k,) scores without any tree."""
    factor: Vector
    """(k,) by which the sums of the trees are multiplied."""
    unit: str
    """Unit of the scores."""
    output: Labels | None = None
    """(T,) the score that each tree is added to, by the first of its values; None: to all, by one value each."""
    levels: tuple[float, ...] = ()
    """(k,) levels of the quantiles that the scores are; none of other scores."""

    @property
    def method(self) -> str:
        return "path_dependent"

    def raw(self, x: Matrix) -> Matrix:
        """(n, k) the scores of rows (n, d)."""
        sums = np.column_stack([total(part, x) for part in self._parts()])
        return np.asarray(sums * self.factor + self.base)

    def explained(self, players: Labels) -> "ExplainedTrees":
        """players: (d,) the player of each column."""
        return ExplainedTrees(self, tuple(TreePaths.of(part, self.shares, players) for part in self._parts()))

    def _parts(self) -> list[Trees]:
        """The trees of all scores, or those of each."""
        if self.output is None:
            return [self.trees]
        single = self.trees._replace(values=np.ascontiguousarray(self.trees.values[:, :1]))
        return [single._replace(root=self.trees.root[self.output == c]) for c in range(self.base.size)]


class ExplainedTrees(NamedTuple):
    """Scores of trees, ready to explain rows."""

    scores: TreeScores
    paths: tuple[TreePaths, ...]

    @property
    def cost(self) -> float:
        """Time that a row takes, in visits of a node with one node of the quadrature."""
        return float(sum(part.cost for part in self.paths))

    @property
    def mean(self) -> Vector:
        """(k,) scores where all players are absent."""
        means = np.concatenate([part.mean for part in self.paths])
        return np.asarray(means * self.scores.factor + self.scores.base)

    def contributions(self, x: Matrix) -> NDArray[np.float64]:
        """(n, k, players)"""
        parts = np.concatenate([part.contributions(x) for part in self.paths], axis=2)
        return np.ascontiguousarray((parts * self.scores.factor).swapaxes(1, 2))

    def from_background(self, background: Matrix) -> "FromBackground":
        """The same where absent players have the values of these rows (m, d)."""
        return FromBackground(self, background)


class FromBackground(NamedTuple):
    """Scores of trees, ready to explain rows by what they differ in from background rows."""

    trees: ExplainedTrees
    background: Matrix
    """(m, d)"""

    @property
    def cost(self) -> float:
        return self.trees.cost * len(self.background)

    @property
    def mean(self) -> Vector:
        """(k,) mean score of the background rows."""
        return np.asarray(self.trees.scores.raw(self.background).mean(axis=0))

    def contributions(self, x: Matrix) -> NDArray[np.float64]:
        """(n, k, players)"""
        parts = np.concatenate([part.from_background(x, self.background) for part in self.trees.paths], axis=2)
        return np.ascontiguousarray((parts * self.trees.scores.factor).swapaxes(1, 2))


def shares_of(trees: Trees, weight: Vector | None = None) -> Vector:
    """(N,) the share of its parent's training rows that each node has; 1 of a root, halves where there were none.

    weight: (N,) of the training rows of each node. None: as splits divided the rows that had a value; a branch of
    missing values then has none of them.
    """
    shares, splits = np.ones(trees.column.size), np.flatnonzero(trees.column >= 0)
    left, third = trees.left[splits], trees.missing[splits] == 2
    if weight is None:
        shares[left], shares[left + 1] = trees.share[splits], 1 - trees.share[splits]
        shares[left[third] + 2] = 0.0
        return shares
    children = weight[left], weight[left + 1], np.where(third, weight[left + 2 * third], 0.0)
    whole = np.add(children[0], children[1]) + children[2]
    even = whole == 0
    whole[even] = 1.0
    for branch in (0, 1):
        shares[left + branch] = np.where(even, 0.5, children[branch] / whole)
    shares[left[third] + 2] = (children[2] / whole)[third]
    return shares


def _quadratures(most: int) -> tuple[Matrix, Matrix]:
    """Nodes in (0, 1) and weights of Gauss and Legendre, of one node to so many: a row each, every number for all rows
    that go side by side.
    """
    points, weights = np.zeros((2, most, most, ROWS))
    for size in range(1, most + 1):
        node, weight = np.polynomial.legendre.leggauss(size)
        points[size - 1, :size], weights[size - 1, :size] = (node[:, None] + 1) / 2, weight[:, None] / 2
    return points.reshape(most, -1), weights.reshape(most, -1)
