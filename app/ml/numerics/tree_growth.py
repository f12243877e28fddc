"""Growing a decision tree level by level, all open nodes of a level together.

The rows of every column are sorted once; from level to level their order is only dealt out to the children.
So a level costs a few passes over the rows still on their way, however many nodes it has.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Data, Labels, Matrix, Progress, Task, Vector, silent
from app.ml.numerics.impurity import Criterion, Sums
from app.ml.numerics.tree import WAYS, Tree
from app.ml.numerics.tree_search import Items, Level, Questions, ask_subset, ask_threshold


class Rules(NamedTuple):
    """When a node is left alone. Rows count by their weight."""

    criterion: Criterion
    max_depth: float = np.inf
    min_samples_split: float = 2.0
    min_samples_leaf: float = 1.0
    min_gain: float = 0.0


class Nodes(NamedTuple):
    """The q nodes that a level begins with."""

    rows: Labels
    """(q,) how many."""
    weight: Vector
    value: NDArray[np.float64]
    """(q,) mean target, or (q, k) shares of the classes."""
    spread: Vector
    """(q,) standard deviation of a numeric target, 1 for classes; 0 if there is no more than rounding, or one class."""
    total: Sums
    """(s, q) sums over the rows of each node, in the node's own units."""


class Columns(NamedTuple):
    """The inputs by column, with the rows that have a value of each, in order of it."""

    values: Matrix
    """(d, n)"""
    levels: Labels
    order: list[Labels]
    """Changes as the tree grows: the rows in open nodes, by node and then by value."""


def grow(data: Data, rules: Rules, progress: Progress = silent) -> Tree:
    """The tree of greedy questions. `data.x` may hold NaN for missing, and categories where `data.levels` says so."""
    values = np.ascontiguousarray(data.x.T)
    order = [np.argsort(column, kind="stable")[: int((~np.isnan(column)).sum())] for column in values]
    columns = Columns(values, data.levels, order)
    slot = np.zeros(len(data.x), np.intp)  # which node of this level each row is in; -1 once it has arrived
    layers: list[Tree] = []
    while (fresh := int(slot.max()) + 1) > 0:
        nodes, sums = _sum_up(data, slot, fresh)
        asks = _may_ask(nodes, rules) & (len(layers) < rules.max_depth)
        open_ = np.where(slot >= 0, np.where(asks, np.cumsum(asks) - 1, -1)[slot], -1)
        best = _ask(columns, open_, sums, _level(nodes, asks, rules))
        best = _worth_asking(best, nodes, asks, rules)
        layers.append(_layer(nodes, best, rules.criterion, data.levels))
        slot = _next(data.x, slot, best, layers[-1])
        progress(float((slot < 0).mean()))
    return _joined(layers)


def _sum_up(data: Data, slot: Labels, q: int) -> tuple[Nodes, Sums]:
    """What the rows of each of q nodes sum up to; and what each row (s, n) adds, in its node's own units.

    There weights average 1, and numbers have mean 0 and deviation 1, so that running sums over many nodes
    lose nothing of the small ones.
    """
    rows = np.flatnonzero(slot >= 0)
    node, count = slot[rows], np.bincount(slot[rows], minlength=q)
    weight = np.bincount(node, data.weights[rows], q).astype(np.float64)
    unit = data.weights[rows] / (weight / count)[node]
    if data.task is Task.CLASSIFICATION:
        added = data.targets[rows].T * unit
        total = _by_node(node, added, q)
        value, spread = (total / total.sum(axis=0)).T.copy(), 1.0 * (np.count_nonzero(total, axis=0) > 1)
    else:
        value, spread, away = _standardised(data.y[rows], unit, node, count)
        added = unit * np.stack([np.ones_like(away), away, away**2])
        total = _by_node(node, added, q)
    sums = np.empty((len(total), len(slot)))
    sums[:, rows] = added
    return Nodes(count, weight, value, spread, total), sums


def _standardised(y: Vector, unit: Vector, node: Labels, count: Labels) -> tuple[Vector, Vector, Vector]:
    """Mean and deviation (q,) of the targets of each node, and each target (m,) in these units."""
    mean = np.bincount(node, unit * y, len(count)) / count
    away = y - mean[node]
    spread = np.sqrt(np.bincount(node, unit * away**2, len(count)) / count)
    spread[spread <= 4 * np.finfo(np.float64).eps * np.abs(y).max()] = 0.0
    return mean, spread, away / np.where(spread > 0, spread, 1.0)[node]


def _by_node(node: Labels, added: Sums, q: int) -> Sums:
    return np.stack([np.bincount(node, kind, q) for kind in added]).astype(np.float64)


