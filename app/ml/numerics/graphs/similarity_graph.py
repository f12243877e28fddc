"""Similarity graphs: rows are nodes, and an edge weighs how alike its two rows are.

Edges join all pairs of rows (full), pairs of which one is among the nearest neighbours of the other, or pairs within a
distance (epsilon); or they are given. The weights of rows, relative to their mean, are masses of the nodes: an edge of
rows i and j weighs mᵢ mⱼ s(i, j), as it would between so many copies of the two.

References: von Luxburg (2007), Stat. Comput. 17:395, section 2; Shalev-Shwartz & Ben-David (2014), Understanding
Machine Learning, section 22.3.
"""

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy
from pydantic import Field

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Data, Labels, Matrix, Params, Size, Vector
from app.ml.numerics.linear_algebra.solve import near_one
from app.ml.numerics.neighbours.nearest import distances, neighbours

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Weights: TypeAlias = "csr_array | Matrix"
"""(n, n) symmetric, none below 0, zeros on the diagonal; sparse but for a full graph."""
MOST_PAIRS = 50_000_000
"""Edges of a graph of rows within a distance."""


class GraphParams(Params):
    """The similarity graph of rows."""

    graph: Literal["nearest_neighbors", "full", "epsilon"] = Field(
        "nearest_neighbors",
        description="Similarity graph of the rows, unless edges or a square give it: `nearest_neighbors` joins two "
        "rows if one is among the `n_neighbors` nearest of the other; `epsilon` joins rows at most `radius` apart; "
        "`full` joins all rows and takes 16 bytes of memory times the squared number of rows.",
    )
    n_neighbors: int = Field(
        10,
        ge=1,
        le=10_000,
        description="Number of neighbours that a row is joined to; in the other graphs, the neighbour whose median "
        "distance is the `radius` or `width` that is not given.",
    )
    radius: float | None = Field(
        None,
        gt=0,
        le=1e300,
        description="Largest distance of two rows that are joined, in prepared (scaled) columns, for the graph "
        "`epsilon`. Null: the median distance of a row to its `n_neighbors`-th neighbour.",
    )
    width: float | None = Field(
        None,
        gt=0,
        le=1e300,
        description="Kernel width σ: an edge between rows at distance d, in prepared (scaled) columns, weighs "
        "exp(-d²/σ²). Null: every edge weighs 1, but in a full graph σ is the median distance of a row to its "
        "`n_neighbors`-th neighbour.",
    )


class Graph(NamedTuple):
    weights: Weights
    """In units in which sums neither overflow nor vanish."""
    unit: float
    """Weight of an edge is this times the number in `weights`."""
    masses: Vector
    """(n,) above 0; 1 on average."""

    @property
    def degrees(self) -> Vector:
        """(n,) sum of the weights of the edges of each node."""
        return np.asarray(self.weights.sum(axis=1), np.float64)

    def in_unit(self, values: Vector) -> Vector:
        """Sums of weights in the unit of the edges as they were given, at most the largest number."""
        with np.errstate(over="ignore"):
            return np.minimum(values * self.unit, np.finfo(float).max)


def made(params: GraphParams, data: Data) -> Graph:
    """The given graph of the rows, or the one that their columns and the parameters make."""
    masses = data.weights / data.weights.mean()
    weights, unit = _given(data) or (_of_rows(params, data.x), 1.0)
    if np.ptp(masses) > 0:
        weights = _times(weights, masses)
    return Graph(weights, unit, masses)


def has_graph(data: Data) -> bool:
    """True if relations give the graph."""
    return data.relations is not None


def of_edges(n: int, first: Labels, second: Labels, values: Vector) -> "csr_array":
    """Symmetric (n, n) of pairs of different nodes, each once; pairs of weight 0 are no edges."""
    both = np.concatenate([first, second]), np.concatenate([second, first])
    weights = scipy.sparse.csr_array((np.concatenate([values, values]), both), shape=(n, n))
    weights.eliminate_zeros()
    return weights


