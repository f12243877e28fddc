"""The next measurements of a random function: the points whose values promise most, one after the other.

Each point of a batch maximises the acquisition given that those before it are being measured.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.progress import Progress, part_of
from app.ml.contract.random_function import RandomFunction
from app.ml.numerics.acquisition.acquisition_value import Acquisition
from app.ml.numerics.acquisition.pending_measurements import Pending
from app.ml.numerics.designs.climb import climb
from app.ml.numerics.designs.design_search import Effort, Scores, best_points
from app.ml.numerics.designs.design_space import DesignSpace

BatchName = Literal["kriging_believer", "constant_liar", "sampled"]
DRAWS = 6
"""Logarithm of the number of possible values of a batch."""
CLIMBS = 3
"""Best points of a search that climb to the maximum."""


class Measured(NamedTuple):
    """A random function over a design space."""

    function: RandomFunction
    rows: Callable[[Matrix], Matrix]
    """Maps points (n, p) of the space to rows (n, d) of the function."""
    worst: float
    """The worst value so far: a constant liar that expects it spreads a batch; one that expects the best does not."""


class NextMeasurement(NamedTuple):
    point: Vector
    value: float
    """Value of the acquisition, given the points before."""


def next_measurements(  # noqa: PLR0917  the parts of one choice
    space: DesignSpace,
    measured: Measured,
    acquisition: Acquisition,
    start: Matrix,
    count: int,
    batch: BatchName,
    rng: np.random.Generator,
    progress: Progress,
) -> list[NextMeasurement]:
    """start: (k, p) feasible points, at least one, where searches begin besides others."""
    normals = scipy.special.ndtri(scipy.stats.qmc.Sobol(count, rng=rng).random_base2(DRAWS).clip(1e-12, 1 - 1e-12))
    chosen: list[NextMeasurement] = []
    for step in range(count):
        pending = _pending(measured, np.array([measurement.point for measurement in chosen]), batch, normals)
        score = partial(_score, measured, acquisition, pending)
        chosen.append(_best(space, score, acquisition, start, rng, part_of(progress, step, count)))
    return chosen


def _score(measured: Measured, acquisition: Acquisition, pending: Pending, points: Matrix) -> Vector:
    return acquisition.score(pending, measured.rows(points))


def _best(  # noqa: PLR0917  as above
    space: DesignSpace,
    score: Callable[[Matrix], Vector],
    acquisition: Acquisition,
    start: Matrix,
    rng: np.random.Generator,
    progress: Progress,
) -> NextMeasurement:
    def scores(points: Matrix) -> Scores:
        return Scores(score(points), np.zeros(len(points)))

    def column(points: Matrix) -> Matrix:
        return score(points)[:, None]

    search = best_points(space, scores, start, Effort(), rng, progress)
    climbed = np.array([climb(space, column, point) for point in search.points[:CLIMBS]])
    values = score(climbed)
    place = int(values.argmax())
    return NextMeasurement(climbed[place], acquisition.value(float(values[place])))


def _pending(measured: Measured, points: Matrix, batch: BatchName, normals: Matrix) -> Pending:
    if not len(points):
        return Pending.none(measured.function)
    rows = measured.rows(points)
    if batch == "sampled":
        return Pending.drawn(measured.function, rows, normals)
    return Pending.believed(measured.function, rows, measured.worst if batch == "constant_liar" else None)
