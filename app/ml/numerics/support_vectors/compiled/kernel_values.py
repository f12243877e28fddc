"""Kernels of rows with many points, the points by column, so that a processor works on several at once.

The bits of a value depend on its row and its point only.
"""

import math

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.kernel_functions.compiled.exponential import exponential
from app.ml.numerics.kernel_functions.compiled.squared_differences import add_squares

LINEAR, POLYNOMIAL, RBF, SIGMOID, ANOVA = range(5)
BLOCK = 512
"""Points worked on at a time: their values stay in the processor's cache."""


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


@kernel("void(f8[:,::1], f8[:,::1], i8, f8, f8, i8, f8[:,::1])", writes=["values_out"])
def kernel_values(
    rows: Matrix, points: Matrix, kind: int, gamma: float, coef0: float, degree: int, values_out: Matrix
) -> None:
    """Values (m, n) of a kernel for rows (m, d) and points (d, n)."""
    n = points.shape[1]
    raw_block = np.empty(BLOCK)
    bits_block = raw_block.view(np.int64)
    for i in range(rows.shape[0]):
        row = rows[i]
        for low in range(0, n, BLOCK):
            high = min(n, low + BLOCK)
            values, raw, bits = values_out[i][low:high], raw_block[: high - low], bits_block[: high - low]
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
