"""Distances to the chosen rows when one more is chosen; rows that it cannot be near are passed over."""

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import kernel
from app.ml.numerics.neighbours.compiled.distances import square


@kernel("void(f8[:,::1], f8[::1], f8[:,::1], f8[:,::1], i8[::1], f8[::1], f8[::1])", writes=["totals"])
def remaining(
    x: Matrix, weights: Vector, new: Matrix, reach: Matrix, owners: Labels, squares: Vector, totals: Vector
) -> None:
    """Weighted sum of the squared distances to the nearest of the chosen rows and one of the new rows (c, d), for each.

    A new row is no nearer to x than its owner where the square is at most `reach` (c, m): a quarter of the squared
    distance from the new row to the owner.
    """
    for i in range(x.shape[0]):
        for c in range(new.shape[0]):
            near = squares[i]
            if near > reach[c, owners[i]]:
                near = min(near, square(x[i], new[c]))
            totals[c] += weights[i] * near


@kernel("void(f8[:,::1], f8[::1], f8[::1], i8, i8[::1], f8[::1])", writes=["owners", "squares"])
def take(x: Matrix, new: Vector, reach: Vector, number: int, owners: Labels, squares: Vector) -> None:
    """Make a new row (d,) the owner of the rows that are nearer to it; `reach` (m,) as for `remaining`."""
    for i in range(x.shape[0]):
        if squares[i] > reach[owners[i]]:
            far = square(x[i], new)
            if far < squares[i]:
                squares[i], owners[i] = far, number
