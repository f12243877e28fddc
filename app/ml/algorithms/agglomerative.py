r"""Agglomerative clustering: the two nearest clusters become one, again and again, up to a tree of all rows.

Every row begins as a cluster of its own. The distance of two clusters is that of their nearest rows (single linkage),
of their farthest rows (complete), the mean over all pairs of their rows (average), or by Ward's linkage the square
root of twice what joining them adds to the squared distances of the rows from their centroids. The merges, each with
its height, are kept as a tree. It is cut into a number of clusters or at a height. Equal rows are never parted.
A new row belongs to the cluster of the nearest training row, so a training row has its own label.
Instead of distances between columns, a square table may give the dissimilarity of every pair of rows; then a new row
has its dissimilarities to the training rows. Or edges give the dissimilarities of pairs that are known: single linkage
takes any that connect all rows, complete and average linkage those of all pairs. Where edges are all that is known,
the rows are their items, and an item to predict is one of these.
The cophenetic correlation compares the distances of rows with the heights at which they join: near 1 the tree keeps
the distances.

In short: near rows are joined to clusters and near clusters to larger ones. The tree of these merges is cut where the
clusters are as many, or as far apart, as wanted.

Use when: groups lie within groups, are not round (single linkage), or their number is not known beforehand.

Five points, of which the two nearest are joined first, and the loner last:

>>> import numpy as np
>>> points = np.array([[0, 4], [3, 0], [3.5, 0.3], [5, 1.5], [5.2, 2]])
>>> tree = fit(Agglomerative(linkage="single"), Data.of(Task.CLUSTERING, points), Context.of(0)).state
>>> tree.heights.round(4).tolist()
[0.5385, 0.5831, 1.9209, 5.0]

References: Ward (1963), JASA 58:236; Murtagh (1983), Comput. J. 26:354; Sokal & Rohlf (1962), Taxon 11:33;
Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 22.1; LION ch. 13.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.faults import Fault
from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Form,
    Inputs,
    Labels,
    Matrix,
    Meaning,
    Params,
    Size,
    Symmetry,
    Task,
    Vector,
    item_places,
)
from app.ml.numerics.clustering.linkage import (
    GIVEN,
    IN_TRIANGLE,
    Linkage,
    Merges,
    cophenetic_correlation,
    distances_of,
    heights_beside,
    joining_heights,
    labels,
    linkage,
    linkage_of_edges,
    linkage_of_square,
    merges_below,
    widest_gap,
)
from app.ml.numerics.clustering.row_tree import RowTree
from app.ml.numerics.neighbours.nearest import TREE_COLUMNS, neighbours

POWERS = {"euclidean": 2.0, "manhattan": 1.0, "chebyshev": math.inf}
MOST_SIZES = 1000
"""Clusters whose sizes are in the summary."""


class Agglomerative(Params):
    """Agglomerative clustering."""

    n_clusters: int = Field(8, ge=1, le=10_000, description="Number of clusters; not used with `distance_threshold`.")
    distance_threshold: float | None = Field(
        None,
        ge=0,
        le=1e300,
        description="Height of the cut, a distance in prepared (scaled) columns or a given dissimilarity: clusters "
        "farther apart than this by the linkage stay apart. Null: the tree is cut into `n_clusters`.",
    )
    linkage: Linkage = Field(
        "ward",
        description="Distance of two clusters: nearest rows (single), farthest rows (complete), mean over all pairs "
        "(average), or by what joining adds to the squared distances from the centroids (ward). Complete and average "
        "take 4 bytes of memory times the squared number of rows.",
    )
    metric: Literal["euclidean", "manhattan", "chebyshev"] = Field(
        "euclidean",
        description="Measure of the distance of rows by the differences of the columns; ward takes euclidean. "
        "Unused where dissimilarities are given.",
    )


class State(NamedTuple):
    rows: Matrix
    """(n, d) training rows; (n, 0) where dissimilarities are all that is known of them."""
    numbers: Labels
    """(n,) their numbers in the dataset, from 0, else among the training rows."""
    labels: Labels
    """(n,) their clusters."""
    children: Labels
    """(n - 1, 2) clusters that each merge joins: below n a row, n + i the cluster that merge i made."""
    heights: Vector
    """(n - 1,) distance of the two; never falls."""
    sizes: Labels
    """(n - 1,) rows of the cluster made."""
    cophenetic: Vector
    """(1,) cophenetic correlation; NaN where distances or heights do not vary, or pairs are unknown."""
    items: NDArray[np.str_] | None = None
    """(n,) names of the rows; None: they have none."""


def fit(params: Agglomerative, data: Data, context: Context) -> Fit[State]:
    n = len(data.x)
    tree, correlation = _tree(params, data)
    context.progress(0.8)
    wanted, equal = _merges(params, tree.heights), merges_below(tree.heights, 0.0)
    merges = max(wanted, equal)
    numbers = np.arange(n) if data.numbers is None else data.numbers
    rows = data.x if data.square is None and not data.by_item else data.x[:, :0]
    state = State(rows, numbers, labels(tree.children, merges), *tree, np.array([correlation]), data.items)
    few = params.distance_threshold is None and n - merges < params.n_clusters
    warnings = [f"There are only {n - merges} distinct rows, so there are {n - merges} clusters."] if few else []
    return Fit(state, iterations=n - 1, warnings=warnings)


def _tree(params: Agglomerative, data: Data) -> tuple[Merges, float]:
    """With its cophenetic correlation; NaN of edges, which leave pairs unknown."""
    if data.square is not None:
        tree = linkage_of_square(data.square, data.weights, params.linkage)
        return tree, cophenetic_correlation(data.square, tree, GIVEN)
    if data.relations is not None and data.relations.edges is not None:
        return linkage_of_edges(data.relations.edges, data.weights, params.linkage), math.nan
    p = POWERS[params.metric]
    tree = linkage(data.x, data.weights, params.linkage, p)
    return tree, cophenetic_correlation(data.x, tree, p)


def _merges(params: Agglomerative, heights: Vector) -> int:
    if params.distance_threshold is not None:
        return merges_below(heights, params.distance_threshold)
    return max(0, len(heights) + 1 - params.n_clusters)


def predict(params: Agglomerative, state: State, x: Matrix) -> Labels:
    if state.rows.shape[1]:
        nearest = neighbours(x, state.rows, 1, p=POWERS[params.metric])[0][:, 0]
    elif x.shape[1] == 1:
        nearest = item_places(x, len(state.labels))
    else:
        nearest = x.argmin(axis=1)
    nearest_labels: Labels = state.labels[nearest]
    return nearest_labels


def joined(params: Agglomerative, state: State, rows: Labels) -> tuple[Matrix, Matrix]:
    merges = Merges(state.children, state.heights, state.sizes)
    return distances_of(state.rows[rows], POWERS[params.metric]), joining_heights(merges, rows)


def grouped(params: Agglomerative, state: State, groups: int) -> Labels:
    """(k,) of each cluster that of its first row, where the tree is cut into so many."""
    _, first = np.unique(state.labels, return_index=True)
    row_labels: Labels = labels(state.children, len(state.labels) - groups)[first]
    return row_labels


def tree(params: Agglomerative, state: State) -> RowTree:
    return RowTree(Merges(state.children, state.heights, state.sizes), state.numbers, state.items)


def summary(params: Agglomerative, state: State) -> JSON:
    """Heights are in prepared (scaled) columns. `suggested_clusters`: as many as the widest gap of heights leaves."""
    sizes, correlation = np.bincount(state.labels), float(state.cophenetic[0])
    below, above = heights_beside(state.heights, len(state.rows) - len(sizes))
    return {
        "clusters": len(sizes),
        "sizes": sizes[:MOST_SIZES].tolist(),
        "highest_merge_below": below,
        "lowest_merge_above": above,
        "suggested_clusters": len(state.rows) - widest_gap(state.heights),
        "cophenetic_correlation": None if math.isnan(correlation) else correlation,
    }


def _faults(params: Agglomerative, inputs: Inputs) -> Iterator[Fault]:
    if params.linkage == "ward" and params.metric != "euclidean":
        yield Fault("/metric", "Ward's linkage is of Euclidean distances: take euclidean, or another linkage.")
    if params.linkage == "ward" and inputs.relations is not None:
        yield Fault("/linkage", "Ward's linkage is of columns: take average, complete or single for dissimilarities.")


def _memory(params: Agglomerative, size: Size) -> float:
    return 4 * size.rows**2 if params.linkage in IN_TRIANGLE else 0.0


def _seconds(params: Agglomerative, size: Size) -> float:
    pair = {"single": 1e-9, "ward": 6e-9}.get(params.linkage, 1.4e-8) + 6e-10 * size.columns
    each = 5e-6 + (0 if size.columns <= TREE_COLUMNS else 2.5e-11 * size.cells)
    return size.rows * (size.rows * pair + each)


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=Agglomerative,
    state=State,
    fit=fit,
    predict=predict,
    faults=_faults,
    memory=_memory,
    seconds=_seconds,
    rowwise=True,
    relations={form: {Meaning.DISSIMILARITY} for form in (Form.SQUARE, Form.EDGES)},
    edges_alone=True,
    summary=summary,
    joined=joined,
    grouped=grouped,
    queries={"cut": tree},
    breaks={
        Symmetry.SCALE: "A distance gives a column the weight of its unit; scale the columns alike first.",
    },
)
