"""Agglomerative clustering: join the two nearest clusters, again and again, and keep the tree of merges.

Single linkage is the minimum spanning tree of the rows and Ward's linkage needs centroids only: both take O(n) memory.
Complete and average linkage keep a triangle of n (n − 1) / 2 distances. All take O(n²) time.

References: Prim (1957), Bell Syst. Tech. J. 36:1389; Ward (1963), JASA 58:236; Murtagh (1983), Comput. J. 26:354;
Sokal & Rohlf (1962), Taxon 11:33 (cophenetic correlation).
"""

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.relations import Edges
from app.ml.numerics.clustering.compiled import agglomeration, dendrogram

Linkage: TypeAlias = Literal["single", "complete", "average", "ward"]
IN_TRIANGLE = {"complete": agglomeration.COMPLETE, "average": agglomeration.AVERAGE}
"""Linkages that keep the distances of all pairs."""
OF_PAIRS = {"single": agglomeration.SINGLE, **IN_TRIANGLE}
"""Linkages of given distances."""
GIVEN = 0.0
"""Instead of the p of a distance: a matrix holds the distances themselves."""


class Merges(NamedTuple):
    """The tree, lowest merge first."""

    children: Labels
    """(n - 1, 2) clusters that each joins: below n a row, n + i the cluster that merge i made."""
    heights: Vector
    """(n - 1,) distance of the two by the linkage; never falls."""
    sizes: Labels
    """(n - 1,) rows of the cluster made."""


