"""Distances to the k-th nearest row of pairs of numbers, and the rows within it in each column alone."""

from typing import TypeAlias

import numpy as np

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.jit import inner, kernel

Row: TypeAlias = tuple[float, float]
"""Both numbers of a row."""


@inner
def near_count(values: Vector, place: int, radius: float) -> int:
    """Number of sorted values that are nearer than `radius` to the one at this place, or equal to it."""
    value, n = values[place], values.size
    low, high = 0, place
    while low < high:
        middle = (low + high) // 2
        gap = value - values[middle]
        if gap < radius or gap == 0:
            high = middle
        else:
            low = middle + 1
    first, low, high = low, place, n - 1
    while low < high:
        middle = (low + high + 1) // 2
        gap = values[middle] - value
        if gap < radius or gap == 0:
            low = middle
        else:
            high = middle - 1
    return low - first + 1


@inner
def search_strip(
    x: Vector, y: Vector, before: int, behind: int, first: int, last: int, row: Row, nearest: Vector
) -> None:
    """Take the rows of a strip into the k nearest of a row, from two neighbouring places outwards.

    x, y: (n,) rows of the strips, ascending by y within each. first, last: ends of this one. nearest: (k,) ascending.
    """
    k, (own_x, own_y) = nearest.size, row
    while True:
        down = own_y - y[before] if before >= first else np.inf
        up = y[behind] - own_y if behind <= last else np.inf
        if min(down, up) >= nearest[k - 1]:
            return
        if down <= up:
            gap = max(down, abs(x[before] - own_x))
            before -= 1
        else:
            gap = max(up, abs(x[behind] - own_x))
            behind += 1
        if gap < nearest[k - 1]:
            slot = k - 1
            while slot > 0 and nearest[slot - 1] > gap:
                nearest[slot] = nearest[slot - 1]
                slot -= 1
            nearest[slot] = gap


@inner
def first_from(y: Vector, value: float, first: int, last: int) -> int:
    """The first place of an ascending strip whose value is not below this one; last + 1 if there is none."""
    low, high = first, last + 1
    while low < high:
        middle = (low + high) // 2
        if y[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(
    "void(f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], i8[::1], i8[::1], i8, i8[::1], i8[::1])",
    writes=["near_x", "near_y"],
)
def pair_counts(
    x: Vector,
    y: Vector,
    sorted_x: Vector,
    sorted_y: Vector,
    place_in_x: Labels,
    place_in_y: Labels,
    start: Labels,
    k: int,
    near_x: Labels,
    near_y: Labels,
) -> None:
    """Rows that are nearer in each column than the k-th nearest row is in both, the row itself among them.

    x, y: (n,) rows in strips of neighbouring x, ascending by y within each; start: (s + 1,) where each strip begins. By
    the same order: the places of a row in either column when sorted; near_x, near_y: the result. n > k.
    """
    nearest = np.empty(k)
    for s in range(start.size - 1):
        for i in range(start[s], start[s + 1]):
            row = x[i], y[i]
            nearest[:] = np.inf
            search_strip(x, y, i - 1, i + 1, start[s], start[s + 1] - 1, row, nearest)
            t = s - 1
            while t >= 0 and x[i] - sorted_x[start[t + 1] - 1] < nearest[k - 1]:
                position = first_from(y, y[i], start[t], start[t + 1] - 1)
                search_strip(x, y, position - 1, position, start[t], start[t + 1] - 1, row, nearest)
                t -= 1
            t = s + 1
            while t < start.size - 1 and sorted_x[start[t]] - x[i] < nearest[k - 1]:
                position = first_from(y, y[i], start[t], start[t + 1] - 1)
                search_strip(x, y, position - 1, position, start[t], start[t + 1] - 1, row, nearest)
                t += 1
            near_x[i] = near_count(sorted_x, place_in_x[i], nearest[k - 1])
            near_y[i] = near_count(sorted_y, place_in_y[i], nearest[k - 1])


@kernel("void(f8[::1], i8[::1], i8[::1], i8, i8[::1])", writes=["near"])
def class_counts(x: Vector, by_class: Labels, start: Labels, k: int, near: Labels) -> None:
    """Rows of any class that are nearer than the k-th nearest of the own class, the row itself among them.

    x: (n,) sorted. by_class: (n,) places of the rows, class by class, ascending within each; start: (c + 1,) where each
    class begins; a class of k rows or fewer counts to its last. near: (n,) the result by place.
    """
    for c in range(start.size - 1):
        first, last = start[c], start[c + 1] - 1
        for position in range(first, last + 1):
            value, before, behind, radius = x[by_class[position]], position - 1, position + 1, 0.0
            for _ in range(min(k, last - first)):
                left = value - x[by_class[before]] if before >= first else np.inf
                right = x[by_class[behind]] - value if behind <= last else np.inf
                radius = min(left, right)
                if left <= right:
                    before -= 1
                else:
                    behind += 1
            near[by_class[position]] = near_count(x, by_class[position], radius)
