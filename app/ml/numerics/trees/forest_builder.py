"""Forests of trees that come one after the other, in arrays that grow where they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels
from app.ml.numerics.trees.forest import Trees
from app.ml.numerics.trees.growth import BLOCK, MUCH
from app.ml.numerics.trees.longer_arrays import cut, longer, room
from app.processes.process_memory import give_back

CHUNK = 2**16
"""Bytes of an array that are moved at a time."""
GROWING = "column", "threshold", "left", "missing", "share", "members", "values"
"""Fields of `Trees` that become longer with every tree."""


class ForestBuilder:
    """Trees that come one after the other, into arrays that grow where they are."""

    def __init__(self, most: int) -> None:
        """most: how many there will be."""
        self._most = most
        self._roots: list[int] = []
        self._arrays: dict[str, _Growing] = {}
        self._fixed: tuple[Trees, int] | None = None
        self._freed = 0

    def add(self, tree: Trees, *, keep: bool = True) -> None:
        """One more. If it has the table of values of the one before, they share it.

        kept: whether its arrays are needed any longer; else all that are not sealed are emptied as they are copied.
        """
        if self._fixed is None:
            self._arrays = {name: _Growing(getattr(tree, name)) for name in GROWING}
        sizes = {name: array.size for name, array in self._arrays.items()}
        shared = self._fixed is not None and self._fixed[0].values is tree.values
        rows = self._fixed[1] if shared and self._fixed else sizes["values"]
        self._fixed = tree, rows
        self._roots += (tree.root + sizes["column"]).tolist()
        share = self._most / len(self._roots)
        new = {}
        for name, array in self._arrays.items():
            if name != "values" or not shared:
                new[name] = array.add(getattr(tree, name), share, keep=keep)
                self._freed += 0 if keep else new[name].nbytes
            if self._freed >= MUCH:
                give_back()
                self._freed = 0
        for first in range(0, len(new["column"]), BLOCK):
            column, left, threshold = (new[name][first : first + BLOCK] for name in ("column", "left", "threshold"))
            is_split = column >= 0
            left += np.where(is_split, np.int32(sizes["column"]), np.int32(rows))
            if sizes["members"]:
                threshold[is_split & (tree.levels > 0)[column]] += sizes["members"]

    def trees(self) -> Trees:
        """All of them. No tree can be added afterwards."""
        assert self._fixed is not None  # noqa: S101 - there is a first tree; for the type checker
        arrays = {name: array.whole() for name, array in self._arrays.items()}
        return self._fixed[0]._replace(root=np.array(self._roots, np.int32), **arrays)


class _Growing:
    """An array that rows are added to."""

    def __init__(self, like: NDArray[Any]) -> None:
        self._array = np.empty((0, *like.shape[1:]), like.dtype)
        self.size = 0

    def add(self, rows: NDArray[Any], share: float, *, keep: bool) -> NDArray[Any]:
        """These rows, where they are now. share: how many times as many there will be in the end, as it seems."""
        before, self.size = self.size, self.size + len(rows)
        if self.size > len(self._array):
            self._array = longer(self._array, room(self.size, share))
        if keep or not (rows.flags.owndata and rows.flags.writeable):
            self._array[before : self.size] = rows
        else:  # from the end on, so that what is copied is given back
            step = max(1, CHUNK // (rows.itemsize * rows[:1].size or 1))
            for start in range((len(rows) - 1) // step * step, -1, -step):
                self._array[before + start : before + len(rows)] = rows[start:]
                cut(rows, start)
        return self._array[before : self.size]

    def whole(self) -> NDArray[Any]:
        cut(self._array, self.size)
        return self._array


def together(parts: Sequence[Trees]) -> Trees:
    """The trees of all, one after the other. If they share one table of values, they go on sharing it."""
    builder = ForestBuilder(len(parts))
    for part in parts:
        builder.add(part)
    return builder.trees()


def no_trees(levels: Labels, k: int) -> Trees:
    """No tree of columns with these levels (d,), of k sums."""
    whole, real = np.zeros(0, np.int32), np.zeros(0)
    levels = levels.astype(np.int64)
    return Trees(whole, whole, real, whole, np.zeros(0, np.int8), real, levels, np.zeros(0, np.bool_), np.zeros((0, k)))
