"""Hartigan's method: single rows change clusters where that lowers the inertia, though another centre is nearest.

A row that leaves a cluster of mass M takes its mean along, so its cost there is M / (M − w) times its squared distance;
where it enters, it is M / (M + w) times. Lloyd's algorithm leaves both factors out, and can stop where a slightly
different partition is better. With many rows in a cluster the factors are 1.

References: Hartigan & Wong (1979), Appl. Stat. 28:100; Telgarsky & Vattani (2010), AISTATS: 820.
"""

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.clustering.bounds import Clusters
from app.ml.numerics.clustering.compiled.row_exchange import exchange
from app.ml.numerics.clustering.lloyd import Run, lloyd

MAX_DIFFERENCES = 2**20
"""Differences of numbers between rows and centres; beyond it clusters have many rows."""


def exchanged(x: Matrix, weights: Vector, run: Run, max_iter: int) -> Run:
    """After changes of single rows, and Lloyd's algorithm after each pass, until no change lowers the inertia.

    Equal rows must be neighbours in x. `max_iter` moves of the centres in all.
    """
    while run.converged and x.size * len(run.centres) <= MAX_DIFFERENCES and len(run.inertia) <= max_iter:
        labels, centres = run.labels.copy(), run.centres.copy()
        clusters = Clusters.of(x, weights, labels, len(centres))
        if not exchange(x, weights, labels, *clusters, centres):
            return run
        trial = lloyd(x, weights, centres, max_iter + 1 - len(run.inertia))
        if trial.inertia[-1] >= run.inertia[-1]:
            return run
        run = trial._replace(inertia=[*run.inertia, *np.minimum(trial.inertia[1:], run.inertia[-1]).tolist()])
    return run
