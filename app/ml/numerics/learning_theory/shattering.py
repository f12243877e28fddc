"""Labellings of points by classes of functions: which there are, and the points that a class labels in every way.

A class shatters points if every labelling of them is that of one of its functions; its VC dimension is the largest
number of points that it shatters. Labellings are tried one by one, so that a class is tried on a few points only.

Reference: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 6.2, exercise 6.8 (sines) and
chapter 9.
"""

import math
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix

Labelling = NDArray[np.bool_]
"""(n,) label of each point."""
MOST_IN_THE_PLANE = 11
"""Points of the plane of which every order was tried, to count their labellings by rectangles."""


class FunctionClass(NamedTuple):
    """A class of functions of points with d numbers each; k is a number of intervals."""

    dimension: Callable[[int, int], float]
    """Maps (d, k) to the VC dimension, perhaps infinite."""
    growth: Callable[[int, int, int], float]
    """Maps (n, d, k) to the largest number of labellings of n points; NaN where no formula is known."""
    shattered: Callable[[int, int, int], Matrix]
    """Maps (n, d, k) to n points (n, d) that are shattered, n at most the dimension."""
    one_more: Callable[[Matrix], Matrix]
    """Points of a shattered set to points with one more, which cannot be shattered."""
    labels: Callable[[Matrix, Labelling, int], bool] | None
    """True if a function of the class gives these points (n, d) this labelling; k. None: not decided."""
    columns: int | None = None
    """Numbers of a point, where they are fixed."""


def labellings(function_class: FunctionClass, points: Matrix, intervals: int) -> Iterator[Labelling]:
    """The labellings of points (n, d) that functions of the class give, of all 2^n."""
    return (labelling for labelling, is_realised in _tried(function_class, points, intervals) if is_realised)


def refused(function_class: FunctionClass, points: Matrix, intervals: int) -> Labelling | None:
    """The first labelling of points (n, d) that no function of the class gives; None: they are shattered."""
    return next(
        (labelling for labelling, is_realised in _tried(function_class, points, intervals) if not is_realised), None
    )


def _tried(function_class: FunctionClass, points: Matrix, intervals: int) -> Iterator[tuple[Labelling, bool]]:
    if function_class.labels is None:
        raise ValueError("no labelling of given points is decided for this class")
    for labels in product((False, True), repeat=len(points)):
        labelling = np.array(labels)
        yield labelling, function_class.labels(points, labelling, intervals)


def by_intervals(n: int, intervals: int) -> int:
    """Labellings of n points of the line by so many intervals: the choices of their ends.

    >>> by_intervals(7, 1)
    29
    """
    return sum(math.comb(n + 1, 2 * j) for j in range(intervals + 1))


