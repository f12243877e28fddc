"""Starts of a Gaussian mixture: clusters of k-means or random rows; EM from each, and the likeliest result."""

import math
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from app.ml.contract.algorithm import Context, Matrix, Vector
from app.ml.numerics.clustering.lloyd import lloyd
from app.ml.numerics.clustering.seeding import seeds
from app.ml.numerics.density.gaussian_mixture import (
    Components,
    Options,
    Run,
    covariance,
    em,
    of_labels,
    whitened,
)

Init: TypeAlias = Literal["alternate", "kmeans", "random"]
MOVES = 30
"""Moves of the centres of k-means: EM goes on from there."""
TIE = 1e-9
"""Starts whose mean log densities differ by less reached the same: the first of them counts."""


class Starts(NamedTuple):
    """Rows and the options of a start."""

    x: Matrix
    """(n, d) in standard units, in an order that depends on their values only."""
    weights: Vector
    k: int
    options: Options
    init: Init
    """Kind of the starts; `alternate`: clusters of k-means, then random rows, in turn."""

    def first(self, seed: int, *, spread: bool) -> Components:
        """spread: from clusters of k-means, not random rows."""
        rng = np.random.Generator(np.random.PCG64(seed))
        candidates = 2 + int(math.log(self.k)) if spread else 1
        rows = seeds(self.x, self.weights, self.k, rng, spread=spread, candidates=candidates)
        if spread:
            run = lloyd(self.x, self.weights, self.x[rows], MOVES)
            return of_labels(self.x, self.weights, run.labels, len(run.centres), self.options)
        return self._about(self.x[rows])

    def _about(self, means: Matrix) -> Components:
        """Equal shares, and the covariance of all rows."""
        k, shares = len(means), self.weights / self.weights.sum()
        whole = covariance(self.x - shares @ self.x, shares, full=self.options.form == "full")
        whitening = whitened(whole[None], self.options)
        return Components(np.full(k, 1 / k), means, np.repeat(whitening, k, axis=0))

    def run(self, seed: int, number: int = 0) -> Run:
        """number: of the start, from 0."""
        spread = number % 2 == 0 if self.init == "alternate" else self.init == "kmeans"
        return em(self.x, self.weights, self.first(seed, spread=spread), self.options)


class Runs(NamedTuple):
    best: Run
    reached: list[float]
    """Mean log density at the end of each run."""


def best_run(starts: Starts, count: int, context: Context) -> Runs:
    """EM from as many starts, perhaps at once."""
    drawn = context.rng.integers(2**63, size=count).tolist()
    tasks = [partial(starts.run, seed, number) for number, seed in enumerate(drawn)]
    best, reached = None, []
    for run in context.each(Run, tasks):
        reached.append(float(run.curve[-1]))
        if best is None or run.curve[-1] > best.curve[-1] + TIE:
            best = run
        context.progress(len(reached) / count, log_density=float(best.curve[-1]))
    assert best is not None  # noqa: S101 - there is at least one start
    return Runs(best, reached)


def low_quantile(values: Vector, weights: Vector, share: float) -> float:
    """The largest value below which lies no more than this share of the weights; minus infinity for 0."""
    if share == 0:
        return -math.inf
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) - weights[order]
    place = np.searchsorted(below, share * weights.sum() * (1 + 1e-12), side="right") - 1
    return float(values[order][max(int(place), 0)])
