"""Rows whose bounds on distances do not part are compared.

`far` (n,) and `lower` (n,) are bounds of the distances to the own centre and to any other, as of the beginning of all
moves: the former less what the centre had moved by then, the latter more by the largest moves of the others.
"""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel, reordered
from app.ml.numerics.neighbours.compiled.distances import Places, Singles, closest, closest_beside, doubt_of, square
from app.ml.numerics.neighbours.compiled.tiles import STRIDE, TILE, fill, lowest_of_tile

ROUNDING = 8e-16
"""Share of the numbers of a bound that rounding may have taken from it."""
SECTION = 2**10
"""Rows whose bounds are looked at in one go, while what is read of them is in the cache."""


@inner
def reaches(far: float, lower: float, walked: float, drift: float, half_gap: float) -> bool:
    """True unless the bounds of a row part. walked: what its centre has moved in all; drift: that and the others."""
    rounding = ROUNDING * (abs(far) + abs(lower) + drift)
    return (far - lower + drift + rounding >= 0) & (far + walked + rounding >= half_gap)


@kernel("i8(i8[::1], f8[::1], f8[::1], i8, f8[::1], f8[::1], i8[::1])", writes=["rows"])
def near_rows(
    labels: Labels, far: Vector, lower: Vector, start: int, limits: Vector, reach: Vector, rows: Labels
) -> int:
    """List the rows start, start + 1, … whose bounds may not part before the drift of centres is `limits` (k,): how
    many there are.

    reach: (k,) half the distance to the next centre, less what the centre itself will have moved by then.
    """
    near = 0
    for i in range(labels.size):
        label = labels[i]
        limit = limits[label]
        rounding = ROUNDING * (abs(far[i]) + abs(lower[i]) + limit)
        rows[near] = start + i
        near += (far[i] - lower[i] + limit + rounding >= 0) & (far[i] + rounding >= reach[label])
    return near


@kernel(
    "i8(f8[:,::1], i8[::1], f8[::1], f8[::1], i8[::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8, i8[::1], f8[::1])",
    writes=["far", "rows", "squares"],
)
def undecided(
    x: Matrix,
    labels: Labels,
    far: Vector,
    lower: Vector,
    near: Labels,
    centres: Matrix,
    walked: Vector,
    drift: Vector,
    half_gaps: Vector,
    slack: float,
    rows: Labels,
    squares: Vector,
) -> int:
    """List those of the rows `near` whose bounds do not part, with their squared distances to their own centres, and
    return how many.
    """
    doubtful, count = 0, 0
    for t in range(near.size):
        i = near[t]
        label = labels[i]
        rows[doubtful] = i
        doubtful += reaches(far[i], lower[i], walked[label], drift[label], half_gaps[label])
    for t in range(doubtful):
        i = rows[t]
        label = labels[i]
        square_of_own = roughly_square(x[i], centres[label])
        far[i] = math.sqrt(square_of_own) * slack - walked[label]
        rows[count], squares[count] = i, square_of_own
        count += reaches(far[i], lower[i], walked[label], drift[label], half_gaps[label])
    return count


@reordered
def roughly_square(a: Vector, b: Vector) -> float:
    """‖a − b‖² in half the time of `square`, which differs by rounding."""
    total = 0.0
    for j in range(a.size):
        total += (a[j] - b[j]) * (a[j] - b[j])
    return total


