"""Kernels of rows with many points, the points by column, so that a processor works on several at once.

The bits of a value depend on its row and its point only.
"""

import math

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import inner, kernel

LINEAR, POLYNOMIAL, RBF, SIGMOID, ANOVA = range(5)
BLOCK = 512
"""Points worked on at a time: their values stay in the processor's cache."""
LOG2_E = 1.4426950408889634
ROUNDER = 6755399441055744.0
"""1.5 · 2⁵²: a number added to it is rounded to a whole one, which is in the low bits of the sum."""
LEAST = -1022.0
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
        z = max(LEAST, z)
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


@inner
def add_squares(row: Vector, points: Matrix, low: int, high: int, values: Vector) -> None:
    """Squared distances of the row to the points low … high - 1, four columns at a time."""
    values[:] = 0.0
    whole = row.size // 4 * 4
    for j in range(0, whole, 4):
        p, q, r, s = row[j], row[j + 1], row[j + 2], row[j + 3]
        a, b = points[j][low:high], points[j + 1][low:high]
        c, d = points[j + 2][low:high], points[j + 3][low:high]
        for t in range(values.size):
            e, f, g, h = a[t] - p, b[t] - q, c[t] - r, d[t] - s
            values[t] += (e * e + f * f) + (g * g + h * h)
    for j in range(whole, row.size):
        p, a = row[j], points[j][low:high]
        for t in range(values.size):
            e = a[t] - p
            values[t] += e * e


@inner
def add_products(row: Vector, points: Matrix, low: int, high: int, values: Vector) -> None:
    """Inner products of the row and the points low … high - 1, four columns at a time."""
    values[:] = 0.0
    whole = row.size // 4 * 4
    for j in range(0, whole, 4):
        p, q, r, s = row[j], row[j + 1], row[j + 2], row[j + 3]
        a, b = points[j][low:high], points[j + 1][low:high]
        c, d = points[j + 2][low:high], points[j + 3][low:high]
        for t in range(values.size):
            values[t] += (p * a[t] + q * b[t]) + (r * c[t] + s * d[t])
    for j in range(whole, row.size):
        p, a = row[j], points[j][low:high]
        for t in range(values.size):
            values[t] += p * a[t]


@inner
def raise_to(values: Vector, base: Vector, degree: int) -> None:
    """Powers of numbers, by multiplication. base: as many numbers, to work with."""
    for t in range(values.size):
        base[t] = values[t]
    for _ in range(degree - 1):
        for t in range(values.size):
            values[t] *= base[t]


@kernel("void(f8[:,::1], f8[:,::1], i8, f8, f8, i8, f8[:,::1])", writes=["found"])
def kernel_values(
    rows: Matrix, points: Matrix, kind: int, gamma: float, coef0: float, degree: int, found: Matrix
) -> None:
    """Values (m, n) of a kernel for rows (m, d) and points (d, n)."""
    n = points.shape[1]
    raw_block = np.empty(BLOCK)
    bits_block = raw_block.view(np.int64)
    for i in range(rows.shape[0]):
        row = rows[i]
        for low in range(0, n, BLOCK):
            high = min(n, low + BLOCK)
            values, raw, bits = found[i][low:high], raw_block[: high - low], bits_block[: high - low]
            if kind == ANOVA:
                values[:] = 0.0
                terms = np.empty(high - low)
                for j in range(row.size):
                    p, a = row[j], points[j][low:high]
                    for t in range(values.size):
                        terms[t] = -gamma * ((a[t] - p) * (a[t] - p))
                    exponential(terms, raw, bits)
                    for t in range(values.size):
                        values[t] += terms[t]
                raise_to(values, raw, degree)
            elif kind == RBF:
                add_squares(row, points, low, high, values)
                for t in range(values.size):
                    values[t] *= -gamma
                exponential(values, raw, bits)
            else:
                add_products(row, points, low, high, values)
                if kind != LINEAR:
                    for t in range(values.size):
                        values[t] = gamma * values[t] + coef0
                if kind == POLYNOMIAL:
                    raise_to(values, raw, degree)
                elif kind == SIGMOID:
                    for t in range(values.size):
                        values[t] = math.tanh(values[t])
