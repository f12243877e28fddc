"""Importance of columns: how much the error of trees on rows that they have not seen rises when one is permuted."""

import math

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, Data, Matrix, Task, Vector
from app.ml.numerics.trees.compiled.out_of_bag import permuted
from app.ml.numerics.trees.forest import Trees
from app.ml.numerics.trees.out_of_bag import MOST_ROWS


def permuted_increases(data: Data, tree: Trees, rows: NDArray[np.int32], rng: np.random.Generator) -> Vector:
    """The tree's error on rows it has not seen, and by how much each column's permutation raises it: (1 + d,)."""
    sample = rows[:: -(-rows.size // MOST_ROWS)].copy()
    increases = np.empty(1 + data.x.shape[1])
    numbers = data.task is Task.REGRESSION
    seed = np.uint64(rng.integers(2**63))
    increases[0] = permuted(data.x, data.y, data.weights, numbers, sample, seed, *tree[1:], increases[1:])
    return increases


def importances(rises: Matrix) -> tuple[float, Vector, Vector]:
    """Means over the trees, and the standard errors of the columns' means."""
    rises = rises[~np.isnan(rises[:, 0])]
    t = len(rises)
    if not t:
        return math.nan, np.zeros(0), np.zeros(0)
    mean, spread = rises.mean(axis=0), rises.std(axis=0, ddof=1 if t > 1 else 0) / math.sqrt(t)
    return float(mean[0]), mean[1:], spread[1:]


def ranked(importance: Vector, errors: Vector, alone: float) -> list[JSON]:
    """Importances as JSON, the largest first. errors: (d,) standard errors. alone: the trees' own error."""
    percent = 100 / alone if alone > 0 else None
    return [
        {
            "column": int(j),
            "increase": float(importance[j]),
            "standard_error": float(errors[j]),
            "percent": None if percent is None else percent * float(importance[j]),
        }
        for j in np.argsort(-importance, kind="stable")
    ]
