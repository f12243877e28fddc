"""Bounds on the distances of rows to centres: a row whose bounds part cannot have changed sides.

For each row an upper bound of the distance to its own centre and a lower bound of that to any other are kept. When
centres move, the bounds move with them; a row is compared with all centres only where the upper bound reaches the lower
one and half the distance of its centre to the next. The labels are those of comparing everything.

What centres have moved is added up apart, so that no bound is written as long as its row is not looked at; and while
centres move little, only rows are looked at whose bounds were near each other a while ago. Sections of the rows are
swept at once where cores are free: the sums of clusters change by the sections in their order.

Bounds are widened by what rounding may have taken from them.

Reference: Hamerly (2010), SIAM Data Mining: 130.
"""

from functools import partial
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.threads import run_at_once
from app.ml.numerics.clustering.compiled.bounds import (
    ROUNDING,
    SECTION,
    add_rows,
    compare_all,
    compare_by_tiles,
    compare_undecided,
    half_gaps,
    near_rows,
    settle,
    undecided,
)
from app.ml.numerics.neighbours.distances import (
    MAX_DIRECT_CELLS,
    NARROW,
    Frame,
    Rounded,
    Scores,
    quiet,
    squared_distances,
)
from app.ml.numerics.row_blocks import sections

AHEAD, TOO_FAR = 3, 12
"""Moves such as the last one that rows are chosen for which are looked at in the next sweeps, and from how many moves
on they are chosen anew.
"""
MANY_NEAR = 2**14
"""Rows from which sections are swept at once."""
FEW_CENTRES = 4
"""Centres up to which a row is compared with all of them sooner by difference than by products."""
MAX_DIRECT_CENTRES = 512
"""Centres whose distances are computed sooner by a product."""


class Rows:
    """Rows, and for each of them its centre and its bounds."""

    def __init__(self, x: Matrix, weights: Vector, centres: Matrix) -> None:
        """All rows are of the first centre, with bounds that decide nothing."""
        self.x, self.weights, self.frame = x, weights, Frame.of(centres)
        self.lengths = self.frame.lengths(x)
        """Squared lengths in the frame."""
        self._near = np.empty(len(x), np.intp)
        self._sections = sections(len(x), 1)
        self.begin(np.zeros(len(x), np.intp), len(centres))

    def begin(self, labels: Labels, k: int) -> None:
        """Take these labels of k centres, and bounds that decide nothing."""
        self.labels, self.far, self.lower = labels, np.full(len(labels), np.inf), np.zeros(len(labels))
        self.walked, self.drift = np.zeros(k), np.zeros(k)
        """(k,) moves of each centre in all; and the same with the largest move of any other each time."""
        self._counts, self._limits = [0] * len(self._sections), np.full(k, -1.0)

    def upper(self) -> Vector:
        """(n,) no row is farther from its own centre."""
        return np.asarray(self.far + self.walked[self.labels])

    def nearest_other(self) -> Vector:
        """(n,) no row is nearer to any other centre."""
        return np.asarray(self.lower - (self.drift - self.walked)[self.labels])

    def move(self, moved: Vector, half_gaps: Vector) -> None:
        """After each centre has moved by at most `moved` (k,). half_gaps: (k,) half the distance to the next now."""
        steps = moved + _of_others(moved)
        self.walked += moved + ROUNDING * self.walked
        self.drift += steps + ROUNDING * self.drift
        left = self._limits - self.drift
        if (left >= 0).all() and left.max() <= TOO_FAR * steps.max():
            return
        self._limits = self.drift + AHEAD * steps
        reach = half_gaps - self.walked - 1.5 * AHEAD * steps  # a gap shrinks by what both its ends move
        self._counts = run_at_once([partial(self._choose, reach, section) for section in self._sections])

    def near(self) -> list[Labels]:
        """Rows of each section whose bounds may not part."""
        starts = [section.start for section in self._sections]
        return [self._near[start : start + count] for start, count in zip(starts, self._counts, strict=True)]

    def _choose(self, reach: Vector, section: slice) -> int:
        bounds = self.labels[section], self.far[section], self.lower[section]
        return near_rows.lean(*bounds, section.start, self._limits, reach, self._near[section])


class Clusters(NamedTuple):
    sums: Matrix
    """(k, d) weighted sum of the rows of each."""
    masses: Vector
    """(k,) sum of the weights."""
    sizes: Labels
    """(k,) number of rows."""

    @classmethod
    def of(cls, x: Matrix, weights: Vector, labels: Labels, k: int) -> Self:
        clusters = cls.empty(k, x.shape[1])
        add_rows(np.ascontiguousarray(x), weights, labels, *clusters)
        return clusters

    def add(self, change: Self) -> None:
        np.add(self.sums, change.sums, out=self.sums)
        np.add(self.masses, change.masses, out=self.masses)
        np.add(self.sizes, change.sizes, out=self.sizes)

    @classmethod
    def empty(cls, k: int, d: int) -> Self:
        return cls(np.zeros((k, d)), np.zeros(k), np.zeros(k, np.intp))


