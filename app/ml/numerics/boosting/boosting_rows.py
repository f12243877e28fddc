"""Rows that trees grow from, those that the training curve is of, and the sum before any tree."""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Vector
from app.ml.numerics.boosting.boosting_params import BoostingParams
from app.ml.numerics.boosting.losses import batches

CURVE_ROWS = 10_000
"""Rows, at most, that the curve of the training loss is of."""
MIN_CLASS_SHARE = 1e-9
"""Share that a class without rows is taken to have."""


def curve_rows(train_mask: NDArray[np.bool_], each: int) -> list[Labels]:
    """The rows that the curve is of, some at a time."""
    rows = np.flatnonzero(train_mask)
    rows = rows[:: -(-rows.size // CURVE_ROWS)].copy()
    return [rows[batch] for batch in batches(rows.size, each)]


def draw_train_mask(params: BoostingParams, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The training rows (n,); the others are held out."""
    if not params.early_stopping or n == 1:
        return np.broadcast_to(np.True_, n)
    train_mask = np.ones(n, np.bool_)
    train_mask[rng.permutation(n)[: min(max(1, round(params.validation_fraction * n)), n - 1)]] = False
    return train_mask


def best_base(data: Data, train_mask: NDArray[np.bool_], classes: int) -> Vector:
    """The best sum without any tree: the mean, or log-odds, or logarithms of the shares."""
    sums, weight = np.zeros(data.targets.shape[1]), 0.0
    for batch in batches(len(data.x), sums.size):
        weights = data.weights[batch] * train_mask[batch]
        sums, weight = sums + weights @ data.targets[batch], weight + float(weights.sum())
    shares: Vector = sums / weight
    if not classes:
        return shares
    floored = np.maximum(shares, MIN_CLASS_SHARE)
    return np.log(floored[1:] / floored[:1]) if classes == 2 else np.log(floored)
