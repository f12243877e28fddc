"""The k nearest rows, exactly: the same ones by KD-tree as by looking at all, whatever the metric.

A quick proposal (a tree, single precision, a matrix product over blocks) gives k rows or more and marks where it is
certain that the k nearest are among them: where what it leaves out is farther than the k-th by more than rounding can
change. What one proposal leaves open the next one tries; in the end all distances are computed one by one. Distances
returned are always computed from the differences, by one function, scaled so that powers neither overflow nor vanish.
Of rows equally far the lowest is nearer.

Memory is O(n + BLOCK) besides the result; a block holds BLOCK numbers. What is made of the rows is kept with them.
Source: Bentley (1975), Comm. ACM 18:509; Friedman, Bentley & Finkel (1977), ACM Trans. Math. Softw. 3:209.
"""

import math
import weakref
from collections.abc import Callable
from functools import partial
from typing import Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.neighbours.screening import SPARE, Screen, minkowski

Index: TypeAlias = Literal["auto", "kdtree", "brute"]
Truths: TypeAlias = NDArray[np.bool_]
Proposal: TypeAlias = Callable[[Matrix], tuple[Labels, Truths]]
"""k rows or more for each query, and whether they are certain to hold the k nearest."""
T = TypeVar("T")

BLOCK = 2**20
"""Distances worked on at a time."""
TREE_COLUMNS = 6
"""With more columns a tree must look into most of its leaves, and the matrix product is faster."""
MIN_POWER_SUM = 1e-290
"""Sums of powers below this have lost digits."""


class Centred(NamedTuple):
    """Rows as the matrix product wants them."""

    origin: Vector
    factor: Matrix
    """(d + 1, m): −2 times the rows less their mean, and their squared lengths."""

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            origin = rows.mean(axis=0)
            moved = rows - origin
            return cls(origin, np.vstack([-2 * moved.T, np.einsum("ij,ij->i", moved, moved)]))


