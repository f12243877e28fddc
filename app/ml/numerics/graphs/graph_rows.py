"""Training rows as nodes of a similarity graph, and the edges of new rows to them.

A new row is joined to training rows as the graph joins rows: to the nearest ones, to those within the radius, or to
all. Of a square it has its own similarities to the training rows. Beside given edges its only edge is to the nearest
training row by the columns. A row equal to a training row stands for that row.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector, item_places
from app.ml.numerics.graphs.similarity_graph import Graph, GraphParams, Weights, has_graph, local_scale, similarity
from app.ml.numerics.linear_algebra.solve import each_row
from app.ml.numerics.neighbours.nearest import neighbours

BLOCK = 2**20
"""Similarities worked on at a time."""
ALONE, SQUARE, BESIDE, COLUMNS = range(4)


class GraphRows(NamedTuple):
    kind: int
    """0: items of edges that are the only table; 1: rows of a square; 2: rows beside edges; 3: the columns make the
    graph."""
    rows: Matrix
    """(n, d) training rows; (n, 0) where the graph is all that is known of them."""
    numbers: Labels
    """(n,) their numbers in the dataset, from 0, else among the training rows."""
    masses: Vector
    """(n,) weights, 1 on average."""
    scale: Vector
    """(1,) the median distance of a row to its neighbour of the rank `n_neighbors`, for a width or radius not given."""
    marks: Vector
    """(n,) of a square, by which a training row is recognised; (0,) else."""
    ranked: Labels
    """(n,) places of items of edges by the rank of their names; (0,) else."""
    items: NDArray[np.str_] | None = None
    """(n,) names of the rows; None: they have none."""

    @property
    def size(self) -> int:
        return self.numbers.size


def rows_of(params: GraphParams, data: Data, graph: Graph) -> GraphRows:
    kind = _kind(data)
    numbers = np.arange(len(data.x)) if data.numbers is None else data.numbers
    needed = kind == COLUMNS and (
        params.radius is None if params.graph == "epsilon" else params.graph == "full" and params.width is None
    )
    scale = local_scale(data.x, params.n_neighbors) if needed else 0.0
    marks = _marks(data.x) if kind == SQUARE else np.zeros(0)
    rows = data.x if kind in {BESIDE, COLUMNS} else data.x[:, :0]
    ranked = np.argsort(data.x[:, 0], kind="stable") if kind == ALONE else np.zeros(0, np.intp)
    return GraphRows(kind, rows, numbers, graph.masses, np.array([scale]), marks, ranked, data.items)


def _kind(data: Data) -> int:
    if not has_graph(data):
        return COLUMNS
    if data.square is not None:
        return SQUARE
    return ALONE if data.by_item else BESIDE


def _marks(x: Matrix) -> Vector:
    """(n,) one number for each row, the same wherever the row is."""
    factors: Vector = np.random.Generator(np.random.PCG64(1)).random((x.shape[1],)) / x.shape[1]  # sums stay finite
    return each_row(np.ascontiguousarray(x), factors)


def own_places(nodes: GraphRows, x: Matrix) -> Labels:
    """(q,) place of the training row that each row is, the first of equal ones; -1 for a new row."""
    if nodes.kind == ALONE:
        return nodes.ranked[item_places(x, nodes.size)]
    if nodes.kind == SQUARE:
        order = np.argsort(nodes.marks, kind="stable")
        marks = _marks(x)
        nearest = order[np.minimum(np.searchsorted(nodes.marks[order], marks), nodes.size - 1)]
        return np.where(nodes.marks[nearest] == marks, nearest, -1)
    places, far = neighbours(x, nodes.rows, 1)
    return np.where(far[:, 0] == 0, places[:, 0], -1) if nodes.kind == COLUMNS else places[:, 0]


def nearest_places(nodes: GraphRows, x: Matrix) -> Labels:
    """(q,) place of the training row that each row is most like, the first of equal ones."""
    if nodes.kind == SQUARE:
        return np.asarray(x.argmax(axis=1), np.intp)
    return own_places(nodes, x) if nodes.kind != COLUMNS else neighbours(x, nodes.rows, 1)[0][:, 0]


def averages(params: GraphParams, nodes: GraphRows, x: Matrix, values: Matrix) -> tuple[Matrix, Vector]:
    """Means (q, c) of values (n, c) of the training rows, weighted by the edges of each row to them, and the sums of
    these weights (q,); where that is 0, so are the means.
    """
    sums, total = np.zeros((len(x), values.shape[1])), np.zeros(len(x))
    for some in _blocks(len(x), nodes.size):
        weights = _edges(params, nodes, x[some])
        total[some] = np.asarray(weights.sum(axis=1)).ravel()
        sums[some] = weights @ values
    return sums / np.where(total > 0, total, 1.0)[:, None], total


def _blocks(count: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // width)
    return (slice(start, start + step) for start in range(0, count, step))


def _edges(params: GraphParams, nodes: GraphRows, x: Matrix) -> Weights:
    """(q, n) weights of the edges of new rows, in a unit of each row."""
    if nodes.kind == SQUARE:
        return _near_one(x) * nodes.masses
    if params.graph == "nearest_neighbors":
        places, far = neighbours(x, nodes.rows, params.n_neighbors)
        weights = _in_width(far, params.width) * nodes.masses[places]
        starts = np.arange(0, places.size + 1, places.shape[1])
        return scipy.sparse.csr_array((weights.ravel(), places.ravel(), starts), shape=(len(x), nodes.size))
    with np.errstate(over="ignore", invalid="ignore"):
        far = scipy.spatial.distance.cdist(x, nodes.rows)
    scale = float(nodes.scale[0])
    if params.graph == "epsilon":
        radius = scale if params.radius is None else params.radius
        return np.where(far <= radius, similarity(far, params.width), 0.0) * nodes.masses
    return _in_width(far, scale if params.width is None else params.width) * nodes.masses


def _near_one(x: Matrix) -> Matrix:
    largest = np.nan_to_num(x, nan=0.0).max(axis=1, initial=0.0, keepdims=True)
    return np.nan_to_num(np.maximum(x, 0.0), nan=0.0) / np.where(largest > 0, largest, 1.0)


def _in_width(far: Matrix, width: float | None) -> Matrix:
    """Similarities, those of a row beside its largest one, so that a row far from all has neighbours too."""
    if width is None or not width > 0:
        return similarity(far, width)
    with np.errstate(over="ignore", invalid="ignore"):
        exponents = np.square(far.min(axis=1, keepdims=True) / width) - np.square(far / width)
    return np.exp(np.where(np.isnan(exponents), 0.0, exponents))
