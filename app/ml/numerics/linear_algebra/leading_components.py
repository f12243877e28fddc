"""Leading principal components of a few rows, at a cost that stays small however many columns there are.

The nonzero eigenvalues of the scatter XᵀX of the columns are those of XXᵀ of the rows: the smaller of the two is
factorised. Squaring costs small eigenvalues half their digits; the largest, which a picture shows, keep theirs.

Reference: Jolliffe (2002), Principal Component Analysis, section 3.5.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.principal_directions import signed


class LeadingComponents(NamedTuple):
    coordinates: Matrix
    """(n, p) of the rows."""
    shares: Vector
    """(p,) of the variance of all columns, descending; 0 where nothing varies."""


def leading_components(x: Matrix, most: int) -> LeadingComponents:
    """Coordinates of rows x (n, d) along the `most` directions of the largest variance; at most min(n, d) of them."""
    n, d = x.shape
    size = float(np.abs(x).max(initial=0.0)) or 1.0
    rows = x / size
    rows -= rows.mean(axis=0)
    p = min(most, n, d)
    directions = _directions(rows, p)
    coordinates = rows @ directions.T
    variances, total = np.square(coordinates).sum(axis=0), np.square(rows).sum()
    return LeadingComponents(size * coordinates, variances / total if total > 0 else np.zeros(p))


def _directions(rows: Matrix, p: int) -> Matrix:
    """(p, d) unit vectors, each with its largest entry positive; zero where no variance is left."""
    n, d = rows.shape
    scatter = rows.T @ rows if d <= n else rows @ rows.T
    last = len(scatter) - 1
    _, vectors = scipy.linalg.eigh(scatter, subset_by_index=(last - p + 1, last), check_finite=False)
    directions = vectors.T[::-1] if d <= n else vectors.T[::-1] @ rows
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return signed(directions / np.where(lengths > 0, lengths, 1.0))
