"""Loss of the places of further items in a map, and its first two derivatives, each item by itself."""

import math

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel, reordered


@inner
def squares_of(place: Vector, known_columns: Matrix, far: Vector) -> None:
    """Squared distances of a place (p,) to the known items (p, n). A coordinate at a time: the processor does several
    items at once.
    """
    far[:] = 0.0
    for k in range(known_columns.shape[0]):
        here = place[k]
        for j in range(far.size):
            far[j] += (here - known_columns[k, j]) * (here - known_columns[k, j])


@reordered
def weighted_loss(far: Vector, wanted: Vector, parts: Vector) -> float:
    total = 0.0
    for j in range(far.size):
        left = wanted[j] - math.sqrt(far[j])
        total += parts[j] * left * left
    return total


@kernel("void(f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1])", writes=["far", "losses"])
def item_losses(
    places: Matrix, rows: Labels, wanted: Matrix, parts: Matrix, known_columns: Matrix, far: Vector, losses: Vector
) -> None:
    """losses: (b,) gets Σ partsⱼ(wantedⱼ − ‖place − knownⱼ‖)².

    places: (b, p) of items, whose dissimilarities and weights are the `rows` (b,) of `wanted` and `parts` (m, n).
    known: (p, n). far: (n,) for use.
    """
    for item in range(rows.size):
        squares_of(places[item], known_columns, far)
        losses[item] = weighted_loss(far, wanted[rows[item]], parts[rows[item]])


@reordered
def total_of(values: Vector) -> float:
    total = 0.0
    for j in range(values.size):
        total += values[j]
    return total


@reordered
def weighted_difference(values: Vector, here: float, known_values: Vector) -> float:
    """Σ valuesⱼ(here − knownⱼ)."""
    total = 0.0
    for j in range(values.size):
        total += values[j] * (here - known_values[j])
    return total


@reordered
def weighted_product(values: Vector, here: float, known_values: Vector, there: float, others: Vector) -> float:
    """Σ valuesⱼ(here − knownⱼ)(there − othersⱼ)."""
    total = 0.0
    for j in range(values.size):
        total += values[j] * (here - known_values[j]) * (there - others[j])
    return total


@kernel(
    "void(f8[:,::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,:,::1])",
    writes=["room", "slopes", "curvatures"],
    ieee=True,
)
def item_slopes(
    places: Matrix,
    rows: Labels,
    wanted: Matrix,
    parts: Matrix,
    known_columns: Matrix,
    room: Matrix,
    slopes: Matrix,
    curvatures: Matrix,
) -> None:
    """Half the first two derivatives of the losses of `item_losses`: slopes (b, p), curvatures (b, p, p).

    room: (2, n) for use.
    """
    far, pull = room[0], room[1]
    for item in range(rows.size):
        place, dissimilarities, share = places[item], wanted[rows[item]], parts[rows[item]]
        squares_of(place, known_columns, far)
        for j in range(far.size):
            distance = math.sqrt(far[j])
            ratio = dissimilarities[j] / distance if distance > 0 else 0.0
            pull[j] = share[j] * (1 - ratio)
        for j in range(far.size):
            far[j] = (share[j] - pull[j]) / far[j] if far[j] > 0 else 0.0
        mean = total_of(pull)
        for k in range(place.size):
            slopes[item, k] = weighted_difference(pull, place[k], known_columns[k])
            for other in range(k + 1):
                product = weighted_product(far, place[k], known_columns[k], place[other], known_columns[other])
                curvatures[item, k, other] = curvatures[item, other, k] = product
            curvatures[item, k, k] += mean


@kernel(
    "void(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,:,::1])",
    writes=["room", "middles", "right", "matrices"],
    ieee=True,
)
def item_equations(
    wanted: Matrix, parts: Matrix, known_columns: Matrix, room: Vector, middles: Matrix, right: Matrix, matrices: Matrix
) -> None:
    """Least squares of  ‖aⱼ‖² − wantedⱼ² = 2aⱼ(y − m) − ‖y − m‖²  with aⱼ = knownⱼ − m about the mean m of what each
    item knows: middles (b, p), and matrices (b, p, p) and right sides (b, p) of the normal equations. room: (n,) for
    use.
    """
    for item in range(wanted.shape[0]):
        share, middle = parts[item], middles[item]
        mass = max(total_of(share), 1e-300)
        for k in range(known_columns.shape[0]):
            middle[k] = -weighted_difference(share, 0.0, known_columns[k]) / mass
        squares_of(middle, known_columns, room)
        for j in range(room.size):
            room[j] = share[j] * (room[j] - wanted[item, j] * wanted[item, j]) / mass
        for k in range(known_columns.shape[0]):
            right[item, k] = -weighted_difference(room, middle[k], known_columns[k]) / 2
            for other in range(k + 1):
                product = (
                    weighted_product(share, middle[k], known_columns[k], middle[other], known_columns[other]) / mass
                )
                matrices[item, k, other] = matrices[item, other, k] = product
