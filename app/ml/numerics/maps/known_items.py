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
NEAREST = 5
"""Neighbours of a row in the map, unless a request wants another number."""
MOST_SHOWN = 1000
"""Items in the summary."""
LARGEST = 1e100
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
        known, given = _known(SQUARE, data, data.x[:, :0]), np.array(data.square, order="C")
    elif data.relations is not None and data.relations.edges is not None:
        known = _known(ITEMS, data, data.x[:, :0]) if data.by_item else _known(BESIDE_EDGES, data, data.x)
        given = np.full((n, n), np.nan)
        first, second, values, _ = data.relations.edges
        given[first, second] = given[second, first] = values
    else:
        metric = NamedMetric.learned(params.metric, params.p, data.x, data.weights)
        known = _known(COLUMNS, data, metric.points(data.x))._replace(space=metric.space)
        given = _distances(metric, known.rows, known.rows)
    np.fill_diagonal(given, 0.0)
    _check_connected(given)
    scale = unit(np.nan_to_num(given))
    given /= scale
    return known._replace(scale=scale), given


def pair_weights(data: Data) -> Matrix | None:
    """(n, n) weights of pairs, 0 of a pair that is unknown; None: every pair has the weight 1."""
    edges = None if data.relations is None else data.relations.edges
    if edges is None or edges.weights is None:
        return None
    found = np.zeros((len(data.x), len(data.x)))
    found[edges.first, edges.second] = found[edges.second, edges.first] = edges.weights
    return found


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


def distinct_items(known: KnownItems) -> DistinctItems:
    """Items with given dissimilarities are different ones, in their own order."""
    n = len(known.weights)
    if known.form != COLUMNS:
        return DistinctItems(np.arange(n), np.arange(n), known.weights)
    points = known.rows / unit(known.rows)
    order, new = canonical_order(points), np.ones(n, bool)
    new[1:] = (points[order[1:]] != points[order[:-1]]).any(axis=1)
    group = np.empty(n, np.intp)
    group[order] = np.cumsum(new) - 1
    return DistinctItems(order[new], group, np.add.reduceat(known.weights[order], np.flatnonzero(new)))


def coordinates(known: KnownItems, places: Matrix) -> list[JSON]:
    """Coordinates of the first items, for a summary. places: (n, p) in units of the scale."""
    values = (places[:MOST_SHOWN] * known.scale).tolist()
    names = [{}] * len(values) if known.items is None else [{"item": str(item)} for item in known.items[:MOST_SHOWN]]
    rows = zip(known.numbers[:MOST_SHOWN].tolist(), names, values, strict=True)
    return [{"row": row, **name, "coordinates": value} for row, name, value in rows]


def nearest_items(known: KnownItems, places: Matrix, found: Matrix, count: int | None) -> Neighbours:
    """Items nearest in the map to places `found` (b, p). places: (n, p) of the items, in units of the scale. count: of
    each; None: NEAREST.
    """
    k = min(NEAREST if count is None else count, len(places))
    nearest, apart = neighbours(found / known.scale, places, k)
    items = None if known.items is None else known.items[nearest]
    return Neighbours(known.numbers[nearest], apart * known.scale, None, None, prototypes=False, items=items)


def placed(
    params: DissimilarityParams, known: KnownItems, x: Matrix, places: Matrix, place: Callable[[Matrix], Matrix]
) -> Matrix:
    """(b, p) places of rows. places: (n, p) of the known items. place: maps dissimilarities (b, n), in units of the
    scale, to places.
    """
    if known.form == ITEMS:
        return np.asarray(places[item_places(x, len(places))])
    if known.form == BESIDE_EDGES:
        return np.asarray(places[neighbours(x, known.rows, 1)[0][:, 0]])
    found, step = np.empty((len(x), places.shape[1])), max(1, BLOCK // len(places))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        given = np.minimum(_to_known(params, known, x[rows]) / known.scale, LARGEST)
        with np.errstate(over="ignore"):
            found[rows] = place(given) * known.scale
    return np.clip(found, -np.finfo(float).max, np.finfo(float).max)


def _to_known(params: DissimilarityParams, known: KnownItems, x: Matrix) -> Matrix:
    if known.form == SQUARE:
        return x
    metric = NamedMetric.of(params.metric, params.p, known.space)
    return _distances(metric, metric.points(x), known.rows)


def _distances(metric: NamedMetric, points: Matrix, others: Matrix) -> Matrix:
    scale, p = unit(others), metric.p
    kinds = {1.0: {"metric": "cityblock"}, 2.0: {"metric": "euclidean"}, np.inf: {"metric": "chebyshev"}}
    with np.errstate(over="ignore"):
        found = scipy.spatial.distance.cdist(
            points / scale, others / scale, **kinds.get(p, {"metric": "minkowski", "p": p})
        )
        return np.minimum(metric.distances(found * scale), np.finfo(float).max)


def _check_connected(given: Matrix) -> None:
    if not np.isnan(given).any():
        return
    groups = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(~np.isnan(given)))[0]
    if groups > 1:
        raise InvalidData(f"The known dissimilarities leave the rows in {groups} groups without any between them.")
