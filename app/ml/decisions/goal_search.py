"""The search for the best points by goals: one solution of a single goal or a weighted sum, else a front."""

from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.progress import Progress, part_of
from app.ml.decisions.goal import Aims
from app.ml.numerics.designs.climb import climb
from app.ml.numerics.designs.design_points import drawn_points
from app.ml.numerics.designs.design_search import Effort, Scores, best_points
from app.ml.numerics.designs.design_space import DesignSpace
from app.ml.numerics.designs.pareto_front import ranks, thinned
from app.ml.numerics.designs.pareto_search import FrontScores, pareto_points

EffortName = Literal["quick", "normal", "thorough"]
EFFORTS: dict[EffortName, Effort] = {
    "quick": Effort(logarithm=9, n_best=8, n_moves=4, rounds=40),
    "normal": Effort(logarithm=11, n_best=12, n_moves=6, rounds=60),
    "thorough": Effort(logarithm=13, n_best=24, n_moves=8, rounds=100),
}
SAMPLED = 8
"""Logarithm of the number of points that show how far values are spread."""
CLIMBS = 3
"""Best points that climb to the maximum."""
KEPT = 1e-8
"""Share of the spread of a demand by which it may be missed."""


class Found(NamedTuple):
    points: Matrix
    """(n, d): one point, or those of a front by their first goal."""
    feasible: bool
    value: float | None
    """The weighted sum, or the single goal as it counts; None of a front."""
    scale: "Scale"
    evaluated: int


class Scale(NamedTuple):
    """Ranges over the space, by which misses of different demands are added, and slopes are measured."""

    value: float
    demands: Vector
    """(m,)."""


def weights(aims: Aims) -> Vector:
    """(k,) of the goals that are no limits; 1 where there is a single one, whatever weight it was given."""
    goal_weights = np.array([goal.weight for goal in aims.goals if not goal.is_limit])
    return np.ones(1) if len(goal_weights) == 1 else goal_weights


def functions(aims: Aims, points: Matrix) -> Matrix:
    """(n, 1 + m) the weighted sum of the goals, then the demands, as `climb` takes them."""
    reached = aims.reached(points)
    return np.column_stack([reached.gains(aims.goals) @ weights(aims), reached.demands(aims.goals)])


def searched(  # noqa: PLR0917  the parts of one search
    space: DesignSpace,
    aims: Aims,
    start: Matrix,
    effort: EffortName,
    rng: np.random.Generator,
    progress: Progress,
    *,
    front: int,
) -> Found:
    """front: largest number of points of a front; 0: one point."""
    sample = functions(aims, drawn_points(space, start[0], SAMPLED, rng))
    spreads = np.array([_spread(column) for column in sample.T])
    scale = Scale(float(spreads[0]), np.where(spreads[1:] > 0, spreads[1:], 1.0))
    if front:
        return _front(space, aims, start, EFFORTS[effort], rng, progress, scale, front)
    result = best_points(space, partial(_scores, aims, scale), start, EFFORTS[effort], rng, progress)
    points = np.array([climb(space, partial(functions, aims), point) for point in result.points[:CLIMBS]])
    order = _scores(aims, scale, points).order()
    best = points[order[:1]]
    scores = _scores(aims, scale, best)
    return Found(best, bool(scores.missed[0] == 0), float(scores.value[0]), scale, result.evaluated)


def _front(  # noqa: PLR0917  the parts of one search
    space: DesignSpace,
    aims: Aims,
    start: Matrix,
    effort: Effort,
    rng: np.random.Generator,
    progress: Progress,
    scale: Scale,
    count: int,
) -> Found:
    def score(points: Matrix) -> FrontScores:
        reached = aims.reached(points)
        gains = np.nan_to_num(reached.gains(aims.goals), nan=-1e300, posinf=1e300, neginf=-1e300)
        return FrontScores(gains, _missed(reached.demands(aims.goals), scale))

    pareto = pareto_points(space, score, start, effort.logarithm, effort.rounds, rng, part_of(progress, 0, 2))
    feasible = bool((pareto.scores.missed == 0).all())
    if not feasible:
        return Found(pareto.points[:1], False, None, scale, pareto.evaluated)
    spread = np.ptp(pareto.scores.values, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    shown, points = thinned(pareto.scores.values, count), list[Vector]()
    for place in shown:
        points.append(climb(space, partial(_no_worse, aims, spread, pareto.scores.values[place]), pareto.points[place]))
        progress(0.5 + 0.5 * len(points) / len(shown))
    climbed = np.array(points)
    scores = score(climbed)
    best = np.flatnonzero(ranks(scores.values, scores.missed) == 0)
    best = best[np.lexsort(scores.values[best].T[::-1])[::-1]]
    return Found(climbed[best], True, None, scale, pareto.evaluated)


def _no_worse(aims: Aims, spread: Vector, least: Vector, points: Matrix) -> Matrix:
    """(n, 1 + k) the sum of all goals, then the demands and by how much each goal exceeds its least value (k,)."""
    reached = aims.reached(points)
    gains = reached.gains(aims.goals) / spread
    return np.column_stack([gains.sum(axis=1), reached.demands(aims.goals), gains - least / spread])


def _scores(aims: Aims, scale: Scale, points: Matrix) -> Scores:
    values = functions(aims, points)
    return Scores(np.nan_to_num(values[:, 0], nan=-np.inf), _missed(values[:, 1:], scale))


def _missed(demands: Matrix, scale: Scale) -> Vector:
    """(n,) the sum of the misses in spreads; those that rounding explains are none."""
    short = np.nan_to_num(np.maximum(-demands / scale.demands, 0.0), nan=1e300, posinf=1e300)
    missed: Vector = np.where(short > KEPT, short, 0.0).sum(axis=1)
    return missed


def _spread(values: Vector) -> float:
    finite = values[np.isfinite(values)]
    return float(np.ptp(finite)) if len(finite) else 0.0
