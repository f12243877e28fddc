"""Places at which the search for a map starts, and the turn of the one that it finds."""

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.principal_directions import principal
from app.ml.numerics.maps.classical_scaling import classical_scaling, signs
from app.ml.numerics.maps.stress_majorisation import EXACT, KnownPairs

DENSE = 0.5
"""Share of known pairs from which on gaps are filled by means."""
APART = 1e-2
"""Size of what is added to axes on which a start has no extent, as a share of its dissimilarities."""


def random_start(pairs: KnownPairs, components: int, rng: np.random.Generator) -> Matrix:
    """(n, p) as far apart as the dissimilarities are."""
    drawn = rng.normal(size=(pairs.n, components))
    return np.asarray(drawn * np.sqrt(np.nanmean(np.square(pairs.given)) / (2 * components)))


def classical_start(pairs: KnownPairs, components: int, rng: np.random.Generator) -> Matrix:
    """(n, p) by classical scaling; where that has fewer axes and does not fit, a little is drawn along the others."""
    full = _filled(pairs.given)
    scaled_places = classical_scaling(full, pairs.weights, components).places(full)
    start = np.zeros((pairs.n, components))
    start[:, : scaled_places.shape[1]] = scaled_places
    empty = ~start.any(axis=0)
    if empty.any() and pairs.stress(start) > EXACT * pairs.squares:
        start[:, empty] = APART * random_start(pairs, components, rng)[:, empty]
    return start


def upright(places: Matrix, weights: Vector) -> Matrix:
    """Places (n, p) about their mean, turned so that they are uncorrelated, those of the widest axis first."""
    directions = principal(places, weights)
    turned = np.zeros_like(places)
    turned[:, : len(directions.values)] = (places - directions.mean) @ directions.directions.T
    return np.ascontiguousarray(turned * signs(turned))


def _filled(distances: Matrix) -> Matrix:
    unknown = np.isnan(distances)
    if not unknown.any():
        return distances
    if (~unknown).mean() >= DENSE:
        means = np.sqrt(np.nanmean(np.square(distances), axis=1))
        return np.where(unknown, (means[:, None] + means) / 2, distances)
    least = np.finfo(float).tiny * 2**60  # a way of length 0 is one, too
    graph = scipy.sparse.csr_array(np.where(unknown, 0.0, np.maximum(distances, least)))
    return np.where(unknown, scipy.sparse.csgraph.shortest_path(graph, method="D", directed=False), distances)
