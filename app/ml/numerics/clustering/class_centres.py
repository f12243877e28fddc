"""Centres that stand for the rows of each class, or for all rows where there are no classes."""

import numpy as np

from app.ml.contract.algorithm import Data, Labels, Matrix, Task, Vector
from app.ml.numerics.clustering.lloyd import lloyd
from app.ml.numerics.clustering.seeding import canonical_order, seeds


def class_centres(wanted: int, data: Data, rng: np.random.Generator) -> tuple[Matrix, Vector, Labels]:
    """K-means centres (m, d), the target of each (m,), and the rows that it stands for (m,), in descending order.

    wanted: of each class, at most. In regression a target is the mean of the rows.
    """
    classes = data.targets.shape[1] if data.task is Task.CLASSIFICATION else 0
    groups = [np.flatnonzero(data.codes == c) for c in range(classes)] if classes else [np.arange(len(data.x))]
    parts = [_centres(wanted, data.take(group), rng) for group in groups if group.size]
    centres, targets, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((targets, *centres.T[::-1]))[::-1]
    return centres[order], targets[order], sizes[order]


def _centres(wanted: int, data: Data, rng: np.random.Generator) -> tuple[Matrix, Vector, Labels]:
    order = canonical_order(data.x)
    x, weights, y = data.x[order], data.weights[order], data.y[order]
    run = lloyd(x, weights, x[seeds(x, weights, wanted, rng)], max_iter=300)
    k = len(run.centres)
    mass = np.bincount(run.labels, weights, k)
    base = y.mean()  # so that rows that agree leave no rounding
    means = base + np.bincount(run.labels, weights * (y - base), k) / mass
    sizes: Labels = np.bincount(run.labels, minlength=k)
    return run.centres, y[:1].repeat(k) if data.task is Task.CLASSIFICATION else means, sizes
