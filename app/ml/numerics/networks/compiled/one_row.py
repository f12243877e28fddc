"""The way of one row through a network, compiled: numpy takes longer to begin with an array than to work on it."""

import math

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import kernel

IDENTITY, RELU, TANH, LOGISTIC = range(4)
KINDS = {"identity": IDENTITY, "relu": RELU, "tanh": TANH, "logistic": LOGISTIC}
"""Functions of units."""


@kernel("void(f8[::1], f8[::1], f8[::1], f8, f8[::1])", writes=["found"], ieee=True)
def standard_inputs(row: Vector, shift: Vector, scale: Vector, farthest: float, found: Vector) -> None:
    """Standardised inputs (d,), cut off at ±farthest."""
    for j in range(row.size):
        found[j] = min(max((row[j] - shift[j]) / scale[j], -farthest), farthest)


@kernel("void(f8[::1], f8[:,::1], f8[::1], i8, f8[::1])", writes=["found"])
def unit_values(values: Vector, weights: Matrix, bias: Vector, kind: int, found: Vector) -> None:
    """Values (q,) of the units of a layer, from those of the layer before (p,)."""
    for j in range(found.size):
        found[j] = bias[j]
    for i in range(values.size):
        value, row = values[i], weights[i]
        for j in range(found.size):
            found[j] += value * row[j]
    for j in range(found.size):
        if kind == RELU:
            found[j] = max(found[j], 0.0)
        elif kind == TANH:
            found[j] = math.tanh(found[j])
        elif kind == LOGISTIC:
            found[j] = 0.5 * (1.0 + math.tanh(0.5 * found[j]))
