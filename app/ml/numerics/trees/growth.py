"""Trees grown from binned or ranked columns, as many as wanted on the same scratch memory."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.lean import give_back
from app.ml.contract.algorithm import Data, Labels, Task, Vector
from app.ml.numerics.trees.binning import Binned
from app.ml.numerics.trees.compiled.growth import grow, grow_ranked
from app.ml.numerics.trees.compiled.split_search import BOTH, BRANCH, SIDE
from app.ml.numerics.trees.forest import Trees

DEEPEST = 2**30
"""Depth and leaves without a limit."""
FIRST = 256
"""Nodes there is room for at first."""
BLOCK = 8192
"""Rows looked through at a time."""
MUCH = 2**19
"""Bytes that go back to the system when they are freed."""
NODE = 33
"""Bytes of a node, with a value of one number."""
PIECE = 2**16
"""Bytes of an array that are moved at a time."""
ONCE = np.uint8(1)
"""How often a row counts."""
GROWING = "column", "threshold", "left", "missing", "share", "members", "answer"
"""What of `Trees` becomes longer with every tree."""


class Rules(NamedTuple):
    """When a node is left alone, and what it may ask. Rows count by their weight."""

    criterion: int
    max_depth: int = DEEPEST
    max_leaves: int = 0
    """0: no limit, and the tree grows depth first; else the question that gains most comes first."""
    min_samples_split: float = 2.0
    min_samples_leaf: float = 1.0
    min_gain: float = 0.0
    columns: int = DEEPEST
    """How many are drawn for each question."""
    draws_subsets: bool = False
    """Whether subsets of categories are drawn as well, rather than searched."""
    missing_branch: bool | NDArray[np.bool_] = True
    """Whether missing values may have a way of their own; (d,) for each column."""
    missing_side: bool = False
    """Whether those that may not go to the side where they gain more, and not both ways. Of binned columns."""


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
    """(N,) what the question takes from impurity × weight."""
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
        """A tree of the rows whose weight (n,) is not zero. times: (n,) how often each counts, if not once. bare: do
        not tell weight, impurity and gain of its nodes. vote: nor shares; `left` of a leaf is its likeliest class.
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
                *(rules.min_gain, rules.columns, rules.draws_subsets, _ways(rules, bins.size), state, drawn),
                *(part.at, part.waiting, part.members, *part.tree),
            )
            if part.done:
                grown = part.grown()
                self._places = _room(len(grown.column), 1.0)
                return grown
            part.make_room(order.shape[1])


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
        self._truths = 3 * widest  # of the ways of one node

    @property
    def done(self) -> bool:
        return not self.at[1]

    def make_room(self, rows: int) -> None:
        """Lengthen what is full, nodes by how many of the rows are in leaves."""
        nodes, waits, _, truths = self.at.tolist()
        if nodes + 3 > len(self.tree[0]):
            _, begin, end = self.waiting[:waits, :3].T
            room = _room(nodes, min(2.0, rows / max(1, rows - int((end - begin).sum()))))
            for place, array in enumerate(self.tree):
                self.tree[place] = _longer(array, room) if len(array) > 1 else array
            _give_back(room * 8)
        if waits + 3 > len(self.waiting):
            self.waiting = _longer(self.waiting, 2 * len(self.waiting))
        if truths + self._truths > len(self.members):
            self.members = _longer(self.members, 2 * len(self.members))

    def grown(self) -> Grown:
        nodes, _, _, truths = self.at.tolist()
        for array in self.tree:
            _cut(array, min(nodes, len(array)))
        _cut(self.members, truths)
        return Grown._make([*self.tree, self.members])


