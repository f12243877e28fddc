"""Bounds on distances move with the centres, and rows between them are compared."""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel, reordered
from app.ml.numerics.neighbours.compiled.distances import Places, Singles, closest, closest_beside, doubt_of, square
from app.ml.numerics.neighbours.compiled.tiles import STRIDE, TILE, fill, lowest_of_tile

ROUNDING = 4e-16
CROWDED = 5
"""Share of doubtful rows, as one in so many, from which it is quicker to read all rows one after the other."""
SECTION = 2**10
"""Rows whose bounds are looked at in one go, while what is read of them is in the cache."""


@kernel(
    "i8(f8[:,::1], i8[::1], f8[::1], f8[::1], i8, i8, f8[:,::1], f8[::1], f8[::1], f8[::1], f8, i8[::1], f8[::1])",
    writes=["upper", "lower", "rows", "squares"],
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
    squares: Vector,
) -> int:
    """Move the bounds of the rows start … stop - 1; list those whose bounds do not part, with their squared distances
    to their own centres, and return how many.
    """
    doubtful = 0
    for i in range(start, stop):
        own = labels[i]
        far = (upper[i] + moved[own]) * (1 + ROUNDING)
        near = (lower[i] - others[own]) * (1 - ROUNDING)
        lower[i], upper[i] = near, far
        rows[doubtful] = i
        doubtful += far >= max(near, half_gaps[own])
    found, whole = 0, doubtful > (stop - start) // CROWDED
    for t in range(stop - start if whole else doubtful):
        i = start + t if whole else rows[t]
        own = labels[i]
        square_of_own = roughly_square(x[i], centres[own])
        far = math.sqrt(square_of_own) * slack
        upper[i] = far
        rows[found], squares[found] = i, square_of_own
        found += far >= max(lower[i], half_gaps[own])
    return found


@reordered
def roughly_square(a: Vector, b: Vector) -> float:
    """‖a − b‖² in half the time of `square`, which differs by rounding."""
    total = 0.0
    for j in range(a.size):
        total += (a[j] - b[j]) * (a[j] - b[j])
    return total


@inner
def moved_bounds(
    x: Matrix,
    labels: Labels,
    upper: Vector,
    lower: Vector,
    i: int,
    centres: Matrix,
    moved: Vector,
    others: Vector,
    half_gaps: Vector,
    slack: float,
) -> float:
    """Move the bounds of a row; its squared distance to its own centre if they do not part, else -1."""
    own, apart = labels[i], -1.0
    far = (upper[i] + moved[own]) * (1 + ROUNDING)
    near = (lower[i] - others[own]) * (1 - ROUNDING)
    lower[i] = near
    near = max(near, half_gaps[own])
    if far >= near:
        square_of_own = square(x[i], centres[own])
        far = math.sqrt(square_of_own) * slack
        if far >= near:
            apart = square_of_own
    upper[i] = far
    return apart


@kernel(
    "Tuple((i8, f8))(f8[:,::1], f8[::1], i8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[:,::1], f8[::1], i8[::1],"
    " f8[:,::1], i4[::1], f4[::1], f4[::1], f8[::1], f8, f8, f8)",
    writes=["labels", "upper", "lower", "sums", "masses", "sizes"],
)
def settle(
    x: Matrix,
    weights: Vector,
    labels: Labels,
    upper: Vector,
    lower: Vector,
    rows: Labels,
    squares: Vector,
    sums: Matrix,
    masses: Vector,
    sizes: Labels,
    centres: Matrix,
    places: Places,
    first: Singles,
    second: Singles,
    lengths: Vector,
    unit: float,
    rounding: float,
    slack: float,
) -> tuple[int, float]:
    """Give the listed rows the centres of their lowest scores; scores too close to distinguish are computed again by
    difference. Returns how many rows have a new centre, and the decrease of the inertia by them.
    """
    changed, fall, shrink, scale = 0, 0.0, 2 - slack, 1 / (unit * unit) if unit > 0 else 0.0
    for t in range(rows.size):
        i, one, two = rows[t], np.float64(first[t]), np.float64(second[t])
        own, new, after = labels[i], int(places[t]), squares[t]
        doubt = doubt_of(two, lengths[i], rounding)
        if two - one > 2 * doubt:
            other = max(0.0, 2 * (two - doubt) + lengths[i] * (1 - ROUNDING)) * scale
            if new != own:
                after = square(x[i], centres[new])
        else:
            new, after, other = closest(x[i], centres)
        lower[i] = math.sqrt(other) * shrink
        if new != own:
            labels[i], upper[i] = new, math.sqrt(after) * slack
            changed += 1
            fall += weights[i] * (squares[t] - after)
            move(x[i], weights[i], own, new, sums, masses, sizes)
    return changed, fall


