"""Squared distances to the nearest of the chosen rows when one more is chosen."""

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import kernel
from app.ml.numerics.neighbours.compiled.distances import square

CLOSE = 1e-6
"""Share of the lengths below which a squared distance from a product has lost too many digits."""


@kernel(
    "void(f8[:,::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1], f8[:,::1], i8, f8[:,::1], f8[::1])",
    writes=["found", "totals"],
)
def remaining(
    x: Matrix,
    weights: Vector,
    lengths: Vector,
    squares: Vector,
    new: Matrix,
    new_lengths: Vector,
    products: Matrix,
    start: int,
    found: Matrix,
    totals: Vector,
) -> None:
    """The squared distances (n,) that each of the new rows (c, d) leaves, for the rows from `start` on whose products
    (b, c) with the new ones there are; `totals` are their weighted sums.
    """
    for t in range(products.shape[0]):
        i = start + t
        for c in range(products.shape[1]):
            scale = lengths[i] + new_lengths[c]
            far = scale - 2 * products[t, c]
            if not far > CLOSE * scale:
                far = square(x[i], new[c])
            found[i, c] = min(far, squares[i])
            totals[c] += weights[i] * found[i, c]
