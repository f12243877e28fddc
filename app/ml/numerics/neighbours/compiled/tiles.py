"""The two lowest scores of a tile of rows in single precision, by products that stay in the processor's registers.

A tile holds a few hundred rows by columns, so that eight rows at a time are multiplied by a number of a centre. While a
tile and two rows of scores fit the first cache this takes half the time of a matrix product, which has to store its
result before it is compared.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import kernel
from app.ml.numerics.neighbours.compiled.distances import Places, Singles, decide, measure

TILE = 256
"""Rows of a tile."""
STRIDE = TILE + 16
"""Numbers from a column to the next, which lie apart in the cache so."""
TWO, THREE = 2 * STRIDE, 3 * STRIDE


@kernel("void(f8[:,::1], i8[::1], f8[::1], f8, f4[::1])", writes=["tile"])
def fill(x: Matrix, rows: Labels, origin: Vector, unit: float, tile: Singles) -> None:
    """The listed rows, at most a tile, less the origin, times `unit`: tile[j STRIDE + t] is column j of row t."""
    for t in range(rows.size):
        i = rows[t]
        for j in range(x.shape[1]):
            tile[j * STRIDE + t] = (x[i, j] - origin[j]) * unit


@kernel(
    "void(f4[::1], i8, f4[:,::1], f4[::1], f4[::1], i4[::1], f4[::1], f4[::1])",
    writes=["scores", "places", "first", "second"],
    fused=True,
)
def lowest_of_tile(
    tile: Singles,
    size: int,
    centres: Singles,
    halves: Singles,
    scores: Singles,
    places: Places,
    first: Singles,
    second: Singles,
) -> None:
    """The two lowest of `halves[c] - centres[c] · row` for each of `size` rows, and which c has the lowest.

    scores: (2 TILE,) to work in.
    """
    k, d = centres.shape
    whole = d // 4 * 4
    places[:] = 0
    first[:] = np.inf
    second[:] = np.inf
    for a in range(0, k, 2):
        b = a + 1 if a + 1 < k else a
        half_a, half_b = halves[a], np.float32(np.inf) if b == a else halves[b]
        for t in range(size):
            scores[t] = half_a
            scores[t + TILE] = half_b
        for j in range(0, whole, 4):
            a0, a1, a2, a3 = centres[a, j], centres[a, j + 1], centres[a, j + 2], centres[a, j + 3]
            b0, b1, b2, b3 = centres[b, j], centres[b, j + 1], centres[b, j + 2], centres[b, j + 3]
            start = j * STRIDE
            for t in range(size):
                cell = start + t
                x0, x1, x2, x3 = tile[cell], tile[cell + STRIDE], tile[cell + TWO], tile[cell + THREE]
                scores[t] -= (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3)
                scores[t + TILE] -= (b0 * x0 + b1 * x1) + (b2 * x2 + b3 * x3)
        for j in range(whole, d):
            a0, b0, start = centres[a, j], centres[b, j], j * STRIDE
            for t in range(size):
                scores[t] -= a0 * tile[start + t]
                scores[t + TILE] -= b0 * tile[start + t]
        at_a, at_b = np.int32(a), np.int32(b)
        for t in range(size):
            lowest, two, best, other = scores[t], scores[t + TILE], first[t], second[t]
            low, high, place = (two, lowest, at_b) if two < lowest else (lowest, two, at_a)
            lower = low < best
            middle = best if lower else low
            high = min(high, other)
            second[t] = min(middle, high)
            places[t] = place if lower else places[t]
            first[t] = low if lower else best


@kernel("void(f8[:,::1], f8[:,::1], f8[::1], f8, f4[:,::1], f4[::1], f8, i8[::1])", writes=["labels"])
def label_by_tiles(
    x: Matrix,
    centres: Matrix,
    origin: Vector,
    unit: float,
    singles: Singles,
    halves: Singles,
    rounding: float,
    labels: Labels,
) -> None:
    """Label all rows by the lowest scores; where scores may tie, by differences."""
    tile, scores = np.empty(x.shape[1] * STRIDE, np.float32), np.empty(2 * TILE, np.float32)
    places, first, second = np.empty(TILE, np.int32), np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    lengths, numbers = np.empty(TILE), np.arange(TILE)
    for start in range(0, x.shape[0], TILE):
        part = x[start : start + TILE]
        size = part.shape[0]
        rows = numbers[:size]
        measure(part, origin, unit, lengths)
        fill(part, rows, origin, unit, tile)
        lowest_of_tile(tile, size, singles, halves, scores, places, first, second)
        decide(part, rows, centres, places, first, second, lengths, rounding, labels[start : start + size])
