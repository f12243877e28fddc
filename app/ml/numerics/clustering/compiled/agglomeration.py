"""Nearest-neighbour chains over a triangle of distances or over centroids, and the minimum spanning tree of rows.

The triangle holds the distance of i > j at i (i − 1) / 2 + j. A merge is a row of each of two clusters and its height.
"""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.neighbours.compiled.distances import square

SINGLE, COMPLETE, AVERAGE, WARD = 0, 1, 2, 3
KEPT = 0.7
"""Share of the places of the triangle that are in use before it is packed again."""


@inner
def metric(a: Vector, b: Vector, p: float) -> float:
    """Manhattan, Euclidean or Chebyshev distance for p of 1, 2 and infinity."""
    if p == 2:
        return math.sqrt(square(a, b))
    total = 0.0
    for j in range(a.size):
        distance = abs(a[j] - b[j])
        total = total + distance if p == 1 else max(total, distance)
    return total


@inner
def place(i: int, j: int) -> int:
    return i * (i - 1) // 2 + j if i > j else j * (j - 1) // 2 + i


@kernel("void(f8[:,::1], f8, f8[::1])", writes=["triangle"])
def triangle_of(x: Matrix, p: float, triangle: Vector) -> None:
    """Distances of all pairs of rows."""
    pair = 0
    for i in range(x.shape[0]):
        for j in range(i):
            triangle[pair] = metric(x[i], x[j], p)
            pair += 1


@inner
def distances_to(columns: Matrix, row: int, left: int, p: float, distances: Vector) -> None:
    """Distances of the first `left` rows to one; squared for p = 2. A column at a time: the processor adds several."""
    distances[:left] = 0.0
    for j in range(columns.shape[0]):
        column, here = columns[j], columns[j, row]
        if p == 2:
            for t in range(left):
                distances[t] += (column[t] - here) * (column[t] - here)
        elif p == 1:
            for t in range(left):
                distances[t] += abs(column[t] - here)
        else:
            for t in range(left):
                distances[t] = max(distances[t], abs(column[t] - here))


@kernel("void(f8[:,::1], f8, i8[::1], i8[::1], f8[::1])", writes=["columns", "first", "second", "heights"])
def spanning_tree(columns: Matrix, p: float, first: Labels, second: Labels, heights: Vector) -> None:
    """The shortest edges that connect all rows, by Prim's algorithm in O(n) memory. The rows change places."""
    n = columns.shape[1]
    rows, before, near, distances = np.arange(n), np.zeros(n, np.int64), np.full(n, np.inf), np.empty(n)
    current = 0
    for merge in range(n - 1):
        left, row = n - 1 - merge, rows[current]
        for j in range(columns.shape[0]):
            columns[j, current], columns[j, left] = columns[j, left], columns[j, current]
        rows[current], before[current], near[current] = rows[left], before[left], near[left]
        distances_to(columns, left, left, p, distances)
        lowest, current = np.inf, 0
        for t in range(left):
            if distances[t] < near[t]:
                near[t], before[t] = distances[t], row
            if near[t] < lowest:
                lowest, current = near[t], t
        first[merge], second[merge] = before[current], rows[current]
        heights[merge] = math.sqrt(lowest) if p == 2 else lowest


@inner
def nearest_in(triangle: Vector, sizes: Vector, places: int, row: int, previous: int) -> int:
    """The cluster nearest to `row`; of equally near ones the previous one, so that a chain ends."""
    near, lowest = previous, np.inf
    if previous >= 0:
        lowest = triangle[place(row, previous)]
    start = row * (row - 1) // 2
    for k in range(row):
        if triangle[start + k] < lowest and sizes[k] > 0:
            near, lowest = k, triangle[start + k]
    pair = start + 2 * row
    for k in range(row + 1, places):
        if triangle[pair] < lowest and sizes[k] > 0:
            near, lowest = k, triangle[pair]
        pair += k
    return near


