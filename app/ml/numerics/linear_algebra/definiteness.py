"""Positive semidefinite matrices: those with a Cholesky factor, but for rounding."""

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector

TOLERANCE = 1e-8
"""Share of the norm below zero that is no rounding, where values come with eight digits or so."""


def negative_spectrum(square: Matrix) -> Vector | None:
    """Eigenvalues (n,), ascending, of a symmetric matrix (n, n) that is not positive semidefinite; None: it is.

    It is if it has a Cholesky factor when rounding of its norm is added to its diagonal: a tenth of the time.
    """
    largest = float(np.abs(square).max(initial=0.0))
    if np.isnan(largest) or largest == 0:
        return None
    scaled = square / largest
    scaled[np.diag_indices_from(scaled)] += TOLERANCE * np.linalg.norm(scaled)
    if not scipy.linalg.lapack.dpotrf(scaled.T, lower=True, overwrite_a=True, clean=False)[1]:
        return None
    return np.asarray(largest * scipy.linalg.eigvalsh(square / largest))