@kernel(
    "Tuple((i8, f8))(f8[:,::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1], i8[::1], f8[:,::1], f8[::1],"
    " f8[::1], f8[::1], f8, f8[::1], f8[::1], f8, f4[:,::1], f4[::1], f8)",
    writes=["labels", "upper", "lower", "sums", "masses", "sizes"],
)
def compare_by_tiles(
    x: Matrix,
    weights: Vector,
    labels: Labels,
    upper: Vector,
    lower: Vector,
    sums: Matrix,
    masses: Vector,
    sizes: Labels,
    centres: Matrix,
    moved: Vector,
    others: Vector,
    half_gaps: Vector,
    slack: float,
    lengths: Vector,
    origin: Vector,
    unit: float,
    singles: Singles,
    halves: Singles,
    rounding: float,
) -> tuple[int, float]:
    """Move all bounds, and settle the rows whose bounds do not part by the scores of tiles of them."""
    rows, squares = np.empty(SECTION, np.intp), np.empty(SECTION)
    tile, scores = np.empty(x.shape[1] * STRIDE, np.float32), np.empty(2 * TILE, np.float32)
    places, first, second = np.empty(TILE, np.int32), np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    changed, fall = 0, 0.0
    for start in range(0, x.shape[0], SECTION):
        stop = min(start + SECTION, x.shape[0])
        found = undecided(x, labels, upper, lower, start, stop, centres, moved, others, half_gaps, slack, rows, squares)
        for at in range(0, found, TILE):
            size = min(TILE, found - at)
            block, apart = rows[at : at + size], squares[at : at + size]
            fill(x, block, origin, unit, tile)
            lowest_of_tile(tile, size, singles, halves, scores, places, first, second)
            lowest = places[:size], first[:size], second[:size]
            to = x, weights, labels, upper, lower, block, apart, sums, masses, sizes, centres
            more, less = settle(*to, *lowest, lengths, unit, rounding, slack)
            changed, fall = changed + more, fall + less
    return changed, fall


@kernel(
    "Tuple((i8, f8))(f8[:,::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1], i8[::1], f8[:,::1])",
    writes=["labels", "upper", "lower", "sums", "masses", "sizes"],
)
def compare_all(
    x: Matrix,
    weights: Vector,
    labels: Labels,
    upper: Vector,
    lower: Vector,
    sums: Matrix,
    masses: Vector,
    sizes: Labels,
    centres: Matrix,
) -> tuple[int, float]:
    """Give all rows their nearest centres, as `settle` does: few rows are compared sooner than bounds are moved."""
    changed, fall = 0, 0.0
    for i in range(x.shape[0]):
        own = labels[i]
        new, after, _ = closest(x[i], centres)
        if new != own:
            labels[i] = new
            changed += 1
            fall += weights[i] * (square(x[i], centres[own]) - after)
            move(x[i], weights[i], own, new, sums, masses, sizes)
        upper[i], lower[i] = np.inf, 0.0
    return changed, fall


@kernel(
    "Tuple((i8, f8))(f8[:,::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1], i8[::1], f8[:,::1], f8[::1],"
    " f8[::1], f8[::1], f8)",
    writes=["labels", "upper", "lower", "sums", "masses", "sizes"],
)
def compare_undecided(
    x: Matrix,
    weights: Vector,
    labels: Labels,
    upper: Vector,
    lower: Vector,
    sums: Matrix,
    masses: Vector,
    sizes: Labels,
    centres: Matrix,
    moved: Vector,
    others: Vector,
    half_gaps: Vector,
    slack: float,
) -> tuple[int, float]:
    """Move all bounds, and give each row whose bounds do not part its nearest centre, by difference."""
    changed, fall = 0, 0.0
    for i in range(x.shape[0]):
        apart = moved_bounds(x, labels, upper, lower, i, centres, moved, others, half_gaps, slack)
        if apart >= 0:
            own = labels[i]
            new, after, other = closest_beside(x[i], centres, own, apart)
            lower[i] = math.sqrt(other) / slack
            if new != own:
                labels[i], upper[i] = new, math.sqrt(after) * slack
                changed += 1
                fall += weights[i] * (apart - after)
                move(x[i], weights[i], own, new, sums, masses, sizes)
    return changed, fall


@kernel("void(f8[:,::1], f8[::1], i8[::1], f8[:,::1], f8[::1], i8[::1])", writes=["sums", "masses", "sizes"])
def add_rows(x: Matrix, weights: Vector, labels: Labels, sums: Matrix, masses: Vector, sizes: Labels) -> None:
    """Add each row to the cluster of its label."""
    for i in range(x.shape[0]):
        own, weight = labels[i], weights[i]
        sizes[own] += 1
        masses[own] += weight
        for j in range(x.shape[1]):
            sums[own, j] += weight * x[i, j]


@inner
def move(row: Vector, weight: float, own: int, new: int, sums: Matrix, masses: Vector, sizes: Labels) -> None:
    """Take a row out of one cluster and put it into another."""
    sizes[own] -= 1
    sizes[new] += 1
    masses[own] -= weight
    masses[new] += weight
    for j in range(row.size):
        part = weight * row[j]
        sums[own, j] -= part
        sums[new, j] += part


@kernel("void(f8[:,::1], f8[::1])", writes=["gaps"])
def half_gaps(centres: Matrix, gaps: Vector) -> None:
    """Half the distance of each centre to the next; infinite of a single one."""
    gaps[:] = np.inf
    for i in range(centres.shape[0]):
        for j in range(i):
            gap = math.sqrt(square(centres[i], centres[j])) / 2
            gaps[i], gaps[j] = min(gaps[i], gap), min(gaps[j], gap)
