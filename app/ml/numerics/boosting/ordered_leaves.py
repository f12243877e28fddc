"""Values of leaves that rise or fall along columns: which leaves are in order, the nearest values, and the proof.

Two leaves are in order along a column if one lies below the other there and a row could be in either but for that
column. Values that are best for the second-order loss under all these orders are an isotonic regression on a partial
order; its dual is a least squares problem without negative numbers.

References: Barlow & Brunk (1972), J. Amer. Statist. Assoc. 67:140 (isotonic regression and its dual); Lawson & Hanson
(1974), Solving Least Squares Problems, ch. 23 (active set).
"""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, Labels, Matrix, Vector
from app.ml.numerics.trees.forest import Trees

Truths = NDArray[np.bool_]


class Boxes(NamedTuple):
    """The rows that can reach each of L leaves."""

    node: Labels
    """(L,)"""
    low: Matrix
    """(L, d) numbers above this reach the leaf."""
    high: Matrix
    """(L, d) numbers up to this; below `low` where none does."""
    missing: Truths
    """(L, d) whether a row without a value can reach the leaf."""
    members: tuple[dict[int, Truths], ...]
    """(L,) categories by column; of other columns all."""


def boxes_of(trees: Trees, root: int) -> Boxes:
    """The boxes of one tree. A missing value that goes both ways can reach the leaves of both."""
    d = trees.levels.size
    start = np.full(d, -np.inf), np.full(d, np.inf), np.ones(d, np.bool_), dict[int, Truths]()
    stack, leaves = [(root, *start)], []
    while stack:
        node, low, high, missing, members = stack.pop()
        j = int(trees.column[node])
        if j < 0:
            leaves.append((node, low, high, missing, members))
            continue
        left, way = int(trees.left[node]), int(trees.missing[node])
        for branch in range(3 if way == 2 else 2):
            part = low.copy(), high.copy(), missing.copy(), dict(members)
            part[2][j] = missing[j] and way in {-1, branch}
            _narrow(trees, node, branch, part)
            stack.append((left + branch, *part))
    nodes, lows, highs, gone, members_of = zip(*leaves, strict=True)
    return Boxes(np.array(nodes), np.array(lows), np.array(highs), np.array(gone), members_of)


def _narrow(trees: Trees, node: int, branch: int, box: tuple[Vector, Vector, Truths, dict[int, Truths]]) -> None:
    """The values with which a row goes to this child."""
    low, high, _, members = box
    j, threshold = int(trees.column[node]), float(trees.threshold[node])
    levels = int(trees.levels[j])
    if branch == 2 or (branch == 1 and np.isposinf(threshold)):
        high[j] = -np.inf  # nothing but missing values
        members[j] = np.zeros(levels, np.bool_)
    elif levels:
        before = members.get(j, np.ones(levels, np.bool_))
        inside: Truths = (
            trees.members[int(threshold) :][:levels] if np.isfinite(threshold) else np.ones(levels, np.bool_)
        )
        members[j] = np.logical_and(before, inside if branch == 0 else np.logical_not(inside))
    elif branch == 0:
        high[j] = min(high[j], threshold)
    else:
        low[j] = max(low[j], threshold)


def ordered_pairs(boxes: Boxes, levels: Labels, directions: Labels) -> list[tuple[int, Labels]]:
    """For each column with a direction the pairs (m, 2) of leaves, of which the first may not have the larger value."""
    meet = {j: _meet(boxes, j, levels) for j in range(levels.size)}
    result = []
    for column in np.flatnonzero(directions).tolist():
        some = boxes.low[:, column] < boxes.high[:, column]
        below = (boxes.high[:, None, column] <= boxes.low[None, :, column]) & some[:, None] & some[None, :]
        for j, together in meet.items():
            if j != column:
                below &= together
        pairs = np.argwhere(below)
        result.append((column, pairs if directions[column] > 0 else pairs[:, ::-1]))
    return result


def _meet(boxes: Boxes, j: int, levels: Labels) -> Truths:
    """(L, L) whether a value of column j, or none, can reach both leaves."""
    missing = boxes.missing[:, None, j] & boxes.missing[None, :, j]
    if not levels[j]:
        both = np.minimum(boxes.high[:, None, j], boxes.high[None, :, j])
        return np.asarray(missing | (np.maximum(boxes.low[:, None, j], boxes.low[None, :, j]) < both))
    every = np.ones(int(levels[j]), np.bool_)
    members = np.array([by_column.get(j, every) for by_column in boxes.members], np.int64)
    return np.asarray(missing | (members @ members.T > 0))


def ordered_values(values: Vector, weights: Vector, pairs: Labels) -> Vector:
    """The nearest values (L,) by weighted squares in which none of `pairs` (m, 2) falls, to the last bit."""
    scale = np.sqrt(weights / weights.max())
    if pairs.size and (values[pairs[:, 0]] > values[pairs[:, 1]]).any():
        signs = np.zeros((values.size, len(pairs)))
        signs[pairs[:, 0], np.arange(len(pairs))] = 1.0
        signs[pairs[:, 1], np.arange(len(pairs))] = -1.0
        multipliers, _ = scipy.optimize.nnls(signs / scale[:, None], values * scale)
        values = values - signs @ multipliers / scale**2
    values = values.copy()
    for _ in range(values.size):  # rounding: a value rises to the largest below it
        before = values.copy()
        np.maximum.at(values, pairs[:, 1], values[pairs[:, 0]])
        if (values == before).all():
            break
    return values


def ordered_in_tree(tree: Trees, nodes: Labels, values: Vector, weights: Vector, directions: Labels) -> Vector:
    """The values (L,) of the leaves at these nodes of a tree, brought into order along columns with a direction."""
    boxes = boxes_of(tree, int(tree.root[0]))
    place = np.argsort(nodes)[np.searchsorted(np.sort(nodes), boxes.node)]
    pairs = np.concatenate([pairs for _, pairs in ordered_pairs(boxes, tree.levels, directions)])
    result = values.copy()
    result[place] = ordered_values(values[place], weights[place], pairs)
    return result


class OrderProof(NamedTuple):
    """Count of what was compared along one column."""

    column: int
    direction: int
    trees: int
    pairs: int
    violations: int


def prove_order(trees: Trees, directions: Labels) -> list[OrderProof]:
    """All pairs of leaves of all trees compared: rounded sums in a fixed order of ordered trees are ordered."""
    counts = np.zeros((directions.size, 2), np.int64)
    values = trees.values.sum(axis=1)
    for root in trees.root.tolist() if directions.any() else ():
        boxes = boxes_of(trees, root)
        leaf_values = values[trees.left[boxes.node]]
        for column, pairs in ordered_pairs(boxes, trees.levels, directions):
            counts[column] += len(pairs), np.count_nonzero(leaf_values[pairs[:, 0]] > leaf_values[pairs[:, 1]])
    return [
        OrderProof(column, int(directions[column]), trees.root.size, *counts[column].tolist())
        for column in np.flatnonzero(directions).tolist()
    ]


def proof(trees: Trees, directions: Labels) -> list[JSON]:
    """For each column with a direction how many pairs of leaves were compared, and how many are out of order."""
    return [proved._asdict() for proved in prove_order(trees, directions)]
