"""Rows that distinguish two readings of the same trees: each threshold and its neighbours, gaps, unknown categories."""

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.trees.forest import Trees

MIN_PROBE_ROWS, MAX_PROBE_ROWS = 1000, 10_000
"""Rows: as many as the column with most thresholds has values to try, within these."""
MOST_CELLS = 1 << 24


def probe_rows(trees: Trees) -> Matrix:
    """(n, d): in every column all values to try, each among random ones of the other columns."""
    rng = np.random.default_rng(0)
    tried = [_tried(trees, j) for j in range(trees.levels.size)]
    most = max(MIN_PROBE_ROWS, min(MAX_PROBE_ROWS, MOST_CELLS // max(1, trees.levels.size)))
    n = min(max(MIN_PROBE_ROWS, *(values.size for values in tried)), most)
    columns = [np.resize(rng.permutation(values), n) for values in tried]
    return np.stack([rng.permutation(column) for column in columns], axis=1)


def _tried(trees: Trees, column: int) -> Vector:
    """At each bound the numbers beside it, also those of 32 bits; of a category its codes."""
    if trees.levels[column]:
        return np.append(np.arange(trees.levels[column], dtype=np.float64), np.nan)
    bounds = np.unique(trees.threshold[trees.column == column])
    with np.errstate(over="ignore"):
        single = bounds.astype(np.float32)
        near = [bounds, np.nextafter(bounds, np.inf), np.nextafter(bounds, -np.inf), single.astype(np.float64)]
        near += [np.nextafter(single, np.float32(end)).astype(np.float64) for end in (-np.inf, np.inf)]
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0])
    return np.unique(np.concatenate([*near, special]))
