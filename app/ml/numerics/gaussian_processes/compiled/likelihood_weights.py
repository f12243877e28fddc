"""Weights of the derivatives of a covariance matrix in the log marginal likelihood."""

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import kernel

BLOCK = 64
"""Rows and columns of a square that stays in the cache while it is mirrored."""


@kernel("void(f8[:,::1], f8[::1])", writes=["inverse"])
def likelihood_weights(inverse: Matrix, alpha: Vector) -> None:
    """K⁻¹ − ααᵀ in place of K⁻¹ (n, n), of which the upper triangle is read; alpha (n,)."""
    n = len(alpha)
    for top in range(0, n, BLOCK):
        for left in range(top, n, BLOCK):
            for i in range(top, min(top + BLOCK, n)):
                for j in range(max(left, i), min(left + BLOCK, n)):
                    value = inverse[i, j] - alpha[i] * alpha[j]
                    inverse[i, j] = value
                    inverse[j, i] = value
