"""The nodes of one tree as JSON: its splits, its leaves, and what is known of the training rows of each."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import JSON, Labels, Vector
from app.ml.numerics.trees.explained_tree import columns_of, linear_leaf
from app.ml.numerics.trees.forest import Trees, sound
from app.ml.numerics.trees.linear_forms import MEANS, NONE, Bounded, Forms
from app.ml.numerics.trees.one_tree import branches_of


class TreeNodes(NamedTuple):
    """A tree, alone or one of several in the same arrays."""

    trees: Trees
    sums: Forms = NONE
    """Weighted sums of columns; the tree has them as columns after the last."""
    leaves: Bounded = MEANS
    """Linear functions of leaves."""
    facts: Mapping[str, Vector] = {}
    """(N,) each: of training rows in a node their weight `rows`, their `impurity`, and the `gain` of its split. `value`
    has a row for each node then."""

    @property
    def members(self) -> int:
        return int(self.trees.root.size)

    @property
    def width(self) -> int:
        """The most numbers or categories that a node has."""
        return max(1, int(self.trees.values.shape[1]), int(self.trees.levels.max(initial=0)))

    def tree(self, member: int) -> "OneTree":
        """One of the members, from 0."""
        return OneTree(self, member)

    def reached(self, member: int, max_depth: float = math.inf) -> list[Labels]:
        """Nodes of a member, level by level from its root."""
        branches = np.stack([*branches_of(sound(self.trees)).values()])
        levels = [self.trees.root[member : member + 1].astype(np.intp)]
        while len(levels) <= max_depth:
            below = np.unique(branches[:, levels[-1]])
            if not (below := below[below >= 0]).size:
                break
            levels.append(below)
        return levels

    def nodes(self, levels: list[Labels]) -> Iterator[dict[str, JSON]]:
        """Those nodes, numbered in their order from 0, parents before their children."""
        numbers = {int(node): i for i, node in enumerate(np.concatenate(levels))}
        parents: dict[int, int] = {}
        branches = branches_of(self.trees)
        for depth, level in enumerate(levels):
            for node in level.tolist():
                below = {name: int(to[node]) for name, to in branches.items() if to[node] >= 0}
                parents |= dict.fromkeys(below.values(), numbers[node])
                shown = {name: numbers[to] for name, to in below.items() if to in numbers}
                place = {"node": numbers[node], "parent": parents.get(node), "depth": depth}
                yield place | self._facts(node) | self._split(node) | shown | {"truncated": len(shown) < len(below)}

    def _facts(self, node: int) -> dict[str, JSON]:
        facts: dict[str, JSON] = {name: float(values[node]) for name, values in self.facts.items()}
        if self.trees.column[node] < 0:
            return facts | {"value": self.trees.values[self.trees.left[node]].tolist()}
        return facts | ({"value": self.trees.values[node].tolist()} if self.facts else {})

    def _split(self, node: int) -> dict[str, JSON]:
        """The condition of the left branch; of a leaf its linear function, if it has one."""
        trees = self.trees
        column, threshold = int(trees.column[node]), float(trees.threshold[node])
        if column < 0:
            has_linear_leaves = self.leaves.forms.size
            return {"linear": linear_leaf(trees, self.leaves, int(trees.left[node]))} if has_linear_leaves else {}
        form = column - (trees.levels.size - self.sums.size)
        tested = columns_of(trees, self.sums, column)
        if math.isinf(threshold):
            return tested | {"op": "known"}
        both = {} if trees.missing[node] >= 0 else {"left_share": float(trees.share[node])}
        if levels := int(trees.levels[column]):
            members = trees.members[int(threshold) : int(threshold) + levels]
            return tested | both | {"op": "in", "categories": np.flatnonzero(members).tolist()}
        return tested | both | {"op": "<=", "threshold": threshold + (self.sums.shift(form) if form >= 0 else 0.0)}


class OneTree(NamedTuple):
    """One tree of several, as the whole model sees it."""

    trees: TreeNodes
    member: int
    """Its place among them."""
    columns: Labels | None = None
    """Places in the model's matrix of the columns that the trees see; None: they see all."""

    def seeing(self, columns: Labels) -> "OneTree":
        """The same tree, where what it takes for the whole matrix are these columns of another."""
        return self._replace(columns=columns if self.columns is None else columns[self.columns])

    def reached(self, max_depth: float = math.inf) -> list[Labels]:
        """Its nodes, level by level from its root."""
        return self.trees.reached(self.member, max_depth)

    def nodes(self, levels: list[Labels]) -> Iterator[dict[str, JSON]]:
        """Those nodes, as `TreeNodes` has them, with columns of the model's matrix."""
        nodes = self.trees.nodes(levels)
        return nodes if self.columns is None else (_moved(node, self.columns) for node in nodes)


def _moved(part: dict[str, JSON], columns: Labels) -> dict[str, JSON]:
    """With the places of these columns in `column`, there and in the terms of sums."""
    moved = {name: _moved(value, columns) if isinstance(value, dict) else value for name, value in part.items()}
    if "terms" in part:
        moved["terms"] = [_moved(term, columns) for term in part["terms"]]
    return moved | ({"column": int(columns[part["column"]])} if "column" in part else {})
