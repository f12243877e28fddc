r"""Oblique trees, whose splits may also test a weighted sum of some columns; leaves with linear predictions.

At each node columns are chosen one by one that follow the targets together, and the ridge on the first 2, 4, 8, …
of them gives a direction for each target: for classes the linear discriminant of one against the rest. Every direction
is one more column for the search that grows plain trees, so that its splits are compared by the same criterion and
used only where they gain more than any by a single column.

References: Breiman et al. (1984), CART, 5.2 (linear combinations); Murthy, Kasif & Salzberg (1994), JAIR 2:1 (OC1);
Menze et al. (2011), On oblique random forests, ECML (ridge); Quinlan (1992), Learning with continuous classes (M5).
"""

import heapq
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Task, Vector
from app.ml.numerics.linear_models.forward_selection import Standard
from app.ml.numerics.trees.binning import binned, ranked
from app.ml.numerics.trees.forest import Trees
from app.ml.numerics.trees.growth import Grower, Grown, Rules
from app.ml.numerics.trees.linear_forms import NONE, NOTHING, Bounded, Form, Forms, joined, reached

ROWS_PER_COLUMN = 2.0
"""A node of less weight for each column that it combines would fit noise (Murthy et al.)."""
ONE_ROW = 1.0
"""The ridge of a direction: columns have deviation 1, so that it counts as one row without a slope."""
LITTLE = 1e-9
"""The ridge of a leaf, as a share of its weight: against dependent columns only."""
Truths: TypeAlias = NDArray[np.bool_]


class Stump(NamedTuple):
    """A node and its best split."""

    tree: Grown
    """The tree, with one split at most."""
    form: Forms
    """The weighted sum that it tests, if that is no column."""
    branches: tuple[Labels, ...]
    """Rows of the left, the right and the missing branch, of those that there are."""
    depth: int


def grow(data: Data, rules: Rules, most: int, *, exact: bool, report: Callable[[float], None]) -> tuple[Grown, Forms]:
    """A tree whose columns from d on are forms of at most `most` numeric columns each.

    Nodes come in the order of `Grower`, whose tree it is where no form gains. report: called with the share of
    rows settled.
    """
    stumps = [_stump(data, np.arange(len(data.x)), 0, rules, most, exact=exact)]
    left, settled, leaves = [-1], 0, 1
    waiting = [(0.0, 0)] if stumps[0].branches else []
    while waiting:
        _, node = heapq.heappop(waiting)
        branches, depth = stumps[node].branches, stumps[node].depth + 1
        if rules.max_leaves and leaves + len(branches) - 1 > rules.max_leaves:
            continue
        leaves += len(branches) - 1
        left[node] = len(stumps)
        for rows in branches:
            below = _stump(data, rows, depth, rules, most, exact=exact)
            if below.branches:
                gain = float(below.tree.gain[0])
                heapq.heappush(waiting, (-gain if rules.max_leaves else -len(stumps), len(stumps)))
            else:
                settled += rows.size
            stumps.append(below)
            left.append(-1)
        report(settled / len(data.x))
    return _tree(stumps, left, data.levels.size)


def _stump(data: Data, rows: Labels, depth: int, rules: Rules, most: int, *, exact: bool) -> Stump:
    node_data = data.take(rows)
    may_split = depth < rules.max_depth and node_data.weights.sum() >= 1.999 * rules.min_samples_leaf  # rounding aside
    forms = _directions(node_data, most) if may_split else NONE
    wide = _widened(node_data, forms)
    table = ranked(wide) if exact else (binned(wide),)
    alone = rules._replace(
        max_depth=int(may_split), max_leaves=0, missing_branch=_missing_branches(rules, forms, data.levels.size)
    )
    tree = Grower(wide, *table).grow(wide.weights, alone)
    column = int(tree.column[0])
    if column < 0:
        return Stump(tree, NONE, (), depth)
    form = forms.take([column - data.levels.size] if column >= data.levels.size else [])
    masks = (mask for mask in _masks(tree, wide.x[:, column], int(wide.levels[column])) if mask is not None)
    return Stump(tree, form, tuple(rows[mask] for mask in masks), depth)


def _masks(tree: Grown, values: Vector, levels: int) -> Iterator[Truths | None]:
    """Masks of the rows that go left, right, and to the branch of the missing; None: there is no such branch."""
    threshold = float(tree.threshold[0])
    missing: Truths = np.isnan(values)
    left: Truths = values <= threshold
    if levels and np.isfinite(threshold):
        present = np.flatnonzero(~missing)
        left[present] = tree.members[values[present].astype(np.intp)]
    yield left
    yield ~left & ~missing if np.isfinite(threshold) else None
    yield missing if tree.missing[0] > 0 else None


def _missing_branches(rules: Rules, forms: Forms, d: int) -> Truths:
    """(d,) true where missing values may have a branch of their own; of a form, where they may in all its columns."""
    node_missing_branch = np.broadcast_to(rules.missing_branch, d)
    return np.append(
        node_missing_branch, [node_missing_branch[forms.one(place).column].all() for place in range(forms.size)]
    ).astype(np.bool_)


