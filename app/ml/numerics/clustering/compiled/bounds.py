"""Bounds on distances move with the centres, and rows between them are compared."""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import kernel
from app.ml.numerics.neighbours.compiled.distances import square

ROUNDING = 4e-16


@kernel(
    "i8(f8[:,::1], i8[::1], f8[::1], f8[::1], i8, i8, f8[:,::1], f8[::1], f8[::1], f8[::1], f8, i8[::1])",
    writes=["upper", "lower", "rows"],
)
def undecided(
    x: Matrix,
    labels: Labels,
    upper: Vector,
    lower: Vector,
    start: int,
    stop: int,
    centres: Matrix,
    moved: Vector,
    others: Vector,
    half_gaps: Vector,
    slack: float,
    rows: Labels,
) -> int:
    """Move the bounds of the rows start … stop - 1; list those whose bounds do not part, and return how many."""
    found = 0
    for i in range(start, stop):
        own = labels[i]
        far = (upper[i] + moved[own]) * (1 + ROUNDING)
        near = (lower[i] - others[own]) * (1 - ROUNDING)
        lower[i] = near
        near = max(near, half_gaps[own])
        if far >= near:
            far = math.sqrt(square(x[i], centres[own])) * slack
            if far >= near:
                rows[found] = i
                found += 1
        upper[i] = far
    return found


@kernel(
    "Tuple((i8, f8))(f8[:,::1], f8[::1], i8[::1], f8[::1], f8[::1], i8[::1], f8[:,::1], f8[::1], i8[::1], f8[:,::1],"
    " i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8)",
    writes=["labels", "upper", "lower", "sums", "masses", "sizes"],
)
def settle(
    x: Matrix,
    weights: Vector,
    labels: Labels,
    upper: Vector,
    lower: Vector,
    rows: Labels,
    sums: Matrix,
    masses: Vector,
    sizes: Labels,
    centres: Matrix,
    places: Labels,
    first: Vector,
    second: Vector,
    lengths: Vector,
    doubt: Vector,
    slack: float,
) -> tuple[int, float]:
    """Give the listed rows the centres of their lowest scores; scores too close to distinguish are computed again by
    difference.
    """
    changed, fall = 0, 0.0
    for t in range(rows.size):
        i = rows[t]
        own, new = labels[i], places[t]
        before = square(x[i], centres[own])
        if second[t] - first[t] <= doubt[t]:
            after = other = np.inf
            for c in range(centres.shape[0]):
                far = square(x[i], centres[c])
                if far < after:
                    new, other, after = c, after, far
                elif far < other:
                    other = far
        else:
            after = before if new == own else square(x[i], centres[new])
            other = max(0.0, 2 * (second[t] - doubt[t]) + lengths[t] * (1 - ROUNDING))
        upper[i], lower[i] = math.sqrt(after) * slack, math.sqrt(other) / slack
        if new != own:
            labels[i] = new
            changed += 1
            fall += weights[i] * (before - after)
            sizes[own] -= 1
            sizes[new] += 1
            masses[own] -= weights[i]
            masses[new] += weights[i]
            for j in range(x.shape[1]):
                part = weights[i] * x[i, j]
                sums[own, j] -= part
                sums[new, j] += part
    return changed, fall
