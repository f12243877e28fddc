"""Weighted sums of squared differences between rows, column by column: derivatives by length scales are such."""

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector


def squares_by_column(rows: Matrix, weights: Matrix) -> Vector:
    """(d,) sums Σᵢₖ wᵢₖ (xᵢⱼ − xₖⱼ)² for rows (n, d) and symmetric weights (n, n), by products instead of a matrix a
    column.
    """
    moved = rows - rows.mean(axis=0)
    # Σᵢₖ wᵢₖ (xᵢ − xₖ)² = 2 Σᵢ xᵢ² Σₖ wᵢₖ − 2 x·(W x), column by column
    sums: Vector = 2 * (weights.sum(axis=1) @ moved**2 - np.einsum("ij,ij->j", moved, weights @ moved))
    return sums