def _may_ask(nodes: Nodes, rules: Rules) -> NDArray[np.bool_]:
    return (nodes.spread > 0) & (nodes.weight >= rules.min_samples_split * (1 - 1e-9))


def _level(nodes: Nodes, asks: NDArray[np.bool_], rules: Rules) -> Level:
    least = rules.min_samples_leaf * nodes.rows[asks] / nodes.weight[asks]
    return Level(nodes.total[:, asks], nodes.rows[asks], least * (1 - 1e-9), rules.criterion)


def _dealt(rows: Labels, node: Labels) -> Labels:
    """The rows that are in open nodes, sorted by node; in the same order within each."""
    at = node[rows]
    rows, at = rows[at >= 0], at[at >= 0]
    short = at.astype(np.int16) if at.size and at.max() < 2**15 else at  # numpy sorts short numbers by radix
    dealt: Labels = rows[np.argsort(short, kind="stable")]
    return dealt


def _ask(columns: Columns, node: Labels, sums: Sums, level: Level) -> Questions:
    """The best questions of the open nodes; `node` (n,) says which of them each row is in."""
    best = Questions.none(len(level.rows), int(columns.levels.max(initial=0)))
    for j, values in enumerate(columns.values if len(level.rows) else []):
        rows = columns.order[j] = _dealt(columns.order[j], node)
        items = Items(node[rows], values[rows], sums[:, rows])
        if columns.levels[j]:
            ask_subset(best, j, items, int(columns.levels[j]), level)
        else:
            ask_threshold(best, j, items, level)
    return best


def _worth_asking(best: Questions, nodes: Nodes, asks: NDArray[np.bool_], rules: Rules) -> Questions:
    """The questions of the nodes that ask, one place for each node of the level, column -1 for those that do not."""
    whole = Questions.none(len(asks), best.members.shape[1])
    for all_, found in zip(whole, best, strict=True):
        all_[asks] = found
    square = nodes.spread**2  # from the node's own units to those of the target
    gain = np.where(whole.column >= 0, whole.gain, 0.0) / nodes.rows * square
    leave = (whole.column < 0) | (gain < rules.min_gain - 1e-12 * square)
    whole.column[leave] = -1
    whole.gain[:] = np.where(leave, 0.0, np.maximum(gain, 0) * nodes.weight)
    return whole


def _layer(nodes: Nodes, best: Questions, criterion: Criterion, levels: Labels) -> Tree:
    """The level's nodes by themselves: children and members are counted from 0."""
    split = best.column >= 0
    subset = split & np.isnan(best.threshold)
    sizes = np.where(subset, levels[best.column], 0)
    ends = np.cumsum(sizes)
    has_right, has_missing = split & ~np.isinf(best.threshold), split & best.branch
    ways = split * 1 + has_right + has_missing
    left = np.cumsum(ways) - ways
    return Tree(
        column=best.column,
        threshold=np.where(split & ~subset, best.threshold, 0.0),
        subset=np.where(subset[:, None], np.stack([ends - sizes, ends], axis=1), -1),
        members=best.members[subset][np.arange(best.members.shape[1]) < sizes[subset][:, None]],
        left=np.where(split, left, -1),
        right=np.where(has_right, left + 1, -1),
        missing=np.where(has_missing, left + 1 + has_right, -1),
        value=nodes.value,
        weight=nodes.weight,
        impurity=criterion.impurity(nodes.total) / nodes.rows * nodes.spread**2,
        gain=best.gain,
    )


def _next(x: Matrix, slot: Labels, best: Questions, layer: Tree) -> Labels:
    """The node of the next level that each row goes to; -1 if it has arrived."""
    rows = np.flatnonzero(slot >= 0)
    rows = rows[best.column[slot[rows]] >= 0]
    node = slot[rows]
    value = x[rows, best.column[node]]
    known = ~np.isnan(value)
    yes = value <= best.threshold[node]
    among = np.flatnonzero(known & np.isnan(best.threshold[node]))
    yes[among] = best.members[node[among], value[among].astype(np.intp)]
    following = np.full(len(slot), -1)
    following[rows] = np.where(known, np.where(yes, layer.left[node], layer.right[node]), layer.missing[node])
    return following


def _joined(layers: list[Tree]) -> Tree:
    """All levels, their children and members counted through."""
    nodes = members = 0
    placed = []
    for layer in layers:
        nodes += len(layer.column)
        ways = {way: np.where(at >= 0, at + nodes, -1) for way, at in layer._asdict().items() if way in WAYS}
        placed.append(layer._replace(**ways, subset=np.where(layer.subset >= 0, layer.subset + members, -1)))
        members += len(layer.members)
    return Tree(*map(np.concatenate, zip(*placed, strict=True)))
