"""Trees grown from binned or ranked columns, as many as wanted on the same scratch memory."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Task, Vector
from app.ml.numerics.trees.binning import Binned
from app.ml.numerics.trees.compiled.growth import grow, grow_ranked
from app.ml.numerics.trees.compiled.node_split import BOTH, BRANCH, SIDE
from app.ml.numerics.trees.forest import Trees
from app.ml.numerics.trees.longer_arrays import cut, longer, room
from app.processes.process_memory import give_back

UNLIMITED = 2**30
"""Depth and leaves without a limit."""
FIRST = 256
"""Nodes there is room for at first."""
BLOCK = 8192
"""Rows looked through at a time."""
MUCH = 2**19
"""Bytes that go back to the system when they are freed."""
NODE = 33
"""Bytes of a node, with a value of one number."""
ONCE = np.uint8(1)
"""Multiplicity of a row that is drawn once."""


class Rules(NamedTuple):
    """When a node becomes a leaf, and which splits it may have. Rows count by their weight."""

    criterion: int
    max_depth: int = UNLIMITED
    max_leaves: int = 0
    """0: no limit, and the tree grows depth first; else the split that gains most comes first."""
    min_samples_split: float = 2.0
    min_samples_leaf: float = 1.0
    min_gain: float = 0.0
    """The least decrease of impurity × weight by a split."""
    columns: int = UNLIMITED
    """Number of columns drawn for each split."""
    draws_subsets: bool = False
    """True if subsets of categories are drawn as well, rather than searched."""
    missing_branch: bool | NDArray[np.bool_] = True
    """True if missing values may have a branch of their own; (d,) for each column."""
    missing_side: bool = False
    """True if the others go to the child where they gain more, instead of both; for binned columns."""


class Grown(NamedTuple):
    """One tree of N nodes, the root first. As `Trees`, but `left` is -1 at a leaf, or its class; and what growing knew
    of it.
    """

    column: NDArray[np.int32]
    threshold: Vector
    left: NDArray[np.int32]
    missing: NDArray[np.int8]
    share: Vector
    value: NDArray[np.float64]
    """(N, k) shares of the classes, or (N, 1) mean, of the training rows that reach the node; one row of nothing of use
    if leaves have a class."""
    weight: Vector
    """(N,) of these rows; nothing of use, as the next two, in a tree that was grown without."""
    impurity: Vector
    """(N,)"""
    gain: Vector
    """(N,) what the split takes from impurity × weight."""
    members: NDArray[np.bool_]


class Grower:
    """Grows trees for the target of `data` from codes of its columns.

    order: (d, n) rows of each column in order of its codes, if they are ranks; it is used up by the first tree.
    """

    def __init__(self, data: Data, table: Binned, order: NDArray[np.int32] | None = None) -> None:
        self._table = table
        self._order = order
        self._y = data.y
        self._grow = grow if table.codes.dtype == np.uint8 else grow_ranked
        self._values = data.targets.shape[1] if data.task is Task.CLASSIFICATION else 1
        self._places = 0

    def grow(
        self,
        weights: Vector,
        rules: Rules,
        seed: int = 0,
        times: NDArray[np.uint8] | None = None,
        *,
        bare: bool = False,
        vote: bool = False,
    ) -> Grown:
        """A tree of the rows whose weight (n,) is not zero. times: (n,) how often each counts, if not once. bare:
        without weight, impurity and gain of its nodes. vote: nor shares; `left` of a leaf is its likeliest class.
        """
        if times is not None and self._order is not None:
            weights, times = weights * times, None
        counts = np.broadcast_to(ONCE, weights.size) if times is None else times
        order = self._order
        if order is None:
            order = chosen(weights.size, lambda some: (weights[some] > 0) & (counts[some] > 0))[None]
        codes, bins, start, low, high, levels = self._table
        _give_back(self._places * NODE)  # what the tree before has left
        nodes = self._places or max(FIRST, min(order.shape[1] // 8, 2 ** min(rules.max_depth, 30)))
        noted = 1 if bare and not rules.max_leaves else nodes
        part = _Part(nodes, noted, (1 if vote else nodes, self._values), max(1, int(levels.max(initial=0))))
        state, drawn = np.array([seed], np.uint64), np.arange(len(bins))
        while True:
            self._grow(
                *(codes, bins, start, low, high, levels, order, self._y, weights, counts),
                *(rules.criterion, rules.max_depth, rules.max_leaves, rules.min_samples_split, rules.min_samples_leaf),
                *(rules.min_gain, rules.columns, rules.draws_subsets, _missing_policy(rules, bins.size), state, drawn),
                *(part.at, part.waiting, part.members, *part.tree),
            )
            if part.done:
                grown = part.grown()
                self._places = room(len(grown.column), 1.0)
                return grown
            part.makeroom(order.shape[1])


class _Part:
    """A tree as far as it has grown."""

    def __init__(self, nodes: int, noted: int, values: tuple[int, int], widest: int) -> None:
        """Room for so many nodes, for what is noted of so many, for values, and levels of a column."""
        kinds = np.int32, np.float64, np.int32, np.int8, np.float64
        self.tree: list[NDArray[Any]] = [np.empty(nodes, kind) for kind in kinds]
        self.tree += [np.empty(values), *(np.empty(noted) for _ in range(3))]
        self.waiting = np.empty((FIRST, 8), np.int32)
        self.members = np.empty(6 * widest, np.bool_)
        self.at = np.array([0, 0, 1, 0])
        self._truths = 3 * widest  # of the branches of one node

    @property
    def done(self) -> bool:
        return not self.at[1]

    def makeroom(self, rows: int) -> None:
        """Lengthen what is full, nodes by how many of the rows are in leaves."""
        nodes, waits, _, truths = self.at.tolist()
        if nodes + 3 > len(self.tree[0]):
            _, begin, end = self.waiting[:waits, :3].T
            size = room(nodes, min(2.0, rows / max(1, rows - int((end - begin).sum()))))
            for place, array in enumerate(self.tree):
                self.tree[place] = longer(array, size) if len(array) > 1 else array
            _give_back(size * 8)
        if waits + 3 > len(self.waiting):
            self.waiting = longer(self.waiting, 2 * len(self.waiting))
        if truths + self._truths > len(self.members):
            self.members = longer(self.members, 2 * len(self.members))

    def grown(self) -> Grown:
        nodes, _, _, truths = self.at.tolist()
        for array in self.tree:
            cut(array, min(nodes, len(array)))
        cut(self.members, truths)
        return Grown._make([*self.tree, self.members])


def _give_back(freed: int) -> None:
    """To the system, if so many bytes are worth it."""
    if freed >= MUCH:
        give_back()


def chosen(rows: int, which: Callable[[slice], NDArray[np.bool_]]) -> NDArray[np.int32]:
    """The rows for which `which` is true; it is called with a block of rows at a time."""
    blocks = [slice(first, first + BLOCK) for first in range(0, rows, BLOCK)]
    places, size = np.empty(sum(np.count_nonzero(which(some)) for some in blocks), np.int32), 0
    for some in blocks:
        positions = np.flatnonzero(which(some))
        places[size : size + positions.size] = positions + some.start
        size += positions.size
    return places


def _missing_policy(rules: Rules, d: int) -> NDArray[np.int8]:
    """(d,) the place of the missing values of each column: a branch, the better child or both."""
    return np.where(np.broadcast_to(rules.missing_branch, d), BRANCH, SIDE if rules.missing_side else BOTH).astype(
        np.int8
    )


def planted(
    tree: Grown, levels: Labels, values: NDArray[np.float64], rows: Labels | None = None, *, keep: bool = True
) -> Trees:
    """One tree ready to predict. rows: (N,) the row of `values` of each leaf; None: its vote, or one row a node. kept:
    whether what has grown is needed any longer.
    """
    left = tree.left.copy() if keep else tree.left
    for first in range(0, left.size, BLOCK):
        leaves = first + np.flatnonzero(left[first : first + BLOCK] < 0)
        left[leaves] = leaves if rows is None else rows[leaves]
    return Trees(
        root=np.zeros(1, np.int32),
        column=tree.column,
        threshold=tree.threshold,
        left=left,
        missing=tree.missing,
        share=tree.share,
        levels=levels.astype(np.int64),
        members=tree.members,
        values=values,
    )