@inner
def joined(triangle: Vector, sizes: Vector, places: int, a: int, b: int, linkage: int) -> None:
    """Cluster b takes over a; distances to it follow by the linkage."""
    share = sizes[a] / (sizes[a] + sizes[b])
    for k in range(places):
        if sizes[k] > 0 and k != a and k != b:
            to = place(k, b)
            to_first, other = triangle[place(k, a)], triangle[to]
            if linkage == SINGLE:
                triangle[to] = min(to_first, other)
            elif linkage == COMPLETE:
                triangle[to] = max(to_first, other)
            else:
                triangle[to] = other + share * (to_first - other)
    sizes[b] += sizes[a]
    sizes[a] = 0


@inner
def packed(triangle: Vector, sizes: Vector, rows: Labels, moved: Labels, places: int) -> int:
    """Close the gaps of clusters that are gone: smaller strides are quicker. Returns how many are left."""
    left = 0
    for i in range(places):
        if sizes[i] > 0:
            to, start = left * (left - 1) // 2, i * (i - 1) // 2
            for j in range(i):
                if sizes[j] > 0:
                    triangle[to] = triangle[start + j]
                    to += 1
            moved[i] = left
            left += 1
    left = 0
    for i in range(places):
        if sizes[i] > 0:
            rows[left], sizes[left] = rows[i], sizes[i]
            left += 1
    return left


@kernel(
    "void(f8[::1], f8[::1], i8, i8[::1], i8[::1], f8[::1])",
    writes=["triangle", "sizes", "first", "second", "heights"],
)
def chain(triangle: Vector, sizes: Vector, linkage: int, first: Labels, second: Labels, heights: Vector) -> None:
    """Merge clusters that are nearest to each other until one is left. The triangle and the sizes are used up."""
    n = sizes.size
    rows, moved, path = np.arange(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
    places, active, length = n, n, 0
    for merge in range(n - 1):
        if active < KEPT * places:
            places = packed(triangle, sizes, rows, moved, places)
            for t in range(length):
                path[t] = moved[path[t]]
        if length == 0:
            while sizes[path[0]] == 0:
                path[0] += 1
            length = 1
        while True:
            row, previous = path[length - 1], path[length - 2] if length > 1 else -1
            near = nearest_in(triangle, sizes, places, row, previous)
            if near == previous:
                break
            path[length] = near
            length += 1
        first[merge], second[merge] = rows[previous], rows[row]
        heights[merge] = triangle[place(row, previous)]
        joined(triangle, sizes, places, min(row, previous), max(row, previous), linkage)
        length -= 2
        active -= 1
        if length == 0:
            path[0] = 0


@kernel(
    "void(f8[:,::1], f8[::1], i8[::1], i8[::1], f8[::1])", writes=["centroids", "sizes", "first", "second", "heights"]
)
def ward_chain(centroids: Matrix, sizes: Vector, first: Labels, second: Labels, heights: Vector) -> None:
    """Merges as of `chain` by Ward's linkage, from rows in O(n) memory. The rows become centroids."""
    n = sizes.size
    rows, path = np.arange(n), np.zeros(n, np.int64)
    places, length = n, 0
    for merge in range(n - 1):
        if length == 0:
            path[0], length = 0, 1
        while True:
            row, previous = path[length - 1], path[length - 2] if length > 1 else -1
            near, lowest = previous, np.inf
            if previous >= 0:
                lowest = increase(centroids, sizes, row, previous)
            for k in range(places):
                if k != row and k != previous:
                    increase_of_pair = increase(centroids, sizes, row, k)
                    if increase_of_pair < lowest:
                        near, lowest = k, increase_of_pair
            if near == previous:
                break
            path[length] = near
            length += 1
        first[merge], second[merge], heights[merge] = rows[previous], rows[row], math.sqrt(2 * lowest)
        a, b = min(row, previous), max(row, previous)
        share = sizes[b] / (sizes[a] + sizes[b])
        for j in range(centroids.shape[1]):
            centroids[a, j] += share * (centroids[b, j] - centroids[a, j])
        sizes[a] += sizes[b]
        places -= 1
        centroids[b], sizes[b], rows[b] = centroids[places], sizes[places], rows[places]
        length -= 2
        for t in range(length):
            if path[t] == places:
                path[t] = b


@inner
def increase(centroids: Matrix, sizes: Vector, a: int, b: int) -> float:
    """Increase of the squared distances of rows from the centroids of their clusters by a merge."""
    return float(square(centroids[a], centroids[b]) * (sizes[a] * sizes[b] / (sizes[a] + sizes[b])))