def neighbours(x: Matrix, rows: Matrix, k: int, *, p: float = 2.0, index: Index = "auto") -> tuple[Labels, Matrix]:
    """For each row of x the k nearest of `rows`, nearest first, and their Minkowski distances: both (n, min(k, m)).

    p: 1 Manhattan, 2 Euclid, infinity Chebyshev. `rows` must not change after the call: what is made of them is kept.
    """
    k = min(k, len(rows))
    places, far = np.empty((len(x), k), np.intp), np.empty((len(x), k))
    step = max(1, BLOCK // ((k + SPARE) * 8))
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        places[block], far[block] = _nearest(x[block], rows, k, p, _proposals(rows, k, p, index))
    return places, far


def distances(x: Matrix, rows: Matrix, places: Labels, p: float) -> Matrix:
    """From each row of x (q, d) to `rows[places]`, places (q, k): shape (q, k)."""
    far = np.empty(places.shape)
    minkowski(np.ascontiguousarray(x), np.ascontiguousarray(rows), np.ascontiguousarray(places), p, far)
    return far


def _proposals(rows: Matrix, k: int, p: float, index: Index) -> list[Proposal]:
    """The proposals in the order in which they are tried."""
    if k == len(rows):
        return [partial(_all_of_them, k=k)]
    if (index == "kdtree" or (index == "auto" and rows.shape[1] <= TREE_COLUMNS)) and rows.shape[1]:
        return [partial(_by_tree, tree=_trees.of(rows), k=k, p=p)]
    everything = partial(_by_all, rows=rows, k=k, p=p)
    return [partial(_screens.of(rows).propose, k=k), everything] if p == 2 else [everything]


def _nearest(x: Matrix, rows: Matrix, k: int, p: float, proposals: list[Proposal]) -> tuple[Labels, Matrix]:
    places, far = np.empty((len(x), k), np.intp), np.empty((len(x), k))
    left = np.arange(len(x))
    for propose in proposals:
        if not left.size:
            break
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not certain
            proposed, certain = propose(x[left])
        done = left[certain]
        places[done], far[done] = _sorted(proposed[certain], distances(x[done], rows, proposed[certain], p), k)
        left = left[~certain]
    for i in left:
        places[i], far[i] = _one_by_one(x[i : i + 1], rows, k, p)
    return places, far


def _sorted(places: Labels, far: Matrix, k: int) -> tuple[Labels, Matrix]:
    """The k nearest first, the lowest of equally near ones first."""
    order = np.lexsort((places, far), axis=1)[:, :k]
    return np.take_along_axis(places, order, axis=1), np.take_along_axis(far, order, axis=1)


def _one_by_one(x: Matrix, rows: Matrix, k: int, p: float) -> tuple[Labels, Vector]:
    far = distances(x, rows, np.arange(len(rows))[None], p)[0]
    near = np.flatnonzero(far <= np.partition(far, k - 1)[k - 1])
    chosen: Labels = near[np.argsort(far[near], kind="stable")[:k]]
    return chosen, far[chosen]


def _all_of_them(x: Matrix, k: int) -> tuple[Labels, Truths]:
    return np.tile(np.arange(k), (len(x), 1)), np.ones(len(x), bool)


def _by_tree(x: Matrix, tree: "scipy.spatial.cKDTree", k: int, p: float) -> tuple[Labels, Truths]:
    far, places = tree.query(x, range(1, k + 2), p=p)
    return _clear(places, far, _doubt(far, p))


def _by_all(x: Matrix, rows: Matrix, k: int, p: float) -> tuple[Labels, Truths]:
    centred = Centred.of(rows) if p == 2 else None
    places, certain = np.empty((len(x), k), np.intp), np.empty(len(x), bool)
    step = max(1, BLOCK // len(rows))
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        if centred is not None:
            a = x[block] - centred.origin
            scores = np.column_stack([a, np.ones(len(a))]) @ centred.factor  # squares, less a constant of each row
            doubt = 4e-15 * (x.shape[1] + 4) * (np.einsum("ij,ij->i", a, a) + centred.factor[-1].max()) + MIN_POWER_SUM
            places[block], certain[block] = _clear(*_smallest(scores, k + 1), doubt)
        else:
            metric = {"metric": "chebyshev"} if math.isinf(p) else {"metric": "minkowski", "p": p}
            low, far = _smallest(scipy.spatial.distance.cdist(x[block], rows, **metric), k + 1)
            places[block], certain[block] = _clear(low, far, _doubt(far, p))
    return places, certain


def _doubt(far: Matrix, p: float) -> Vector:
    return np.asarray(far[:, -2] * 1e-10 + (MIN_POWER_SUM ** (1 / p) if math.isfinite(p) else MIN_POWER_SUM))


def _clear(places: Labels, far: Matrix, doubt: Vector) -> tuple[Labels, Truths]:
    """The first k of k + 1, and whether the last one is clearly farther: not so if anything overflowed."""
    certain = np.isfinite(far).all(axis=1) & (far[:, -1] - far[:, -2] > doubt)
    return places[:, :-1].astype(np.intp), certain


def _smallest(scores: Matrix, k: int) -> tuple[Labels, Matrix]:
    """Columns of the k lowest scores of each row, lowest first, and these scores.

    The columns are dealt into groups; the k-th lowest of the groups' minima bounds the k-th lowest score, and few
    scores are below it. Two passes over the scores instead of a selection on each row.
    """
    n, m = scores.shape
    groups = max(16 * k, min(1024, m // 8))  # long runs of the memory are faster
    minima = scores[:, : m // groups * groups].reshape(n, -1, groups).min(axis=1, initial=np.inf)
    bound = np.partition(minima, k - 1, axis=1)[:, k - 1]
    if not np.isfinite(bound).all():  # too few rows to deal out, or overflow
        places = np.argsort(scores, axis=1, kind="stable")[:, :k]
        return places, np.take_along_axis(scores, places, axis=1)
    row, column = np.divmod(np.flatnonzero(scores <= bound[:, None]), m)
    low = scores[row, column]
    order = np.lexsort((low, row))
    first = np.searchsorted(row, np.arange(n))
    chosen = order[first[:, None] + np.arange(k)]
    return column[chosen], low[chosen]


class _Kept(Generic[T]):
    """A cache of values that are made of rows, as long as the rows exist."""

    def __init__(self, make: Callable[[Matrix], T]) -> None:
        self.make = make
        self.made: dict[int, tuple[weakref.ref[Matrix], T]] = {}

    def of(self, rows: Matrix) -> T:
        key = id(rows)
        entry = self.made.get(key)
        if entry is None or entry[0]() is not rows:
            entry = self.made[key] = (weakref.ref(rows, lambda gone: self._drop(key, gone)), self.make(rows))
        return entry[1]

    def _drop(self, key: int, gone: "weakref.ref[Matrix]") -> None:
        if key in self.made and self.made[key][0] is gone:
            del self.made[key]


def _grown(rows: Matrix) -> "scipy.spatial.cKDTree":
    """Split in the middle of ranges: quicker to build than by medians, and no slower to query."""
    return scipy.spatial.cKDTree(rows, leafsize=32, balanced_tree=False, compact_nodes=False, copy_data=True)


_trees = _Kept(_grown)
_screens = _Kept(Screen.of)
