"""Ellipse of a normal distribution in two columns, by mean and covariance of rows."""

import numpy as np

from app.ml.contract.algorithm import Matrix

LEVEL = 0.95
"""Probability of a row within the ellipse."""
POINTS = 60
MAX_FLOAT = float(np.finfo(float).max)
MIN_ROWS = 3
"""Rows that have an ellipse."""


def normal_ellipse(rows: Matrix) -> Matrix:
    """(POINTS + 1, 2) outline around rows (n, 2), the last point the first; none of fewer rows than have an ellipse.

    Rows on a line have the line. The squared radius is the quantile of χ² with two degrees of freedom, −2 log(1 − p).
    """
    if len(rows) < MIN_ROWS:
        return np.empty((0, 2))
    size = float(np.abs(rows).max()) or 1.0
    variances, directions = np.linalg.eigh(np.cov(rows.T / size))
    radius = np.sqrt(-2 * np.log1p(-LEVEL) * np.maximum(variances, 0.0))
    angles = np.linspace(0, 2 * np.pi, POINTS + 1)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    outline = (rows / size).mean(axis=0) + circle * radius @ directions.T
    return np.asarray(np.clip(outline, -MAX_FLOAT / size, MAX_FLOAT / size) * size)
