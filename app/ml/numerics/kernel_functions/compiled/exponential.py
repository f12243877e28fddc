"""The exponential of many numbers: a processor works on several at once, which it cannot with that of C."""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Vector
from app.ml.numerics.jit import inner

LOG2_E = 1.4426950408889634
ROUNDER = 6755399441055744.0
"""1.5 · 2⁵²: a number added to it is rounded to a whole one, which is in the low bits of the sum."""
MIN_EXPONENT = -1022.0
"""Smallest power of two that is a normal number."""
C1, C2, C3 = 0.6931471805599453, 0.2402265069591007, 0.05550410866482158
C4, C5, C6 = 0.009618129107628477, 0.0013333558146428443, 0.0001540353039338161
C7, C8, C9 = 1.525273380405984e-05, 1.321548679014431e-06, 1.0178086009239699e-07
C10, C11, C12 = 7.054911620801123e-09, 4.4455382718708114e-10, 2.5678435993488203e-11
"""(ln 2)ᵏ/k!: the series of 2ᶠ has an error below 2e-16 for |f| ≤ ½."""


@inner
def exponential(values: Vector, raw: Vector, bits: NDArray[np.int64]) -> None:
    """Replace numbers up to 0 by e to their power. raw: as many numbers; bits: the same memory as whole numbers."""
    for t in range(values.size):
        z = values[t] * LOG2_E
        z = max(MIN_EXPONENT, z)
        rounded = z + ROUNDER
        f = z - (rounded - ROUNDER)
        p = ((((C12 * f + C11) * f + C10) * f + C9) * f + C8) * f + C7
        p = (((((p * f + C6) * f + C5) * f + C4) * f + C3) * f + C2) * f + C1
        raw[t] = rounded
        values[t] = p * f + 1.0
    for t in range(values.size):
        bits[t] = (bits[t] + 1023) << 52
    for t in range(values.size):
        values[t] *= raw[t]