def linkage(x: Matrix, weights: Vector, kind: Linkage, p: float) -> Merges:
    """p: 1 Manhattan, 2 Euclid, infinity Chebyshev. Ward's linkage is of squared Euclidean distances."""
    scale = unit(x)
    arrays = _found(len(x))
    rows, sizes = np.ascontiguousarray(x / scale), weights.astype(np.float64)
    if kind == "single":
        agglomeration.spanning_tree(np.ascontiguousarray(rows.T), p, *arrays)
    elif kind == "ward":
        agglomeration.ward_chain(rows, sizes, *arrays)
    else:
        triangle = np.empty(len(x) * (len(x) - 1) // 2)
        agglomeration.triangle_of(rows, p, triangle)
        agglomeration.chain(triangle, sizes, IN_TRIANGLE[kind], *arrays)
    return _tree(*arrays, scale)


def linkage_of_square(square: Matrix, weights: Vector, kind: Linkage) -> Merges:
    """Merges by given dissimilarities (n, n), symmetric. Not Ward's, which is of centroids."""
    return _of_triangle(np.concatenate([square[i, :i] for i in range(len(square))]), weights, kind)


def linkage_of_edges(edges: Edges, weights: Vector, kind: Linkage) -> Merges:
    """Merges by known dissimilarities: single linkage where edges connect all rows, another where every pair has one.

    Raises InvalidData where they do not.
    """
    n = len(weights)
    if len(edges.values) == n * (n - 1) // 2:
        triangle = np.empty(len(edges.values))
        triangle[edges.second * (edges.second - 1) // 2 + edges.first] = edges.values
        return _of_triangle(triangle, weights, kind)
    if kind != "single":
        lacking = n * (n - 1) // 2 - len(edges.values)
        raise InvalidData(f"{kind} linkage needs a value for every pair of rows; {lacking} have none: take single.")
    return _of_forest(edges, n)


def _of_triangle(triangle: Vector, weights: Vector, kind: Linkage) -> Merges:
    scale = unit(triangle)
    arrays = _found(len(weights))
    agglomeration.chain(triangle / scale, weights.astype(np.float64), OF_PAIRS[kind], *arrays)
    return _tree(*arrays, scale)


def _of_forest(edges: Edges, n: int) -> Merges:
    """By the minimum spanning tree. Ranks stand for values, of which a sparse matrix would lose those of 0."""
    order = np.argsort(edges.values, kind="stable")
    ranks = np.empty(len(order))
    ranks[order] = np.arange(1, len(order) + 1)
    graph = scipy.sparse.csr_array((ranks, (edges.first, edges.second)), (n, n))
    joining = np.sort(scipy.sparse.csgraph.minimum_spanning_tree(graph).data).astype(np.intp)
    if len(joining) < n - 1:
        raise InvalidData(f"The edges leave the rows in {n - len(joining)} groups without an edge between them.")
    used = order[joining - 1]
    return _tree(edges.first[used], edges.second[used], edges.values[used], 1.0)


def unit(x: NDArray[np.float64]) -> float:
    """A power of two that brings the largest number near 1, so that squares neither overflow nor vanish."""
    return math.ldexp(1.0, min(max(-1021, math.frexp(float(np.abs(x).max(initial=0.0)))[1]), 1023))


def _found(n: int) -> tuple[Labels, Labels, Vector]:
    return np.empty(n - 1, np.intp), np.empty(n - 1, np.intp), np.empty(n - 1)


def _tree(first: Labels, second: Labels, heights: Vector, scale: float) -> Merges:
    order = np.argsort(heights, kind="stable")
    children, sizes = np.empty((len(order), 2), np.intp), np.empty(len(order), np.intp)
    dendrogram.numbered(first[order], second[order], children, sizes)
    with np.errstate(over="ignore"):
        return Merges(children, np.minimum(heights[order] * scale, np.finfo(float).max), sizes)


def labels(children: Labels, merges: int) -> Labels:
    """Cluster of each row after so many merges, numbered in the order of their first rows."""
    row_labels = np.empty(len(children) + 1, np.intp)
    dendrogram.label(children, merges, row_labels)
    return row_labels


def merges_below(heights: Vector, height: float) -> int:
    """Merges at this height or lower."""
    return int(np.searchsorted(heights, height, side="right"))


def heights_beside(heights: Vector, merges: int) -> tuple[float | None, float | None]:
    """Heights of the last of so many merges and of the first that is not made; None where there is none."""
    below = float(heights[merges - 1]) if merges else None
    return below, float(heights[merges]) if merges < len(heights) else None


def widest_gap(heights: Vector) -> int:
    """Merges below the largest difference of two heights that follow each other; 0 where there are fewer than two."""
    return int(np.diff(heights).argmax()) + 1 if len(heights) > 1 else 0


def cophenetic_correlation(x: Matrix, tree: Merges, p: float) -> float:
    """Correlation of the distances of rows with the heights at which they join; NaN where either does not vary.

    p: as in `linkage`, of rows x (n, d); GIVEN: x (n, n) holds their distances.
    """
    scale = unit(x)
    order, gaps = np.empty(len(x), np.intp), np.zeros(len(x))
    dendrogram.leaves(tree.children, tree.sizes, tree.heights / scale, order, gaps)
    rows = x[np.ix_(order, order)] if p == GIVEN else x[order]
    return float(dendrogram.correlation(np.ascontiguousarray(rows / scale), p, gaps))


def joining_heights(tree: Merges, rows: Labels) -> Matrix:
    """(m, m) heights at which pairs of these rows (m,) join; 0 of a row with itself."""
    n = len(tree.heights) + 1
    order, gaps = np.empty(n, np.intp), np.zeros(n)
    dendrogram.leaves(tree.children, tree.sizes, tree.heights, order, gaps)
    places = np.argsort(order)[rows]
    sequence = np.argsort(places, kind="stable")
    # The height of two leaves is the largest gap between them.
    steps = np.maximum.reduceat(np.append(gaps, 0.0), np.sort(places) + 1) if rows.size else gaps[:0]
    heights_of_pairs = np.zeros((rows.size, rows.size))
    for i, row in enumerate(sequence[:-1]):
        heights = np.maximum.accumulate(steps[i:-1])
        heights_of_pairs[row, sequence[i + 1 :]] = heights_of_pairs[sequence[i + 1 :], row] = heights
    return heights_of_pairs


def distances_of(x: Matrix, p: float) -> Matrix:
    """(m, m) of rows (m, d). p as in `linkage`."""
    distances, scale = np.empty((len(x), len(x))), unit(x)
    scaled = x / scale
    for row, row_values in enumerate(scaled):
        gaps = np.abs(scaled - row_values)
        distances[row] = gaps.max(axis=1) if p == math.inf else (gaps**p).sum(axis=1) ** (1 / p)
    return distances * scale
