"""Kernels of the distance of two rows, in place of its square: exp(−r²), and those of Matérn.

With s = r for order 1 and √order · r for 3 and 5 these are e⁻ˢ, (1 + s) e⁻ˢ and (1 + s + s²/3) e⁻ˢ.
"""

import math

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.kernel_functions.compiled.exponential import exponential

RBF = 0
"""The order of exp(−r²), beside 1, 3 and 5 of Matérn."""
BLOCK = 512
"""Pairs worked on at a time: their numbers stay in the processor's cache."""
MAX_EXPONENT = 700.0
"""Exponents beyond which a value counts as 0: it and its products are no normal numbers."""


@inner
def fall(values: Vector, order: int, s: Vector, bits: NDArray[np.int64]) -> None:
    """e⁻ˢ in place of squared distances, with s beside it; for exp(−r²), s is r². bits: as many, to work with."""
    for t in range(values.size):
        s[t] = values[t] if order == RBF else math.sqrt(order * values[t])
        values[t] = -s[t]
    exponential(values, bits.view(np.float64), bits)
    for t in range(values.size):
        values[t] = values[t] if s[t] < MAX_EXPONENT else 0.0


@kernel("void(f8[:,::1], i8)", writes=["squares"])
def radial_values(squares: Matrix, order: int) -> None:
    """The kernel in place of squared distances (n, m)."""
    m = squares.shape[1]
    room, bits = np.empty(BLOCK), np.empty(BLOCK, np.int64)
    first, second = (1.0 if order > 1 else 0.0), (1 / 3 if order == 5 else 0.0)
    for i in range(len(squares)):
        for low in range(0, m, BLOCK):
            values = squares[i][low : min(low + BLOCK, m)]
            s = room[: values.size]
            fall(values, order, s, bits[: values.size])
            for t in range(values.size):
                values[t] *= 1 + s[t] * (first + second * s[t])


@kernel("f8(f8[:,::1], f8[:,::1], i8)", writes=["squares"], ieee=True)
def radial_slopes(squares: Matrix, weights: Matrix, order: int) -> float:
    """Weights times −k′(r)/r in place of squared distances (n, m); for exp(−r²), times k. Returns Σ w k."""
    m = squares.shape[1]
    room, bits, sums = np.empty(BLOCK), np.empty(BLOCK, np.int64), np.zeros(BLOCK)
    first, second = (1.0 if order > 1 else 0.0), (1 / 3 if order == 5 else 0.0)
    for i in range(len(squares)):
        for low in range(0, m, BLOCK):
            values, block_weights = squares[i][low : min(low + BLOCK, m)], weights[i][low : min(low + BLOCK, m)]
            s = room[: values.size]
            fall(values, order, s, bits[: values.size])
            for t in range(values.size):
                values[t] *= block_weights[t]
                sums[t] += values[t] * (1 + s[t] * (first + second * s[t]))
                if order == 1:  # of equal rows the difference is 0
                    values[t] /= s[t] if s[t] > 0 else 1.0
                elif order == 3:
                    values[t] *= 3.0
                elif order == 5:
                    values[t] *= 5 / 3 * (1 + s[t])
    total: float = sums.sum()
    return total
