"""Centres by splitting (Linde-Buzo-Gray), and moves of centres that serve little to where they serve more.

References: Linde, Buzo & Gray (1980), IEEE Trans. Commun. 28:84; Fritzke (1997), Neural Process. Lett. 5:35.
"""

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.clustering.lloyd import Run, lloyd, means
from app.ml.numerics.neighbours.compiled.distances import compare

OFFSET = 0.5
"""Offset of a split centre, in standard deviations of its rows."""


def split_centres(x: Matrix, weights: Vector, k: int, rng: np.random.Generator, max_iter: int) -> Matrix:
    """Up to k centres: the mean is split into two, and after Lloyd's algorithm each of these again.

    The last time, the centres of the largest inertia are split, so that k remain. Fewer than k come back when there are
    no more distinct rows.
    """
    run = lloyd(x, weights, np.average(x, axis=0, weights=weights)[None], max_iter)
    before = 0
    while before < len(run.centres) < k:
        before = len(run.centres)
        run = lloyd(x, weights, _split(x, weights, run, k - before, rng), max_iter)
    return run.centres


def _split(x: Matrix, weights: Vector, run: Run, most: int, rng: np.random.Generator) -> Matrix:
    costs = np.bincount(run.labels, weights * run.squares, len(run.centres))
    chosen = np.argsort(-costs, kind="stable")[:most]
    offsets = _offsets(x, weights, run, rng)[chosen]
    centres = run.centres.copy()
    centres[chosen] -= offsets
    return np.concatenate([centres, run.centres[chosen] + offsets])


def _offsets(x: Matrix, weights: Vector, run: Run, rng: np.random.Generator) -> Matrix:
    """(k, d) in a random direction, as long as the rows of each centre are spread."""
    spread = np.sqrt(means((x - run.centres[run.labels]) ** 2, weights, run.labels, len(run.centres)))
    offsets: Matrix = OFFSET * spread * rng.choice([-1.0, 1.0], spread.shape)
    return offsets


def shifted(x: Matrix, weights: Vector, run: Run, max_iter: int, rng: np.random.Generator) -> Run:
    """After moves of the centre with the least utility beside the one with the largest inertia, and Lloyd's algorithm
    after each move, as long as the inertia falls; `max_iter` moves of Lloyd's algorithm in all.

    The utility of a centre is the increase of the inertia if it were removed. The curve of the inertia is that of the
    best so far.
    """
    while run.converged and len(run.centres) > 1 and len(run.inertia) <= max_iter:
        best = run.inertia[-1]
        trial = lloyd(x, weights, _shift(x, weights, run, rng), max_iter + 1 - len(run.inertia))
        if len(trial.centres) < len(run.centres) or trial.inertia[-1] >= best:
            return run
        run = trial._replace(inertia=[*run.inertia, *np.minimum(trial.inertia[1:], best).tolist()])
    return run


def _shift(x: Matrix, weights: Vector, run: Run, rng: np.random.Generator) -> Matrix:
    labels, (squares, others) = np.empty(len(x), np.intp), np.empty((2, len(x)))
    compare(x, run.centres, labels, squares, others)
    useless = int(np.bincount(labels, weights * (others - squares), len(run.centres)).argmin())
    costs = np.bincount(labels, weights * squares, len(run.centres))
    costs[useless] = -1.0
    largest, centres = int(costs.argmax()), run.centres.copy()
    offset = _offsets(x, weights, run, rng)[largest]
    centres[useless] = centres[largest] + offset
    centres[largest] -= offset
    return centres