def _room(size: int, share: float) -> int:
    """How long to make an array of this size. share: how many times as much there will be in the end, as it seems."""
    return math.ceil(size * share * 1.1) + 3


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The same with more places, which take no memory before they are written to."""
    longer = np.empty((size, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _cut(array: NDArray[Any], size: int) -> None:
    """Leave only so many rows, without a copy."""
    array.resize((size, *array.shape[1:]), refcheck=False)


def _give_back(freed: int) -> None:
    """To the system, if so many bytes are worth it."""
    if freed >= MUCH:
        give_back()


def chosen(rows: int, which: Callable[[slice], NDArray[np.bool_]]) -> NDArray[np.int32]:
    """Of so many rows those that it is true of; it is asked about some at a time."""
    blocks = [slice(first, first + BLOCK) for first in range(0, rows, BLOCK)]
    places, size = np.empty(sum(np.count_nonzero(which(some)) for some in blocks), np.int32), 0
    for some in blocks:
        found = np.flatnonzero(which(some))
        places[size : size + found.size] = found + some.start
        size += found.size
    return places


def _ways(rules: Rules, d: int) -> NDArray[np.int8]:
    """(d,) where each column may send missing values."""
    return np.where(np.broadcast_to(rules.missing_branch, d), BRANCH, SIDE if rules.missing_side else BOTH).astype(
        np.int8
    )


def planted(
    tree: Grown, levels: Labels, answer: NDArray[np.float64], result: Labels | None = None, *, kept: bool = True
) -> Trees:
    """One tree ready to be asked. told: (N,) the row of `answer` that each leaf says; absent: its vote, or one row a
    node. kept: whether what has grown is needed any longer.
    """
    left = tree.left.copy() if kept else tree.left
    for first in range(0, left.size, BLOCK):
        leaves = first + np.flatnonzero(left[first : first + BLOCK] < 0)
        left[leaves] = leaves if result is None else result[leaves]
    return Trees(
        root=np.zeros(1, np.int32),
        column=tree.column,
        threshold=tree.threshold,
        left=left,
        missing=tree.missing,
        share=tree.share,
        levels=levels.astype(np.int64),
        members=tree.members,
        answer=answer,
    )


class ForestBuilder:
    """Trees that come one after the other, into arrays that grow where they are."""

    def __init__(self, most: int) -> None:
        """most: how many there will be."""
        self._most = most
        self._roots: list[int] = []
        self._arrays: dict[str, _Growing] = {}
        self._fixed: tuple[Trees, int] | None = None
        self._freed = 0

    def add(self, tree: Trees, *, kept: bool = True) -> None:
        """One more. If it has the table of answers of the one before, they share it.

        kept: whether its arrays are needed any longer; else all that are not sealed are emptied as they are copied.
        """
        if self._fixed is None:
            self._arrays = {name: _Growing(getattr(tree, name)) for name in GROWING}
        sizes = {name: array.size for name, array in self._arrays.items()}
        shared = self._fixed is not None and self._fixed[0].answer is tree.answer
        rows = self._fixed[1] if shared and self._fixed else sizes["answer"]
        self._fixed = tree, rows
        self._roots += (tree.root + sizes["column"]).tolist()
        share = self._most / len(self._roots)
        new = {}
        for name, array in self._arrays.items():
            if name != "answer" or not shared:
                new[name] = array.add(getattr(tree, name), share, kept=kept)
                self._freed += 0 if kept else new[name].nbytes
            if self._freed >= MUCH:
                give_back()
                self._freed = 0
        for first in range(0, len(new["column"]), BLOCK):
            column, left, threshold = (new[name][first : first + BLOCK] for name in ("column", "left", "threshold"))
            asks = column >= 0
            left += np.where(asks, np.int32(sizes["column"]), np.int32(rows))
            if sizes["members"]:
                threshold[asks & (tree.levels > 0)[column]] += sizes["members"]

    def trees(self) -> Trees:
        """All of them; the last to be asked for."""
        assert self._fixed is not None  # noqa: S101 - there is a first tree; for the type checker
        arrays = {name: array.whole() for name, array in self._arrays.items()}
        return self._fixed[0]._replace(root=np.array(self._roots, np.int32), **arrays)


class _Growing:
    """An array that rows are added to."""

    def __init__(self, like: NDArray[Any]) -> None:
        self._array = np.empty((0, *like.shape[1:]), like.dtype)
        self.size = 0

    def add(self, rows: NDArray[Any], share: float, *, kept: bool) -> NDArray[Any]:
        """These rows, where they are now. share: how many times as many there will be in the end, as it seems."""
        before, self.size = self.size, self.size + len(rows)
        if self.size > len(self._array):
            self._array = _longer(self._array, _room(self.size, share))
        if kept or not (rows.flags.owndata and rows.flags.writeable):
            self._array[before : self.size] = rows
        else:  # from the end on, so that what is copied is given back
            step = max(1, PIECE // (rows.itemsize * rows[:1].size or 1))
            for start in range((len(rows) - 1) // step * step, -1, -step):
                self._array[before + start : before + len(rows)] = rows[start:]
                _cut(rows, start)
        return self._array[before : self.size]

    def whole(self) -> NDArray[Any]:
        _cut(self._array, self.size)
        return self._array


def together(parts: Sequence[Trees]) -> Trees:
    """The trees of all, one after the other. If they share one table of answers, they go on sharing it."""
    orchard = ForestBuilder(len(parts))
    for part in parts:
        orchard.add(part)
    return orchard.trees()