def by_rectangles(n: int, d: int) -> float:
    """Largest number of labellings of n points by rectangles; NaN where it is not known.

    In the plane that of two rising chains of n/2 points, of which one is above and left of the other: each labelling is
    an interval of either. No order of up to 11 points has more, by exhaustion.

    >>> [by_rectangles(n, 2) for n in (4, 5, 6, 12)]
    [16.0, 28.0, 49.0, nan]
    """
    if n <= 2 * d:
        return 2.0**n
    if d == 1:
        return float(by_intervals(n, 1))
    if d == 2 and n <= MOST_IN_THE_PLANE:
        return float(by_intervals(n // 2, 1) * by_intervals(n - n // 2, 1))
    return math.nan


def sine_frequency(labelling: Labelling) -> float:
    """Frequency θ by which sin(θx) is positive for the points of this label of ½, ¼, …, (n,), and negative for others.

    The i-th digit of θ/π in base two is 0 if the i-th label is positive; shifted by i places, the digits before it are
    even, those behind it and a last 1 are a number between 0 and 1.

    >>> theta = sine_frequency(np.array([True, False, True]))
    >>> np.sin(theta * 0.5 ** np.arange(1, 4)) > 0
    array([ True, False,  True])
    """
    digits = np.where(labelling, 0.0, 2.0 ** np.arange(1, labelling.size + 1))
    return float(math.pi * (1 + digits.sum()))


def in_intervals(points: Matrix, labelling: Labelling, intervals: int) -> bool:
    """True if so many intervals of the line hold the positive points, and no others."""
    positive, negative = points[labelling, 0], points[~labelling, 0]
    if np.isin(positive, negative).any():
        return False
    order = np.argsort(points[:, 0], kind="stable")
    begins = labelling[order] & ~np.append(False, labelling[order][:-1])
    return int(begins.sum()) <= intervals


def beyond_threshold(points: Matrix, labelling: Labelling, _intervals: int) -> bool:
    """True if the positive points are those from some number on."""
    return bool(points[labelling, 0].min(initial=math.inf) > points[~labelling, 0].max(initial=-math.inf))


def in_rectangle(points: Matrix, labelling: Labelling, _intervals: int) -> bool:
    """True if the smallest rectangle around the positive points holds no others."""
    if not labelling.any():
        return True
    low, high = points[labelling].min(axis=0), points[labelling].max(axis=0)
    return not ((points[~labelling] >= low) & (points[~labelling] <= high)).all(axis=1).any()


def by_halfspace(points: Matrix, labelling: Labelling, _intervals: int) -> bool:
    """True if a hyperplane has the positive points strictly on one side and the others on the other."""
    if labelling.all() or not labelling.any():
        return True
    centred = points - points.mean(axis=0)
    sizes = np.abs(centred).max(axis=0)
    rows = np.column_stack([centred / np.where(sizes > 0, sizes, 1.0), np.ones(len(points))])
    signed = np.where(labelling, -1.0, 1.0)[:, None] * rows
    solution = scipy.optimize.linprog(
        np.zeros(rows.shape[1]), A_ub=signed, b_ub=-np.ones(len(rows)), bounds=(None, None), method="highs"
    )
    return bool(solution.status == 0)


def in_polygon(points: Matrix, labelling: Labelling, _intervals: int) -> bool:
    """True if the convex hull of the positive points holds no others: each is cut off by a line."""
    places = np.flatnonzero(labelling)
    for place in np.flatnonzero(~labelling):
        alone = np.arange(places.size + 1) == places.size
        if not by_halfspace(points[np.append(places, place)], alone, 1):
            return False
    return True


def _on_a_line(n: int, _d: int, _k: int) -> Matrix:
    return np.arange(float(n))[:, None]


def _next_on_the_line(points: Matrix) -> Matrix:
    return np.append(points, [[float(len(points))]], axis=0)


def _simplex(n: int, d: int, _k: int) -> Matrix:
    return np.append(np.zeros((1, d)), np.eye(d), axis=0)[:n]


def _with_the_middle(points: Matrix) -> Matrix:
    return np.append(points, points.mean(axis=0)[None], axis=0)


def _on_axes(n: int, d: int, _k: int) -> Matrix:
    return np.append(np.eye(d), -np.eye(d), axis=0)[:n]


def _halves(n: int, _d: int, _k: int) -> Matrix:
    return 0.5 ** np.arange(1.0, n + 1)[:, None]


def _on_a_circle(n: int, _d: int, _k: int) -> Matrix:
    angles = 2 * math.pi * np.arange(n) / n
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _no_more(points: Matrix) -> Matrix:
    return points


CLASSES = {
    "thresholds": FunctionClass(
        lambda _d, _k: 1, lambda n, _d, _k: n + 1, _on_a_line, _next_on_the_line, beyond_threshold, columns=1
    ),
    "intervals": FunctionClass(
        lambda _d, k: 2 * k,
        lambda n, _d, k: float(by_intervals(n, k)),
        _on_a_line,
        _next_on_the_line,
        in_intervals,
        columns=1,
    ),
    "rectangles": FunctionClass(
        lambda d, _k: 2 * d, lambda n, d, _k: by_rectangles(n, d), _on_axes, _with_the_middle, in_rectangle
    ),
    "halfspaces": FunctionClass(
        lambda d, _k: d + 1,
        lambda n, d, _k: float(2 * sum(math.comb(n - 1, j) for j in range(min(d, n - 1) + 1))),
        _simplex,
        _with_the_middle,
        by_halfspace,
    ),
    "convex_polygons": FunctionClass(
        lambda _d, _k: math.inf, lambda n, _d, _k: 2.0**n, _on_a_circle, _no_more, in_polygon, columns=2
    ),
    "sines": FunctionClass(
        lambda _d, _k: math.inf, lambda n, _d, _k: 2.0**n, _halves, _no_more, labels=None, columns=1
    ),
}


def shattered_instances(table: NDArray[np.bool_], most: int) -> tuple[int, ...] | None:
    """Places of a largest set of instances that a finite class shatters; None after `most` sets were looked at.

    table: (m, c) labels of c instances by m hypotheses.
    """
    distinct, best, looked = np.unique(table, axis=0), tuple[int, ...](), 0
    sizes = range(1, len(distinct).bit_length())
    for size in sizes:
        powers, is_shattered = 1 << np.arange(size), False
        for chosen in combinations(range(table.shape[1]), size):
            looked += 1
            if looked > most:
                return None
            if np.unique(distinct[:, chosen] @ powers).size == 1 << size:
                best, is_shattered = chosen, True
                break
        if not is_shattered:
            break
    return best