def _widened(data: Data, forms: Forms) -> Data:
    """With a column for each form."""
    if not forms.size:
        return data
    levels = np.append(data.levels, np.zeros(forms.size, np.intp))
    x = np.column_stack([data.x, forms.project(data.x)])
    return Data(data.task, x, data.y, data.targets, data.weights, levels)


def _directions(data: Data, most: int) -> Forms:
    """Candidates of ever more columns, for each class by itself; none for a node whose rows have one target."""
    standard = Standard.of(data)
    few = min(most, int(data.weights.sum() / ROWS_PER_COLUMN))
    if few < 2 or not standard.y.any():
        return NONE
    order, _ = standard.chosen(few)
    sizes = {min(2**power, order.size) for power in range(1, few.bit_length() + 1)} if order.size > 1 else set()
    return joined([part for size in sorted(sizes) for part in _forms(standard, order[:size], ONE_ROW, data.task)])


def _forms(standard: Standard, places: Labels, penalty: float, task: Task) -> Iterator[Form]:
    """The ridge on these columns for each target, in the columns' own units, sorted by column."""
    places = np.sort(places)
    coefs = standard.ridge(places, penalty).T
    present: Truths = np.asarray(standard.y.any(axis=0))
    if task is Task.CLASSIFICATION and present.sum() == 2:  # the other is its mirror image
        present[np.flatnonzero(present)[0]] = False
    for coef in coefs[present & coefs.any(axis=1)]:
        columns, size = standard.columns[places].astype(np.int32), np.abs(coef)
        yield Form(columns, coef / standard.deviation[places], standard.mean[places], size / size.sum())


def _tree(stumps: list[Stump], left: list[int], d: int) -> tuple[Grown, Forms]:
    """The nodes as arrays. Splits that were not used are left out."""
    n = len(stumps)
    column, threshold, gain = np.full(n, -1, np.int32), np.zeros(n), np.zeros(n)
    missing = np.full(n, -1, np.int8)
    members: list[NDArray[np.bool_]] = [np.zeros(0, np.bool_)]
    forms: list[Form] = []
    for node in np.flatnonzero(np.array(left) >= 0).tolist():
        tree, form, _, _ = stumps[node]
        column[node], threshold[node] = tree.column[0], tree.threshold[0]
        missing[node], gain[node] = tree.missing[0], tree.gain[0]
        if form.size:
            column[node] = d + len(forms)
            forms.append(form.one(0))
        elif tree.members.size:
            threshold[node] = sum(part.size for part in members)
            members.append(tree.members)
    value, weight, impurity = (
        np.array([getattr(s.tree, field)[0] for s in stumps]) for field in ("value", "weight", "impurity")
    )
    is_split = column >= 0
    lefts = np.where(is_split, weight[left], 1.0)  # of the rows with a value, those that went left
    rights = np.where(is_split & np.isfinite(threshold), weight[np.minimum(np.array(left) + 1, n - 1)], 0.0)
    shape = column, threshold, np.array(left, np.int32), missing, lefts / (lefts + rights)
    return Grown(*shape, value, weight, impurity, gain, np.concatenate(members)), joined(forms)


def used(tree: Grown, forms: Forms, d: int) -> tuple[Grown, Forms]:
    """Without the forms that no node tests any more."""
    places, number = np.unique(tree.column[tree.column >= d], return_inverse=True)
    column = tree.column.copy()
    column[column >= d] = d + number
    return tree._replace(column=column), forms.take(places - d)


def linear_leaves(data: Data, trees: Trees, splits: Forms) -> Bounded:
    """For each leaf the linear fit of its rows (n, d) on the columns that lower the error expected of new rows.

    As in M5, it is taken to be the root of the mean square times (n + v) / (n - v) with v coefficients, so that few
    rows have their mean. The prediction of a leaf stays between the least and the greatest target of its rows.
    """
    ends = reached(trees, splits, data.x)
    low, high = trees.values[:, 0].copy(), trees.values[:, 0].copy()
    parts = [NOTHING] * len(trees.values)
    order = np.argsort(ends, kind="stable")
    cuts = np.searchsorted(ends[order], np.arange(len(trees.column) + 1))
    for node in np.flatnonzero(trees.column < 0).tolist():
        leaf_data = data.take(np.sort(order[cuts[node] : cuts[node + 1]]))
        row = int(trees.left[node])
        if len(leaf_data.x):
            low[row], high[row] = leaf_data.y.min(), leaf_data.y.max()
            parts[row] = _fitted(leaf_data)
    return Bounded(joined(parts), low, high)


def _fitted(data: Data) -> Form:
    standard, mass = Standard.of(data), float(data.weights.sum())
    if mass <= 2:
        return NOTHING
    order, squares = standard.chosen(math.ceil(mass) - 2)
    result = np.arange(1, squares.size + 1)
    expected = np.sqrt(squares / mass) * (mass + result) / (mass - result)
    best = order[: int(expected.argmin())]
    return next(_forms(standard, best, LITTLE * mass, data.task)) if best.size else NOTHING
