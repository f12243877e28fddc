"""Known items of a map: the training rows, and the dissimilarities of further rows to them.

Dissimilarities are distances of columns by a metric, or given for pairs of rows: by a square table, or by edges. With
a square a row to predict has its dissimilarities to the known items. With edges it is one of the items; where columns
stand beside the edges, it has the place of the item that is nearest in these, as edges do not lead to new rows.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import InvalidData
from app.ml.contract.algorithm import JSON, Data, Labels, Matrix, Params, Vector, item_places
from app.ml.numerics.clustering.linkage import unit
from app.ml.numerics.clustering.seeding import canonical_order
from app.ml.numerics.neighbours import named_metrics
from app.ml.numerics.neighbours.metric_space import MetricSpace
from app.ml.numerics.neighbours.named_metrics import Metric, NamedMetric
from app.ml.numerics.neighbours.nearest import neighbours
from app.ml.numerics.neighbours.neighbour_lists import Neighbours

COLUMNS, SQUARE, ITEMS, BESIDE_EDGES = "columns", "square", "items", "beside_edges"
BLOCK = 2**21
"""Dissimilarities of rows to predict that are held at a time."""
DEFAULT_NEIGHBOURS = 5
"""Neighbours of a row in the map, unless a request wants another number."""
MOST_SHOWN = 1000
"""Items in the summary."""
MAX_DISSIMILARITY = 1e100
"""Dissimilarity, in units of the largest between known items, at which those of other rows are cut off."""


class DissimilarityParams(Params):
    """Parameters of maps from dissimilarities."""

    n_components: int = Field(2, ge=1, le=100, description="Number of components: coordinates of each row in the map.")
    metric: Metric = Field(
        "euclidean", description=f"{named_metrics.DESCRIPTION} Unused where dissimilarities are given."
    )
    p: float = Field(3.0, ge=1, le=100, description="Power of the differences, for the metric minkowski only.")


class KnownItems(NamedTuple):
    form: str
    """Source of the dissimilarities."""
    rows: Matrix
    """(n, r) points of the metric, or columns beside edges; (n, 0) where rows have no columns."""
    weights: Vector
    """(n,)"""
    numbers: Labels
    """(n,) their numbers in the dataset, from 0, else among the training rows."""
    scale: float
    """A power of two near the largest dissimilarity: places are computed in units of it."""
    space: MetricSpace | None = None
    """Space of a metric that depends on the training rows."""
    items: NDArray[np.str_] | None = None
    """(n,) names; None: they have none."""


def known_items(params: DissimilarityParams, data: Data) -> tuple[KnownItems, Matrix]:
    """The items, and their dissimilarities (n, n) in units of the scale, NaN where unknown.

    Raises InvalidData where known pairs do not connect all items.
    """
    n = len(data.x)
    if data.square is not None:
        items, distances = _known(SQUARE, data, data.x[:, :0]), np.array(data.square, order="C")
    elif data.relations is not None and data.relations.edges is not None:
        items = _known(ITEMS, data, data.x[:, :0]) if data.by_item else _known(BESIDE_EDGES, data, data.x)
        distances = np.full((n, n), np.nan)
        first, second, values, _ = data.relations.edges
        distances[first, second] = distances[second, first] = values
    else:
        metric = NamedMetric.learned(params.metric, params.p, data.x, data.weights)
        items = _known(COLUMNS, data, metric.points(data.x))._replace(space=metric.space)
        distances = _distances(metric, items.rows, items.rows)
    np.fill_diagonal(distances, 0.0)
    _check_connected(distances)
    scale = unit(np.nan_to_num(distances))
    distances /= scale
    return items._replace(scale=scale), distances


def pair_weights(data: Data) -> Matrix | None:
    """(n, n) weights of pairs, 0 of a pair that is unknown; None: every pair has the weight 1."""
    edges = None if data.relations is None else data.relations.edges
    if edges is None or edges.weights is None:
        return None
    weights = np.zeros((len(data.x), len(data.x)))
    weights[edges.first, edges.second] = weights[edges.second, edges.first] = edges.weights
    return weights


def _known(form: str, data: Data, rows: Matrix) -> KnownItems:
    numbers = np.arange(len(data.x)) if data.numbers is None else data.numbers
    return KnownItems(form, rows, np.asarray(data.weights), numbers, 1.0, items=data.items)


class DistinctItems(NamedTuple):
    """Items at different points of a metric, in an order that does not depend on that of the table."""

    first: Labels
    """(m,) one item of each point."""
    group: Labels
    """(n,) the point of each item."""
    weights: Vector
    """(m,) sums of their weights."""


def distinct_items(items: KnownItems) -> DistinctItems:
    """Items with given dissimilarities are different ones, in their own order."""
    n = len(items.weights)
    if items.form != COLUMNS:
        return DistinctItems(np.arange(n), np.arange(n), items.weights)
    points = items.rows / unit(items.rows)
    order, new = canonical_order(points), np.ones(n, bool)
    new[1:] = (points[order[1:]] != points[order[:-1]]).any(axis=1)
    group = np.empty(n, np.intp)
    group[order] = np.cumsum(new) - 1
    return DistinctItems(order[new], group, np.add.reduceat(items.weights[order], np.flatnonzero(new)))


def coordinates(items: KnownItems, places: Matrix) -> list[JSON]:
    """Coordinates of the first items, for a summary. places: (n, p) in units of the scale."""
    values = (places[:MOST_SHOWN] * items.scale).tolist()
    names = [{}] * len(values) if items.items is None else [{"item": str(item)} for item in items.items[:MOST_SHOWN]]
    rows = zip(items.numbers[:MOST_SHOWN].tolist(), names, values, strict=True)
    return [{"row": row, **name, "coordinates": value} for row, name, value in rows]


def nearest_items(known_items: KnownItems, places: Matrix, item_places: Matrix, count: int | None) -> Neighbours:
    """Items nearest in the map to `item_places` (b, p). places: (n, p) of the items, in units of the scale. count: of
    each; None: DEFAULT_NEIGHBOURS.
    """
    k = min(DEFAULT_NEIGHBOURS if count is None else count, len(places))
    nearest, distances = neighbours(item_places / known_items.scale, places, k)
    items = None if known_items.items is None else known_items.items[nearest]
    return Neighbours(
        known_items.numbers[nearest], distances * known_items.scale, None, None, prototypes=False, items=items
    )


def placed(
    params: DissimilarityParams, items: KnownItems, x: Matrix, places: Matrix, place: Callable[[Matrix], Matrix]
) -> Matrix:
    """(b, p) places of rows. places: (n, p) of the known items. place: maps dissimilarities (b, n), in units of the
    scale, to places.
    """
    if items.form == ITEMS:
        return np.asarray(places[item_places(x, len(places))])
    if items.form == BESIDE_EDGES:
        return np.asarray(places[neighbours(x, items.rows, 1)[0][:, 0]])
    coordinates_, step = np.empty((len(x), places.shape[1])), max(1, BLOCK // len(places))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        distances = np.minimum(_to_known(params, items, x[rows]) / items.scale, MAX_DISSIMILARITY)
        with np.errstate(over="ignore"):
            coordinates_[rows] = place(distances) * items.scale
    return np.clip(coordinates_, -np.finfo(float).max, np.finfo(float).max)


def _to_known(params: DissimilarityParams, items: KnownItems, x: Matrix) -> Matrix:
    if items.form == SQUARE:
        return x
    metric = NamedMetric.of(params.metric, params.p, items.space)
    return _distances(metric, metric.points(x), items.rows)


def _distances(metric: NamedMetric, points: Matrix, others: Matrix) -> Matrix:
    scale, p = unit(others), metric.p
    kinds = {1.0: {"metric": "cityblock"}, 2.0: {"metric": "euclidean"}, np.inf: {"metric": "chebyshev"}}
    with np.errstate(over="ignore"):
        distances = scipy.spatial.distance.cdist(
            points / scale, others / scale, **kinds.get(p, {"metric": "minkowski", "p": p})
        )
        return np.minimum(metric.distances(distances * scale), np.finfo(float).max)


def _check_connected(distances: Matrix) -> None:
    if not np.isnan(distances).any():
        return
    groups = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(~np.isnan(distances)))[0]
    if groups > 1:
        raise InvalidData(f"The known dissimilarities leave the rows in {groups} groups without any between them.")
