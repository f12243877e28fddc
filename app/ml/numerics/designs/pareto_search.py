"""A search for the points of a design space that no other point dominates (NSGA-II), in batches.

Each round moves every point of the population by a step, or by the difference of two others, and keeps the best half of
both: by rank, within a rank the less crowded.

Source: Deb, Pratap, Agarwal & Meyarivan (2002), IEEE Trans. Evol. Comput. 6:182.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.progress import Progress, silent
from app.ml.numerics.designs.design_points import drawn_points, feasible, moved_points
from app.ml.numerics.designs.design_space import DesignSpace
from app.ml.numerics.designs.pareto_front import crowding, ranks

POPULATION = 96
STEPS = 0.2, 0.002
"""Size of the first and of the last moves, in widths."""


class FrontScores(NamedTuple):
    """Scores of points by several values."""

    values: Matrix
    """(n, m) larger is better."""
    missed: Vector
    """(n,) by how much demands are missed, at least 0."""


class Front(NamedTuple):
    points: Matrix
    """(n, d) that none of those that were scored dominates, as far as they were kept."""
    scores: FrontScores
    evaluated: int


def pareto_points(  # noqa: PLR0917  the parts of one search
    space: DesignSpace,
    score: Callable[[Matrix], FrontScores],
    start: Matrix,
    logarithm: int,
    rounds: int,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Front:
    """start: (k, d) feasible points, at least one. logarithm: 2 to this power points begin beside them."""
    points = np.concatenate([start, drawn_points(space, start[0], logarithm, rng)])
    scores, evaluated = score(points), len(points)
    points, scores = _selected(points, scores)
    for step in range(rounds):
        size = STEPS[0] * (STEPS[1] / STEPS[0]) ** (step / max(rounds - 1, 1))
        tried = _children(space, points, size, rng)
        scores_of_tried = score(tried)
        evaluated += len(tried)
        both = FrontScores(
            np.vstack([scores.values, scores_of_tried.values]), np.append(scores.missed, scores_of_tried.missed)
        )
        points, scores = _selected(np.vstack([points, tried]), both)
        progress((step + 1) / rounds)
    best = ranks(scores.values, scores.missed) == 0
    return Front(points[best], FrontScores(scores.values[best], scores.missed[best]), evaluated)


def _selected(points: Matrix, scores: FrontScores) -> tuple[Matrix, FrontScores]:
    """The best points, as many as a population has."""
    rank = _ranks_of_many(scores)
    crowded = np.zeros(len(points))
    for front_rank in np.unique(rank):
        crowded[rank == front_rank] = crowding(scores.values[rank == front_rank])
    chosen = np.lexsort((-crowded, rank))[:POPULATION]
    return points[chosen], FrontScores(scores.values[chosen], scores.missed[chosen])


def _ranks_of_many(scores: FrontScores) -> Labels:
    """Ranks (n,) without the square of the number of first points: those outside the best by some value come last."""
    n = len(scores.missed)
    if n <= 4 * POPULATION:
        return ranks(scores.values, scores.missed)
    spread = np.where(np.ptp(scores.values, axis=0) > 0, np.ptp(scores.values, axis=0), 1.0)
    total = ((scores.values - scores.values.max(axis=0)) / spread).sum(axis=1)
    ends = [np.lexsort((-column, scores.missed))[:POPULATION] for column in (*scores.values.T, total)]
    some = np.unique(np.concatenate(ends))
    rank_of = np.full(n, n)
    rank_of[some] = ranks(scores.values[some], scores.missed[some])
    return rank_of


def _children(space: DesignSpace, points: Matrix, size: float, rng: np.random.Generator) -> Matrix:
    n, d = points.shape
    parents = points[rng.integers(n, size=POPULATION)]
    moved = moved_points(space, parents, np.full(len(parents), size), rng)
    first, second, third = points[rng.integers(n, size=(3, POPULATION))]
    steps = rng.uniform(0.3, 0.9, (len(parents), 1)) * (first - second) * space.free
    crossed = space.steps(parents, steps, np.ones(len(parents)))
    swapped = (rng.random((len(parents), d)) < 0.5) & (space.whole | space.category)
    crossed = feasible(space, np.where(swapped, third, crossed), parents)
    return np.where(rng.random((len(parents), 1)) < 0.5, moved, crossed)