@kernel(
    "Tuple((i8, f8))(f8[:,::1], f8[::1], i8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[:,::1], f8[::1], i8[::1],"
    " f8[:,::1], f8[::1], f8[::1], i4[::1], f4[::1], f4[::1], f8[::1], f8, f8, f8)",
    writes=["labels", "far", "lower", "sums", "masses", "sizes"],
)
def settle(
    x: Matrix,
    weights: Vector,
    labels: Labels,
    far: Vector,
    lower: Vector,
    rows: Labels,
    squares: Vector,
    sums: Matrix,
    masses: Vector,
    sizes: Labels,
    centres: Matrix,
    walked: Vector,
    drift: Vector,
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
        i, nearest, two = rows[t], np.float64(first[t]), np.float64(second[t])
        label, new, after = labels[i], int(places[t]), squares[t]
        doubt = doubt_of(two, lengths[i], rounding)
        if two - nearest > 2 * doubt:
            other = max(0.0, 2 * (two - doubt) + lengths[i] * (1 - 4e-16)) * scale
            if new != label:
                after = square(x[i], centres[new])
        else:
            new, after, other = closest(x[i], centres)
        lower[i] = math.sqrt(other) * shrink + (drift[new] - walked[new])
        if new != label:
            labels[i], far[i] = new, math.sqrt(after) * slack - walked[new]
            changed += 1
            fall += weights[i] * (squares[t] - after)
            move(x[i], weights[i], label, new, sums, masses, sizes)
    return changed, fall


@kernel(
    "Tuple((i8, f8))(f8[:,::1], f8[::1], i8[::1], f8[::1], f8[::1], i8[::1], f8[:,::1], f8[::1], i8[::1], f8[:,::1],"
    " f8[::1], f8[::1], f8[::1], f8, f8[::1], f8[::1], f8, f4[:,::1], f4[::1], f8)",
    writes=["labels", "far", "lower", "sums", "masses", "sizes"],
)
def compare_by_tiles(
    x: Matrix,
    weights: Vector,
    labels: Labels,
    far: Vector,
    lower: Vector,
    near: Labels,
    sums: Matrix,
    masses: Vector,
    sizes: Labels,
    centres: Matrix,
    walked: Vector,
    drift: Vector,
    half_gaps: Vector,
    slack: float,
    lengths: Vector,
    origin: Vector,
    unit: float,
    singles: Singles,
    halves: Singles,
    rounding: float,
) -> tuple[int, float]:
    """Settle those of the rows `near` whose bounds do not part by the scores of tiles of them."""
    rows, squares = np.empty(SECTION, np.intp), np.empty(SECTION)
    tile, scores = np.empty(x.shape[1] * STRIDE, np.float32), np.empty(2 * TILE, np.float32)
    places, first, second = np.empty(TILE, np.int32), np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    changed, fall = 0, 0.0
    for start in range(0, near.size, SECTION):
        some = near[start : start + SECTION]
        count = undecided(x, labels, far, lower, some, centres, walked, drift, half_gaps, slack, rows, squares)
        for tile_start in range(0, count, TILE):
            size = min(TILE, count - tile_start)
            block, near_squares = rows[tile_start : tile_start + size], squares[tile_start : tile_start + size]
            fill(x, block, origin, unit, tile)
            lowest_of_tile(tile, size, singles, halves, scores, places, first, second)
            lowest = places[:size], first[:size], second[:size]
            to = x, weights, labels, far, lower, block, near_squares, sums, masses, sizes, centres, walked, drift
            more, less = settle(*to, *lowest, lengths, unit, rounding, slack)
            changed, fall = changed + more, fall + less
    return changed, fall


@kernel(
    "Tuple((i8, f8))(f8[:,::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1], i8[::1], f8[:,::1])",
    writes=["labels", "far", "lower", "sums", "masses", "sizes"],
)
def compare_all(
    x: Matrix,
    weights: Vector,
    labels: Labels,
    far: Vector,
    lower: Vector,
    sums: Matrix,
    masses: Vector,
    sizes: Labels,
    centres: Matrix,
) -> tuple[int, float]:
    """Give all rows their nearest centres, as `settle` does: few rows are compared sooner than bounds are kept."""
    changed, fall = 0, 0.0
    for i in range(x.shape[0]):
        label = labels[i]
        new, after, _ = closest(x[i], centres)
        if new != label:
            labels[i] = new
            changed += 1
            fall += weights[i] * (square(x[i], centres[label]) - after)
            move(x[i], weights[i], label, new, sums, masses, sizes)
        far[i], lower[i] = np.inf, 0.0
    return changed, fall


@kernel(
    "Tuple((i8, f8))(f8[:,::1], f8[::1], i8[::1], f8[::1], f8[::1], i8[::1], f8[:,::1], f8[::1], i8[::1], f8[:,::1],"
    " f8[::1], f8[::1], f8[::1], f8)",
    writes=["labels", "far", "lower", "sums", "masses", "sizes"],
)
def compare_undecided(
    x: Matrix,
    weights: Vector,
    labels: Labels,
    far: Vector,
    lower: Vector,
    near: Labels,
    sums: Matrix,
    masses: Vector,
    sizes: Labels,
    centres: Matrix,
    walked: Vector,
    drift: Vector,
    half_gaps: Vector,
    slack: float,
) -> tuple[int, float]:
    """Give each of the rows `near` whose bounds do not part its nearest centre, by difference."""
    rows, squares = np.empty(SECTION, np.intp), np.empty(SECTION)
    changed, fall = 0, 0.0
    for start in range(0, near.size, SECTION):
        some = near[start : start + SECTION]
        count = undecided(x, labels, far, lower, some, centres, walked, drift, half_gaps, slack, rows, squares)
        for t in range(count):
            i = rows[t]
            label = labels[i]
            square_of_own = square(x[i], centres[label])
            new, after, other = closest_beside(x[i], centres, label, square_of_own)
            lower[i] = math.sqrt(other) / slack + (drift[new] - walked[new])
            if new != label:
                labels[i], far[i] = new, math.sqrt(after) * slack - walked[new]
                changed += 1
                fall += weights[i] * (square_of_own - after)
                move(x[i], weights[i], label, new, sums, masses, sizes)
    return changed, fall


@kernel("void(f8[:,::1], f8[::1], i8[::1], f8[:,::1], f8[::1], i8[::1])", writes=["sums", "masses", "sizes"])
def add_rows(x: Matrix, weights: Vector, labels: Labels, sums: Matrix, masses: Vector, sizes: Labels) -> None:
    """Add each row to the cluster of its label."""
    for i in range(x.shape[0]):
        label, weight = labels[i], weights[i]
        sizes[label] += 1
        masses[label] += weight
        for j in range(x.shape[1]):
            sums[label, j] += weight * x[i, j]


@inner
def move(row: Vector, weight: float, label: int, new: int, sums: Matrix, masses: Vector, sizes: Labels) -> None:
    """Take a row out of one cluster and put it into another."""
    sizes[label] -= 1
    sizes[new] += 1
    masses[label] -= weight
    masses[new] += weight
    for j in range(row.size):
        part = weight * row[j]
        sums[label, j] -= part
        sums[new, j] += part


@kernel("void(f8[:,::1], f8[::1])", writes=["gaps"])
def half_gaps(centres: Matrix, gaps: Vector) -> None:
    """Half the distance of each centre to the next; infinite of a single one."""
    gaps[:] = np.inf
    for i in range(centres.shape[0]):
        for j in range(i):
            gap = math.sqrt(square(centres[i], centres[j])) / 2
            gaps[i], gaps[j] = min(gaps[i], gap), min(gaps[j], gap)
