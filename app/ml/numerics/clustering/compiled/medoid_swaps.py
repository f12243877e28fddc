"""Swaps of a medoid with another row, each made as soon as it lowers the loss.

Of every row the two nearest medoids are kept, so that one pass over the dissimilarities of a candidate gives the change
of the loss for each medoid that it may take the place of.

Reference: Schubert & Rousseeuw (2021), Inf. Syst. 101:101804.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel

FIRST, SECOND = 0, 1
MIN_RELATIVE_GAIN = 1e-11
"""Share of the loss by which a swap lowers it at least; less may be rounding."""


@inner
def look(far: Matrix, row: int, places: Labels, lowest: Matrix) -> None:
    """Find the two nearest medoids of a row; of equally near ones the first. far: (k, n) from the medoids."""
    near, other, least, next_least = 0, 0, np.inf, np.inf
    for c in range(far.shape[0]):
        value = far[c, row]
        if value < least:
            near, other, least, next_least = c, near, value, least
        elif value < next_least:
            other, next_least = c, value
    places[FIRST, row], places[SECOND, row] = near, other
    lowest[FIRST, row], lowest[SECOND, row] = least, next_least


@inner
def removal(weights: Vector, places: Labels, lowest: Matrix, losses: Vector) -> float:
    """The loss; `losses` (k,) becomes its increase where a medoid is removed."""
    losses[:] = 0.0
    total = 0.0
    for i in range(weights.size):
        total += weights[i] * lowest[FIRST, i]
        losses[places[FIRST, i]] += weights[i] * (lowest[SECOND, i] - lowest[FIRST, i])
    return total


@kernel("f8(f8[:,::1], f8[::1], i8[:,::1], f8[:,::1], f8[::1])", writes=["places", "lowest", "losses"])
def begin(far: Matrix, weights: Vector, places: Labels, lowest: Matrix, losses: Vector) -> float:
    """The loss of medoids with these dissimilarities to the rows (k, n)."""
    for i in range(far.shape[1]):
        look(far, i, places, lowest)
    return removal(weights, places, lowest, losses)


@inner
def change(row: Vector, weights: Vector, places: Labels, lowest: Matrix, losses: Vector, changes: Vector) -> float:
    """Change of the loss by the rows that come to a candidate; `changes` (k,) becomes the rest by removed medoid."""
    for c in range(losses.size):
        changes[c] = losses[c]
    gain = 0.0
    for i in range(row.size):
        value, second = row[i], lowest[SECOND, i]
        if value < second:
            first, near = lowest[FIRST, i], places[FIRST, i]
            if value < first:
                gain += weights[i] * (value - first)
                changes[near] += weights[i] * (first - second)
            else:
                changes[near] += weights[i] * (value - second)
    return gain


@inner
def swap(row: Vector, medoid: int, far: Matrix, places: Labels, lowest: Matrix) -> None:
    """Put a candidate with dissimilarities `row` (n,) in the place of a medoid."""
    for i in range(row.size):
        far[medoid, i] = row[i]
    for i in range(row.size):
        value = row[i]
        if medoid in (places[FIRST, i], places[SECOND, i]):
            look(far, i, places, lowest)
        elif value < lowest[FIRST, i]:
            places[SECOND, i], lowest[SECOND, i] = places[FIRST, i], lowest[FIRST, i]
            places[FIRST, i], lowest[FIRST, i] = medoid, value
        elif value < lowest[SECOND, i]:
            places[SECOND, i], lowest[SECOND, i] = medoid, value


@kernel(
    "Tuple((i8, f8))(f8[:,::1], i8, f8[::1], i8[::1], f8[:,::1], i8[:,::1], f8[:,::1], f8[::1], i8, f8)",
    writes=["medoids", "far", "places", "lowest", "losses"],
)
def swaps(
    block: Matrix,
    start: int,
    weights: Vector,
    medoids: Labels,
    far: Matrix,
    places: Labels,
    lowest: Matrix,
    losses: Vector,
    idle: int,
    loss: float,
) -> tuple[int, float]:
    """Try the rows start, start + 1, … with dissimilarities `block` (b, n) as medoids, of which there are two or more.

    idle: candidates in succession that changed nothing; all n of them, and no swap is left. Returns it, and the loss.
    """
    changes, n = np.empty(medoids.size), weights.size
    for t in range(block.shape[0]):
        if idle >= n:
            break
        gain = change(block[t], weights, places, lowest, losses, changes)
        best = int(changes.argmin())
        if not changes[best] + gain < -MIN_RELATIVE_GAIN * loss:
            idle += 1
            continue
        medoids[best] = start + t
        swap(block[t], best, far, places, lowest)
        loss, idle = removal(weights, places, lowest, losses), 0
    return idle, loss
