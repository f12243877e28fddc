"""Squared distances to the nearest of the chosen rows when one more is chosen."""

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import kernel
from app.ml.numerics.neighbours.compiled.distances import square

CANCELLATION_SHARE = 1e-6
"""Share of the lengths below which a squared distance from a product has lost too many digits."""


@kernel("void(f8[:,::1], f8[::1], f8[::1], f8[:,::1], f8[::1], f8[:,::1], i8, f8[:,::1])", writes=["remaining_squares"])
def remaining(
    x: Matrix,
    lengths: Vector,
    squares: Vector,
    new: Matrix,
    new_lengths: Vector,
    products: Matrix,
    start: int,
    remaining_squares: Matrix,
) -> None:
    """The squared distances (c, n) that each of the new rows (c, d) leaves, for the rows from `start` on whose products
    (c, b) with the new ones there are.
    """
    for c in range(products.shape[0]):
        near, length = 0, new_lengths[c]
        for t in range(products.shape[1]):
            i = start + t
            scale = lengths[i] + length
            far = scale - 2 * products[c, t]
            near += not far > CANCELLATION_SHARE * scale
            remaining_squares[c, i] = min(far, squares[i])
        if near > 0:
            for t in range(products.shape[1]):
                i = start + t
                scale = lengths[i] + length
                if not scale - 2 * products[c, t] > CANCELLATION_SHARE * scale:
                    remaining_squares[c, i] = min(square(x[i], new[c]), squares[i])
