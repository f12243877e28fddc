"""The way of one row through a network, compiled: numpy takes longer to begin with an array than to work on it."""

import math

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import kernel
from app.ml.numerics.kernel_functions.compiled.exponential import exponential

IDENTITY, RELU, TANH, LOGISTIC = range(4)
KINDS = {"identity": IDENTITY, "relu": RELU, "tanh": TANH, "logistic": LOGISTIC}
"""Functions of units."""


@kernel("void(f8[::1], f8[::1], f8[::1], f8, f8[::1])", writes=["standard"], ieee=True)
def standard_inputs(row: Vector, shift: Vector, scale: Vector, farthest: float, standard: Vector) -> None:
    """Standardised inputs (d,), cut off at ±farthest."""
    for j in range(row.size):
        standard[j] = min(max((row[j] - shift[j]) / scale[j], -farthest), farthest)


@kernel("void(f8[::1], f8[:,::1], f8[::1], i8, f8[::1])", writes=["unit_outputs"], ieee=True)
def unit_values(values: Vector, weights: Matrix, bias: Vector, kind: int, unit_outputs: Vector) -> None:
    """Values (q,) of the units of a layer, from those of the layer before (p,), of which four are worked on at once."""
    for j in range(unit_outputs.size):
        unit_outputs[j] = bias[j]
    whole = values.size // 4 * 4
    for i in range(0, whole, 4):
        p, q, r, s = values[i], values[i + 1], values[i + 2], values[i + 3]
        a, b, c, d = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(unit_outputs.size):
            unit_outputs[j] += (p * a[j] + q * b[j]) + (r * c[j] + s * d[j])
    for i in range(whole, values.size):
        p, a = values[i], weights[i]
        for j in range(unit_outputs.size):
            unit_outputs[j] += p * a[j]
    if kind == RELU:
        for j in range(unit_outputs.size):
            unit_outputs[j] = max(unit_outputs[j], 0.0)
    elif kind != IDENTITY:
        fall, raw = np.empty(unit_outputs.size), np.empty(unit_outputs.size)
        for j in range(unit_outputs.size):
            fall[j] = -abs(unit_outputs[j]) * (2.0 if kind == TANH else 1.0)
        exponential(fall, raw, raw.view(np.int64))
        for j in range(unit_outputs.size):
            if kind == TANH:
                unit_outputs[j] = math.copysign((1.0 - fall[j]) / (1.0 + fall[j]), unit_outputs[j])
            else:
                unit_outputs[j] = (1.0 if unit_outputs[j] > 0 else fall[j]) / (1.0 + fall[j])


@kernel("void(f8[::1])", writes=["scores"], ieee=True)
def row_shares(scores: Vector) -> None:
    """Softmax (k,) in place of the scores of the classes, of which some may be -inf."""
    highest = -math.inf
    for j in range(scores.size):
        highest = max(highest, scores[j])
    total = 0.0
    for j in range(scores.size):
        scores[j] = math.exp(scores[j] - highest)
        total += scores[j]
    for j in range(scores.size):
        scores[j] /= total
