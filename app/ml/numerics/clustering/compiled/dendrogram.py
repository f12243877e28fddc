"""Numbers of clusters in a tree of merges, its leaves in order, and how well its heights keep distances."""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.compiled.agglomeration import metric
from app.ml.numerics.jit import inner, kernel


@inner
def root_of(parents: Labels, node: int) -> int:
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@kernel("void(i8[::1], i8[::1], i8[:,::1], i8[::1])", writes=["children", "sizes"])
def numbered(first: Labels, second: Labels, children: Labels, sizes: Labels) -> None:
    """Clusters that each merge joins, n + i being made by merge i, and how many rows it makes one.

    first, second: a row of each of the two.
    """
    n = first.size + 1
    parents = np.arange(2 * n - 1)
    for i in range(n - 1):
        a, b = root_of(parents, first[i]), root_of(parents, second[i])
        children[i, 0], children[i, 1] = min(a, b), max(a, b)
        parents[a] = parents[b] = n + i
        sizes[i] = (sizes[a - n] if a >= n else 1) + (sizes[b - n] if b >= n else 1)


@kernel("void(i8[:,::1], i8, i8[::1])", writes=["labels"])
def label(children: Labels, merges: int, labels: Labels) -> None:
    """Number the clusters of the rows after so many merges, in the order of their first rows."""
    n = labels.size
    roots, names, count = np.arange(2 * n - 1), np.full(2 * n - 1, -1), 0
    for i in range(merges - 1, -1, -1):
        roots[children[i, 0]] = roots[children[i, 1]] = roots[n + i]
    for row in range(n):
        if names[roots[row]] < 0:
            names[roots[row]] = count
            count += 1
        labels[row] = names[roots[row]]


@kernel("void(i8[:,::1], i8[::1], f8[::1], i8[::1], f8[::1])", writes=["order", "gaps"])
def leaves(children: Labels, sizes: Labels, heights: Vector, order: Labels, gaps: Vector) -> None:
    """Rows in an order in which branches do not cross, and the height at which each joins the one before."""
    n = order.size
    start = np.zeros(2 * n - 1, np.int64)
    for i in range(n - 2, -1, -1):
        a, b = children[i, 0], children[i, 1]
        start[a] = start[n + i]
        start[b] = start[a] + (sizes[a - n] if a >= n else 1)
        gaps[start[b]] = heights[i]
    for row in range(n):
        order[start[row]] = row


@kernel("f8(f8[:,::1], f8, f8[::1])")
def correlation(x: Matrix, p: float, gaps: Vector) -> float:
    """Correlation of distances with the heights at which pairs of rows join; rows in the order of the leaves.

    p: of the distance of rows x (n, d); 0: x (n, n) holds the distances. NaN where one of them is the same for all
    pairs.
    """
    n, shift = x.shape[0], gaps.max() / 2
    sums, squares = np.zeros(2), np.zeros(3)
    for i in range(n):
        height = 0.0
        for j in range(i + 1, n):
            height = max(height, gaps[j])
            distance = metric(x[i], x[j], p) if p > 0 else x[i, j]
            a, b = distance - shift, height - shift
            sums[0] += a
            sums[1] += b
            squares[0] += a * a
            squares[1] += b * b
            squares[2] += a * b
    pairs = max(1, n * (n - 1) // 2)
    variance, other = squares[0] - sums[0] * sums[0] / pairs, squares[1] - sums[1] * sums[1] / pairs
    if variance <= 1e-12 * squares[0] or other <= 1e-12 * squares[1]:
        return math.nan
    return float(squares[2] - sums[0] * sums[1] / pairs) / math.sqrt(variance * other)
