"""A search for the best point of a design space, in batches of points.

It begins with many points all over the space. The best of them are then moved: by steps of a size that grows with
success and shrinks without, and by differences of two others (differential evolution), which learn the shape of the
landscape; equalities hold along both. At last the numbers of the best points climb to the maximum with finite
differences (`climb`). Of two points the one that misses its demands by less is better, then the one of the larger value
(Deb's rules).

Source: Storn & Price (1997), J. Glob. Optim. 11:341; Deb (2000), Comput. Methods Appl. Mech. Eng. 186:311.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.progress import Progress, silent
from app.ml.numerics.designs.design_points import drawn_points, feasible, moved_points
from app.ml.numerics.designs.design_space import DesignSpace

FIRST = 0.2
"""Size of the first steps, in widths."""
MIN_STEP_SIZE = 1e-6
"""Size of steps at which a point is at rest."""


class Scores(NamedTuple):
    """Scores of points."""

    value: Vector
    """(n,) larger is better."""
    missed: Vector
    """(n,) by how much demands are missed, at least 0."""

    def order(self) -> Labels:
        """(n,) places from the best to the worst; of equal ones the first is better."""
        return np.lexsort((-self.value, self.missed))

    def beats(self, other: "Scores") -> Labels:
        """(n,) true where it is better than the other."""
        better: Labels = (self.missed < other.missed) | ((self.missed == other.missed) & (self.value > other.value))
        return better

    def take(self, places: Labels) -> "Scores":
        return Scores(self.value[places], self.missed[places])


Scorer = Callable[[Matrix], Scores]


class Effort(NamedTuple):
    """Size of a search."""

    logarithm: int = 10
    """2 to this power points begin."""
    n_best: int = 12
    """The best of them that are moved."""
    n_moves: int = 6
    """Moves of each, tried at once."""
    rounds: int = 40


class Best(NamedTuple):
    points: Matrix
    """(n, d) from the best to the worst."""
    scores: Scores
    evaluated: int
    """Points that were scored."""


def best_points(  # noqa: PLR0917  the parts of one search
    space: DesignSpace,
    score: Scorer,
    start: Matrix,
    effort: Effort,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Best:
    """start: (k, d) feasible points, at least one, that begin beside those that are drawn."""
    points = np.concatenate([start, drawn_points(space, start[0], effort.logarithm, rng)])
    scores, evaluated = score(points), len(points)
    chosen = _apart(space, points, scores.order(), effort.n_best)
    points, scores = points[chosen], scores.take(chosen)
    sizes = np.full(len(points), FIRST)
    for step in range(effort.rounds):
        tried = _moves(space, points, sizes, effort.n_moves, rng)
        scores_of_tried = score(tried)
        evaluated += len(tried)
        points, scores, better = _kept_best(points, scores, tried, scores_of_tried)
        sizes = np.clip(np.where(better, 1.5, 0.6) * sizes, MIN_STEP_SIZE / 10, FIRST)
        progress((step + 1) / effort.rounds, best_value=float(scores.value[scores.order()[0]]))
        if (sizes < MIN_STEP_SIZE).all():
            break
    order = scores.order()
    return Best(points[order], scores.take(order), evaluated)


def _moves(space: DesignSpace, points: Matrix, sizes: Vector, count: int, rng: np.random.Generator) -> Matrix:
    """(n count, d): moves of each point one after the other, every other one by a difference of two points."""
    n, d = points.shape
    parents = np.repeat(np.arange(n), count)
    moved = moved_points(space, points[parents], sizes[parents], rng)
    first, second = rng.integers(n, size=(2, len(parents)))
    steps = rng.uniform(0.4, 1.0, (len(parents), 1)) * (points[first] - points[second]) * space.free
    crossed = space.steps(points[parents], steps, np.ones(len(parents)))
    swapped = (rng.random((len(parents), d)) < 0.5) & (space.whole | space.category)
    crossed = feasible(space, np.where(swapped, points[first], crossed), points[parents])
    return np.where((np.arange(len(parents)) % 2 == 0)[:, None], moved, crossed)


def _kept_best(points: Matrix, scores: Scores, tried: Matrix, tried_scores: Scores) -> tuple[Matrix, Scores, Labels]:
    """Each point, or the best of its moves where that is better."""
    n, count = len(points), len(tried) // len(points)
    value, missed = tried_scores.value.reshape(n, count), tried_scores.missed.reshape(n, count)
    point_numbers = np.arange(n)
    best = np.array([np.lexsort((-value[i], missed[i]))[0] for i in range(n)])
    moved = Scores(value[point_numbers, best], missed[point_numbers, best])
    better = moved.beats(scores)
    points = np.where(better[:, None], tried.reshape(n, count, -1)[point_numbers, best], points)
    kept_scores = Scores(np.where(better, moved.value, scores.value), np.where(better, moved.missed, scores.missed))
    return points, kept_scores, better


def _apart(space: DesignSpace, points: Matrix, order: Labels, count: int) -> Labels:
    """Places of the best points of which no two are within 2 % of the widths, as far as there are."""
    width = np.where(space.width > 0, space.width, 1.0)
    chosen: list[int] = []
    for place in order:
        if len(chosen) == count:
            break
        if not chosen or (np.abs(points[chosen] - points[place]) / width).max(axis=1).min() > 0.02:
            chosen.append(int(place))
    return np.array(chosen)