def _given(data: Data) -> "tuple[Weights, float] | None":
    if data.relations is None:
        return None
    edges, square = data.relations.edges, data.relations.square
    if edges is not None:
        scale = near_one(float(edges.values.max(initial=0.0)))
        return of_edges(len(data.x), edges.first, edges.second, edges.values * scale), 1 / scale
    assert square is not None  # noqa: S101 - one of the two is there
    scale = near_one(float(square.max(initial=0.0)))
    weights = square * scale
    np.fill_diagonal(weights, 0.0)
    return weights, 1 / scale


def _times(weights: Weights, masses: Vector) -> Weights:
    if isinstance(weights, np.ndarray):
        return weights * masses * masses[:, None]
    rows = np.repeat(np.arange(masses.size), np.diff(weights.indptr))
    values = weights.data * masses[rows] * masses[weights.indices]
    return scipy.sparse.csr_array((values, weights.indices, weights.indptr), shape=weights.shape)


def _of_rows(params: GraphParams, x: Matrix) -> Weights:
    scaled = x * near_one(float(np.abs(x).max(initial=0.0)))
    unit = near_one(float(np.abs(x).max(initial=0.0)))
    width = None if params.width is None else params.width * unit
    if params.graph == "full":
        return _full(scaled, local_scale(scaled, params.n_neighbors) if width is None else width)
    if params.graph == "epsilon":
        radius = None if params.radius is None else params.radius * unit
        return _within(scaled, local_scale(scaled, params.n_neighbors) if radius is None else radius, width)
    return _nearest(scaled, params.n_neighbors, width)


def local_scale(x: Matrix, n_neighbors: int) -> float:
    """Median distance of a row to its neighbour of this rank, or to the last one."""
    far = neighbours(x, x, min(n_neighbors, len(x) - 1) + 1)[1]
    return float(np.median(far[:, -1]))


def similarity(far: Matrix, width: float | None) -> Matrix:
    """exp(-d²/σ²) of distances; 1 without a width, and of a width 0 for equal rows only."""
    if width is None:
        return np.ones_like(far)
    if not width > 0:
        return np.asarray(far == 0, np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-np.square(far / width))


def _full(x: Matrix, width: float) -> Matrix:
    weights = similarity(scipy.spatial.distance.cdist(x, x), width)
    np.fill_diagonal(weights, 0.0)
    return weights


def _within(x: Matrix, radius: float, width: float | None) -> "csr_array":
    tree = scipy.spatial.cKDTree(x)
    count = (int(tree.count_neighbors(tree, radius)) - len(x)) // 2
    if count > MOST_PAIRS:
        raise InvalidData(f"The radius joins {count} pairs of rows; at most {MOST_PAIRS} are possible: lower it.")
    first, second = tree.query_pairs(radius, output_type="ndarray").T
    return of_edges(len(x), first, second, similarity(_apart(x, first, second), width))


def _apart(x: Matrix, first: Labels, second: Labels) -> Vector:
    far = np.empty(first.size)
    for start in range(0, first.size, 2**16):
        some = slice(start, start + 2**16)
        far[some] = distances(x[first[some]], x, second[some, None], 2.0)[:, 0]
    return far


def _nearest(x: Matrix, n_neighbors: int, width: float | None) -> "csr_array":
    n = len(x)
    k = min(n_neighbors, n - 1)
    places, far = neighbours(x, x, k + 1)
    others = places != np.arange(n)[:, None]
    others[others.all(axis=1), -1] = False  # so many equal rows come first that the row itself is not among them
    starts = np.arange(0, n * k + 1, max(1, k)) if k else np.zeros(n + 1, np.intp)
    directed = scipy.sparse.csr_array((similarity(far[others], width), places[others], starts), shape=(n, n))
    weights = directed.maximum(directed.T).tocsr()
    weights.eliminate_zeros()
    return weights


def memory(params: GraphParams, size: Size) -> float:
    """Bytes of a full graph and a copy; of others, what is made of each edge."""
    return 16 * size.rows**2 if params.graph == "full" else 60 * size.rows * params.n_neighbors
