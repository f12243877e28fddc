"""The k nearest rows, exactly: the same ones by KD-tree as by looking at all, whatever the metric.

A quick way (a tree, or a matrix product over blocks) proposes k + 1 rows. Where the last of them is farther than the
k-th by more than rounding can tell, the first k are the nearest; where it is not, all distances of that query are
computed one by one. Distances answered are always computed from the differences, by one function, scaled so that
powers neither overflow nor vanish. Of rows equally far the lowest is nearer.

Memory is O(n + BLOCK) besides the answer; a block holds BLOCK numbers.
Source: Bentley (1975), Comm. ACM 18:509; Friedman, Bentley & Finkel (1977), ACM Trans. Math. Softw. 3:209.
"""

import math
import weakref
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, Self, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract import Labels, Matrix, Vector

Index: TypeAlias = Literal["auto", "kdtree", "brute"]
Proposal: TypeAlias = Callable[..., tuple[Labels, NDArray[np.bool_]]]
"""k rows for each query, and whether they are certain to be the nearest."""

BLOCK = 2**20
"""Distances worked on at a time."""
TREE_COLUMNS = 8
"""With more columns a tree must look into most of its leaves, and the matrix product is faster."""
SMALLEST = 1e-290
"""Sums of powers below this have lost digits."""


class Centred(NamedTuple):
    """Rows as the matrix product wants them."""

    rows: Matrix
    origin: Vector
    factor: Matrix
    """(d + 1, m): −2 times the rows less their mean, and their squared lengths."""

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            origin = rows.mean(axis=0)
            moved = rows - origin
            return cls(rows, origin, np.vstack([-2 * moved.T, np.einsum("ij,ij->i", moved, moved)]))


_trees: dict[int, tuple["weakref.ref[Matrix]", "scipy.spatial.cKDTree"]] = {}


def neighbours(x: Matrix, rows: Matrix, k: int, *, p: float = 2.0, index: Index = "auto") -> tuple[Labels, Matrix]:
    """For each row of x the k nearest of `rows`, nearest first, and their Minkowski distances: both (n, min(k, m)).

    p: 1 Manhattan, 2 Euclid, infinity Chebyshev. `rows` must not change after the call: its tree is kept.
    """
    k = min(k, len(rows))
    places, far = np.empty((len(x), k), np.intp), np.empty((len(x), k))
    tree = index == "kdtree" or (index == "auto" and rows.shape[1] <= TREE_COLUMNS)
    propose = partial(_by_tree, rows=rows) if tree else partial(_by_all, centred=Centred.of(rows))
    step = max(1, BLOCK // (k * 8 if tree else len(rows)))
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        places[block], far[block] = _nearest(x[block], rows, k, p, propose)
    return places, far


def distances(x: Matrix, rows: Matrix, places: Labels, p: float) -> Matrix:
    """From each row of x (q, d) to `rows[places]`, places (q, k) or (1, k): shape (q, k)."""
    gaps = (np.abs(x[:, j, None] - rows[places, j]) for j in range(rows.shape[1]))
    total: Matrix = np.zeros((len(x), places.shape[1]))
    if p == 1:
        return sum(gaps, total)
    for gap in gaps:
        np.maximum(total, gap, out=total)
    if math.isinf(p):
        return total
    largest = np.where(total > 0, total, 1.0)
    powers = np.zeros_like(total)
    for j in range(rows.shape[1]):
        powers += (np.abs(x[:, j, None] - rows[places, j]) / largest) ** p
    return np.asarray(total * powers ** (1 / p))


def _nearest(x: Matrix, rows: Matrix, k: int, p: float, propose: Proposal) -> tuple[Labels, Matrix]:
    if k == len(rows):
        places, certain = np.tile(np.arange(k), (len(x), 1)), np.ones(len(x), bool)
    else:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not certain
            places, certain = propose(x, k=k, p=p)
    places[~certain] = 0
    far = distances(x, rows, places, p)
    places, far = _sorted(places, far)
    for i in np.flatnonzero(~certain):
        places[i], far[i] = _one_by_one(x[i : i + 1], rows, k, p)
    return places, far


def _sorted(places: Labels, far: Matrix) -> tuple[Labels, Matrix]:
    """Nearest first, the lowest of equally near ones first."""
    order = np.lexsort((places, far), axis=1)
    return np.take_along_axis(places, order, axis=1), np.take_along_axis(far, order, axis=1)


def _one_by_one(x: Matrix, rows: Matrix, k: int, p: float) -> tuple[Labels, Vector]:
    far = distances(x, rows, np.arange(len(rows))[None], p)[0]
    near = np.flatnonzero(far <= np.partition(far, k - 1)[k - 1])
    chosen: Labels = near[np.argsort(far[near], kind="stable")[:k]]
    return chosen, far[chosen]


def _by_tree(x: Matrix, rows: Matrix, k: int, p: float) -> tuple[Labels, NDArray[np.bool_]]:
    far, places = _tree(rows).query(x, range(1, k + 2), p=p)
    return _clear(places, far, _doubt(far, p))


def _by_all(x: Matrix, centred: Centred, k: int, p: float) -> tuple[Labels, NDArray[np.bool_]]:
    if p == 2:
        a = x - centred.origin
        scores = np.column_stack([a, np.ones(len(a))]) @ centred.factor  # squares, less a constant of each row
        doubt = 4e-15 * (x.shape[1] + 4) * (np.einsum("ij,ij->i", a, a) + centred.factor[-1].max()) + SMALLEST
        return _clear(*_smallest(scores, k + 1), doubt)
    metric = {"metric": "chebyshev"} if math.isinf(p) else {"metric": "minkowski", "p": p}
    scores = scipy.spatial.distance.cdist(x, centred.rows, **metric)
    places, far = _smallest(scores, k + 1)
    return _clear(places, far, _doubt(far, p))


def _doubt(far: Matrix, p: float) -> Vector:
    return np.asarray(far[:, -2] * 1e-10 + (SMALLEST ** (1 / p) if math.isfinite(p) else SMALLEST))


def _clear(places: Labels, far: Matrix, doubt: Vector) -> tuple[Labels, NDArray[np.bool_]]:
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


def _tree(rows: Matrix) -> "scipy.spatial.cKDTree":
    """The tree of these rows, built once and kept as long as they are."""
    kept = _trees.get(id(rows))
    if kept is None or kept[0]() is not rows:
        key = id(rows)
        kept = (weakref.ref(rows, lambda gone: _drop(key, gone)), scipy.spatial.cKDTree(rows, copy_data=True))
        _trees[key] = kept
    return kept[1]


def _drop(key: int, gone: "weakref.ref[Matrix]") -> None:
    if key in _trees and _trees[key][0] is gone:
        del _trees[key]