class Sweep(NamedTuple):
    changed: int
    """Rows that have a new centre."""
    fall: float
    """Decrease of the inertia by them."""


@quiet
def sweep(rows: Rows, clusters: Clusters, centres: Matrix, moved: Vector) -> Sweep:
    """Give each row its nearest centre, after each centre has moved by `moved` (k,).

    An infinite upper bound makes sure that a row is compared.
    """
    if rows.x.size * len(centres) <= MAX_DIRECT_CELLS:
        everything = [*_bounds(rows), *clusters, centres]
        return Sweep(*compare_all.lean(*everything))
    slack = 1 + ROUNDING * (centres.shape[1] + 8)
    gaps = _half_gaps(centres)
    rows.move(moved * slack, gaps)
    near, changes = rows.near(), [clusters]
    if len(near) > 1:
        changes = [Clusters.empty(*centres.shape) for _ in near]
    steps = (centres, rows.walked, rows.drift, gaps, slack)
    if len(centres) <= FEW_CENTRES:
        how = partial(_by_difference, rows, steps)
    else:
        products = _by_tiles if rows.x.shape[1] <= NARROW else _by_products
        how = partial(products, rows, steps, Rounded.of(rows.frame, centres))
    calls = [partial(how, some, change) for some, change in zip(near, changes, strict=True)]
    many = sum(some.size for some in near) >= MANY_NEAR
    swept = run_at_once(calls) if many else [call() for call in calls]
    if len(near) > 1:
        for change in changes:
            clusters.add(change)
    return Sweep(sum(sweep_.changed for sweep_ in swept), sum(part_swept.fall for part_swept in swept))


Steps: TypeAlias = tuple[Any, ...]
"""Centres, what they have moved, that with the others, half their gaps, and the factor of rounding."""


def _by_difference(rows: Rows, steps: Steps, near: Labels, clusters: Clusters) -> Sweep:
    arguments = [*_bounds(rows), near, *clusters, *steps]
    return Sweep(*compare_undecided.lean(*arguments))


def _by_tiles(rows: Rows, steps: Steps, rounded: Rounded, near: Labels, clusters: Clusters) -> Sweep:
    frame = rows.frame
    arguments = [*_bounds(rows), near, *clusters, *steps, rows.lengths, frame.origin, frame.unit, *rounded]
    return Sweep(*compare_by_tiles.lean(*arguments))


@quiet
def _by_products(rows: Rows, steps: Steps, rounded: Rounded, near: Labels, clusters: Clusters) -> Sweep:
    centres, walked, drift, gaps, slack = steps
    scores = Scores(rows.frame, rounded, len(near))
    room, squares = np.empty(min(len(near), SECTION), np.intp), np.empty(min(len(near), SECTION))
    changed, fall = 0, 0.0
    for start in range(0, len(near), SECTION):
        some = near[start : start + SECTION]
        bounds = rows.x, rows.labels, rows.far, rows.lower
        undecided_rows = undecided.lean(*bounds, some, centres, walked, drift, gaps, slack, room, squares)
        for block in scores.blocks(undecided_rows):
            lowest = scores.lowest(rows.x, room[block])
            arguments = [*_bounds(rows), room[block], squares[block], *clusters, centres, walked, drift]
            arguments += [*lowest, rows.lengths, rows.frame.unit, rounded.rounding, slack]
            more, less = settle.lean(*arguments)
            changed, fall = changed + more, fall + less
    return Sweep(changed, fall)


def _bounds(rows: Rows) -> list[Any]:
    return [rows.x, rows.weights, rows.labels, rows.far, rows.lower]


def _of_others(moved: Vector) -> Vector:
    """The largest move of any centre but this one."""
    order = np.argsort(moved)
    others = np.full(len(moved), moved[order[-1]])
    others[order[-1]] = moved[order[-2]] if len(moved) > 1 else 0.0
    return others


def _half_gaps(centres: Matrix) -> Vector:
    """Half the distance of each centre to the next, at most."""
    gaps = np.empty(len(centres))
    if len(centres) <= MAX_DIRECT_CENTRES:
        half_gaps.lean(centres, gaps)
        return gaps * (1 - 1e-7)
    for start in range(0, len(centres), 256):
        block = squared_distances(centres[start : start + 256], centres)
        block[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        gaps[start : start + 256] = np.sqrt(block.min(axis=1)) / 2
    return gaps * (1 - 1e-7)
