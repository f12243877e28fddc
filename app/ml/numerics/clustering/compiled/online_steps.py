"""One pass of soft k-means over the rows, the centres moving with each of them."""

import math

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import kernel
from app.ml.numerics.neighbours.compiled.distances import square


@kernel("void(f8[:,::1], f8[::1], i8[::1], f8, f8, f8[:,::1], f8[::1])", writes=["centres", "room"])
def online_pass(
    x: Matrix, weights: Vector, order: Labels, stiffness: float, rate: float, centres: Matrix, room: Vector
) -> None:
    """Every row, in this order, draws each centre by `rate` times its membership; a weight counts as so many rows."""
    for i in order:
        least = math.inf
        for c in range(centres.shape[0]):
            room[c] = square(x[i], centres[c])
            least = min(least, room[c])
        total = 0.0
        for c in range(centres.shape[0]):
            room[c] = math.exp(stiffness * (least - room[c]))
            total += room[c]
        for c in range(centres.shape[0]):
            part = -math.expm1(weights[i] * math.log1p(-rate * room[c] / total))
            for j in range(x.shape[1]):
                centres[c, j] += part * (x[i, j] - centres[c, j])
