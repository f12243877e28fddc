"""Online steps of a self-organising map: the nearest prototype and those beside it move towards one row at a time."""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel


@inner
def squares_to(columns: Matrix, row: Vector, squares: Vector) -> None:
    """Squared distances of all prototypes to a row. A column at a time: the processor adds several."""
    for c in range(squares.size):
        squares[c] = 0.0
    for j in range(row.size):
        column, here = columns[j], row[j]
        for c in range(squares.size):
            squares[c] += (column[c] - here) * (column[c] - here)


@inner
def lowest(squares: Vector) -> int:
    """The first of the lowest."""
    best, least = 0, squares[0]
    for c in range(1, squares.size):
        if squares[c] < least:
            best, least = c, squares[c]
    return best


@inner
def activate(best: int, shift: float, rise: float, radius: float, step: float, bells: Matrix, active: Vector) -> None:
    """`step` times the neighbourhood of one cell, for all cells (m,).

    bells: (2, width), for the neighbourhood along the rows of the same and of the other parity.
    """
    width = bells.shape[1]
    row, column = best // width, best % width
    for c in range(width):
        across, other = (c - column) / radius, (c - column + shift * (1 - 2 * (row % 2))) / radius
        bells[0, c], bells[1, c] = math.exp(-across * across / 2), math.exp(-other * other / 2)
    for r in range(active.size // width):
        down = (r - row) * rise / radius
        height, along = step * math.exp(-down * down / 2), bells[(r + row) % 2]
        for c in range(width):
            active[r * width + c] = height * along[c]


@kernel("void(f8[:,::1], i8[::1], f8[::1], f8[::1], i8, f8, f8, f8[:,::1])", writes=["columns"], ieee=True)
def online(
    x: Matrix, rows: Labels, steps: Vector, radii: Vector, width: int, shift: float, rise: float, columns: Matrix
) -> None:
    """Move the prototypes, whose columns are (d, m), towards the rows of these numbers (t,), one after the other.

    Eq. 14.2: pᵢ += stepₜ·exp(−D(c, i)²/(2·radiusₜ²))·(x − pᵢ), c the cell nearest to x and D the distance of cells.
    shift, rise: of the rows of the grid.
    """
    squares, active, bells = np.empty(columns.shape[1]), np.empty(columns.shape[1]), np.empty((2, width))
    for t in range(rows.size):
        row = x[rows[t]]
        squares_to(columns, row, squares)
        activate(lowest(squares), shift, rise, radii[t], steps[t], bells, active)
        for j in range(row.size):
            column, here = columns[j], row[j]
            for c in range(active.size):
                column[c] += active[c] * (here - column[c])
