"""Stress of a map, and the pull on every place, over all pairs of items whose dissimilarity is known."""

import math

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import kernel


@kernel(
    "void(f8[:,::1], f8[:,::1], f8[::1], f8[:,::1], f8[::1], f8[::1], f8[:,::1])",
    writes=["far", "stress", "pulls"],
    ieee=True,
)
def pull(
    distances: Matrix, places: Matrix, weights: Vector, pairs: Matrix, far: Vector, stress: Vector, pulls: Matrix
) -> None:
    """Each pair counts in the stress of its first item, and pulls both to where their distance is the given one.

    given: (n, n) dissimilarities, NaN where unknown; the half below the diagonal is read. places: (p, n). weights: (n,)
    of items. pairs: (n, n) of pairs, likewise read; (0, 0): each has the weight 1. far: (n,) for use. stress: (n,) gets
    what adds up to Σ wᵢⱼ(δᵢⱼ − dᵢⱼ)². pulls: (p, n) gets B(X)X, of which item i has Σⱼ wᵢⱼ δᵢⱼ/dᵢⱼ (xᵢ − xⱼ), without
    items at the same place. Loops without a sum: the processor does
    several of their turns at once.
    """
    stress[:], pulls[:] = 0.0, 0.0
    alike = pairs.shape[0] == 0
    for i in range(places.shape[1]):
        far[:i] = 0.0
        for k in range(places.shape[0]):
            here = places[k, i]
            for j in range(i):
                far[j] += (here - places[k, j]) * (here - places[k, j])
        for j in range(i):
            distance, wanted = math.sqrt(far[j]), distances[i, j]
            left = wanted - distance if wanted == wanted else 0.0  # noqa: PLR0124 - NaN
            weight = weights[i] * weights[j] * (1.0 if alike else pairs[i, j])
            stress[j] += weight * left * left
            far[j] = weight * wanted / distance if distance > 0 and wanted >= 0 else 0.0
        for k in range(places.shape[0]):
            here, total = places[k, i], 0.0
            for j in range(i):
                force = far[j] * (here - places[k, j])
                total += force
                pulls[k, j] -= force
            pulls[k, i] += total
