"""Trees as attributes of the operator TreeEnsemble of ai.onnx.ml 5."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix

AT_MOST, MEMBER = 0, 6
"""Modes of nodes: x <= split, and whether x is among members."""
SUM = 1
MAX_FLOAT = float(np.finfo(np.float64).max)
"""No number but NaN is not at most as large."""


class TreeNodes(NamedTuple):
    attributes: dict[str, Any]
    values: Matrix | None
    """(L + 1, k): the operator gives the row of each tree here; None: it gives the sums themselves."""
    spreads: bool = False
    """True if one of several sums may be NaN: then all of the row have to be."""


class _Arrays(NamedTuple):
    root: NDArray[np.int32]
    column: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    missing: NDArray[np.int8]
    share: NDArray[np.float64]
    levels: NDArray[np.int64]
    members: NDArray[np.bool_]
    values: Matrix


def tree_nodes(onnx: Any, arrays: list[Any], *, by_tree: bool) -> TreeNodes:
    """arrays: as the operation TreeEnsemble has them. by_tree: the value of every tree, not their sum.

    A row whose missing value would go to both children gets NaN: the operator has no such node.
    """
    trees = _Arrays(*arrays)
    single = by_tree or bool((np.count_nonzero(trees.values, axis=1) <= 1).all())
    builder = _Builder(trees, by_tree=by_tree or not single)
    if by_tree:
        weights = trees.values[:, 0]
    elif single:
        weights = trees.values[np.arange(len(trees.values)), np.abs(trees.values).argmax(axis=1)]
    else:
        weights = np.arange(len(trees.values), dtype=np.float64)
    gap = math.nan if single else float(len(trees.values))
    for number, root in enumerate(trees.root.tolist()):
        builder.add_tree(number, root, weights, gap)
    outputs = trees.root.size if builder.by_tree else trees.values.shape[1]
    padded = None if single else np.vstack([trees.values, np.full(trees.values.shape[1], math.nan)])
    return TreeNodes(builder.attributes(onnx, outputs), padded, builder.has_gaps and outputs > 1 and not by_tree)


class _Builder:
    """Inner nodes and leaves, which the operator numbers apart."""

    def __init__(self, trees: _Arrays, *, by_tree: bool) -> None:
        self._trees, self.by_tree = trees, by_tree
        self._targets = np.abs(trees.values).argmax(axis=1)
        self.has_gaps = False
        """True if a missing value may go both ways."""
        self._roots: list[int] = []
        self._columns: list[int] = []
        self._splits: list[float] = []
        self._modes: list[int] = []
        self._tracks: list[int] = []
        self._below: list[list[int]] = []
        """[true child, whether it is a leaf, false child, whether it is one] of each inner node."""
        self._members: list[float] = []
        self._leaf_targets: list[int] = []
        self._leaf_weights: list[float] = []

    def add_tree(self, number: int, root: int, weights: NDArray[np.float64], gap: float) -> None:
        """weights: (L,) of the rows of values. gap: weight of a row that would go to both children."""
        trees, column = self._trees, self._trees.column
        self._roots.append(len(self._columns))
        if column[root] < 0:
            node, weight = self._node(0, 0.0, AT_MOST, tracks=False), float(weights[trees.left[root]])
            target = self._target(number, root)
            self._below[node] = [self._leaf(target, weight), 1, self._leaf(target, weight), 1]
            return
        ends: list[tuple[int, int, int]] = [(root, -1, 0)]
        while ends:
            tree_node, parent, side = ends.pop()
            self.has_gaps |= tree_node < 0
            if tree_node < 0 or column[tree_node] < 0:
                target = self._target(number, tree_node)
                made, is_leaf = self._leaf(target, gap if tree_node < 0 else float(weights[trees.left[tree_node]])), 1
            else:
                made, is_leaf = self._split(tree_node, ends), 0
            if parent >= 0:
                self._below[parent][side : side + 2] = made, is_leaf

    def _target(self, number: int, tree_node: int) -> int:
        if self.by_tree:
            return number
        return 0 if tree_node < 0 else int(self._targets[self._trees.left[tree_node]])

    def _split(self, tree_node: int, ends: list[tuple[int, int, int]]) -> int:
        """The inner node, or the first of two, of a node; its children are put on the list."""
        trees = self._trees
        left, missing, column = int(trees.left[tree_node]), int(trees.missing[tree_node]), int(trees.column[tree_node])
        known_only = math.isinf(trees.threshold[tree_node])
        aside = left + missing if missing >= 0 else -1
        if known_only:
            node = self._node(column, MAX_FLOAT, AT_MOST, tracks=False)
            ends += [(aside, node, 2), (left, node, 0)]
            return node
        if missing in {0, 1}:
            node = first = self._test(tree_node, column, tracks=missing == 0)
        else:
            first = self._node(column, MAX_FLOAT, AT_MOST, tracks=False)
            node = self._test(tree_node, column, tracks=False)
            self._below[first][:2] = node, 0
            ends.append((aside, first, 2))
        ends += [(left + 1, node, 2), (left, node, 0)]
        return first

    def _test(self, tree_node: int, column: int, *, tracks: bool) -> int:
        trees, levels = self._trees, int(self._trees.levels[column])
        if not levels:
            return self._node(column, float(trees.threshold[tree_node]), AT_MOST, tracks=tracks)
        start = int(trees.threshold[tree_node])
        among = np.flatnonzero(trees.members[start : start + levels])
        if not among.size:
            return self._node(column, -1.0, AT_MOST, tracks=tracks)
        self._members += [*among.astype(float).tolist(), math.nan]
        return self._node(column, 0.0, MEMBER, tracks=tracks)

    def _node(self, column: int, split: float, mode: int, *, tracks: bool) -> int:
        self._columns.append(column)
        self._splits.append(split)
        self._modes.append(mode)
        self._tracks.append(int(tracks))
        self._below.append([0, 0, 0, 0])
        return len(self._columns) - 1

    def _leaf(self, target: int, weight: float) -> int:
        self._leaf_targets.append(target)
        self._leaf_weights.append(weight)
        return len(self._leaf_targets) - 1

    def attributes(self, onnx: Any, outputs: int) -> dict[str, Any]:
        """Attributes of the operator."""
        helper, proto = onnx.helper, onnx.TensorProto
        below = np.array(self._below, np.int64).reshape(-1, 4)

        def doubles(name: str, values: list[float]) -> Any:
            return helper.make_tensor(name, proto.DOUBLE, [len(values)], values)

        attributes: dict[str, Any] = {
            "tree_roots": self._roots,
            "n_targets": outputs,
            "aggregate_function": SUM,
            "post_transform": 0,
            "nodes_featureids": self._columns,
            "nodes_splits": doubles("nodes_splits", self._splits),
            "nodes_modes": helper.make_tensor("nodes_modes", proto.UINT8, [len(self._modes)], self._modes),
            "nodes_missing_value_tracks_true": self._tracks,
            "nodes_truenodeids": below[:, 0].tolist(),
            "nodes_trueleafs": below[:, 1].tolist(),
            "nodes_falsenodeids": below[:, 2].tolist(),
            "nodes_falseleafs": below[:, 3].tolist(),
            "leaf_targetids": self._leaf_targets,
            "leaf_weights": doubles("leaf_weights", self._leaf_weights),
        }
        return attributes | ({"membership_values": doubles("members", self._members)} if self._members else {})
