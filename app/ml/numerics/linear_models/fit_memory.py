"""Memory of fits of linear models beyond their rows, which they read in blocks."""

from app.ml.contract.algorithm import Size
from app.ml.numerics.row_blocks import count_sections

SQUARE_BYTES = 48.0
"""Memory of a pair of columns: sums of products, their copies and factors."""
DECOMPOSED_BYTES, COPIED_BYTES = 42.0, 32.0
"""Memory of a cell where the rows themselves are decomposed, and where they are centred and turned."""
ROW_BYTES, SCORE_BYTES = 16.0, 24.0
"""Memory of a row, and of each of its scores: target, weight, slope and copies on the way."""
SINGULAR = 1e-8
"""Penalty for each row below which the sums of products may be too near singular to be solved."""


def summed_bytes(size: Size, scores: int) -> float:
    """Memory of sums of products over blocks of rows, and of so many scores of each row."""
    squares = SQUARE_BYTES + 8 * count_sections(size.rows, size.columns)
    return squares * size.columns**2 + (ROW_BYTES + SCORE_BYTES * scores) * size.rows


def ridge_bytes(size: Size, penalty: float | None) -> float:
    """Memory of least squares with this penalty; None: it is chosen, by decompositions of the rows."""
    decomposed = penalty is None or penalty < SINGULAR * size.rows or size.columns > size.rows
    return summed_bytes(size, size.classes) + (DECOMPOSED_BYTES * size.cells if decomposed else 0.0)


def logistic_bytes(size: Size, *, held_out: bool) -> float:
    """Memory of a cross-entropy: centred rows, a fourth of them for its curvature, and perhaps those not held out."""
    scores = 1 if size.classes == 2 else size.classes
    unknowns = scores * (size.columns + 1)
    copied = 8.0 * size.cells * (1.25 + held_out)
    squares = SQUARE_BYTES + 8 * count_sections(size.rows, unknowns)
    return summed_bytes(size, scores) + copied + squares * min(unknowns, 1000.0) ** 2


def lasso_bytes(size: Size, folds: int, *, by_rows: bool) -> float:
    """Memory of sums of products of all rows and of folds, or of the rows themselves where these are fewer."""
    if by_rows:
        return COPIED_BYTES * size.cells + ROW_BYTES * size.rows
    return summed_bytes(size, size.classes) + 16.0 * folds * size.columns**2
