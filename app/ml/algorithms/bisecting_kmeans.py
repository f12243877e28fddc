r"""Bisecting k-means: all rows are one cluster, and one cluster after another is split into two.

The cluster to split is that of the largest inertia, or of the most rows; 2-means splits it, the best of several starts.
The splits are a tree, and its first m of them make m + 1 clusters: those of fewer clusters contain those of more.
The inertia falls with each split. It ends above that of k-means with as many clusters, as a rule, for no split is
undone. Clusters of equal rows, and those at `max_depth`, are not split. A new row goes down the tree, at each split to
the nearer of the two centres. The order of the rows does not matter: they are sorted by value before anything is drawn.

In short: clusters come from splitting larger ones by 2-means. The splits form a tree, from all rows down.

Use when: groups consist of smaller groups, and the large ones matter first; or there are so many clusters that k-means
takes long, as here the time grows with the depth of the tree only.

Two pairs of pairs: the first split is at the widest gap, and four clusters are left with an inertia of 1/2 each:

>>> import numpy as np
>>> rows = np.array([[0.0], [1], [10], [11], [100], [101], [110], [111]])
>>> found = fit(BisectingKMeans(n_clusters=4), Data.of(Task.CLUSTERING, rows), Context.of(0))
>>> found.curves["inertia"]
[20202.0, 202.0, 102.0, 2.0]
>>> found.state.sizes.tolist()
[8, 4, 4, 2, 2, 2, 2]

References: Steinbach, Karypis & Kumar (2000), KDD Workshop on Text Mining; Savaresi & Boley (2004), Intell. Data Anal.
8:345; LION ch. 12.
"""

import heapq
import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Labels,
    Matrix,
    Output,
    Params,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.clustering.exchange import exchanged
from app.ml.numerics.clustering.lloyd import Run, lloyd
from app.ml.numerics.clustering.seeding import canonical_order, seeds
from app.ml.numerics.neighbours.distances import nearest_labels, norms
from app.ml.numerics.tensor_graphs.distance_tensors import nearest_place

CANDIDATES = 2
"""Rows drawn as the second centre of a split, of which the best is kept."""


class BisectingKMeans(Params):
    """Bisecting k-means clustering."""

    n_clusters: int = Field(8, ge=1, le=10_000, description="Number of clusters.")
    bisecting_strategy: Literal["biggest_inertia", "largest_cluster"] = Field(
        "biggest_inertia",
        description="Cluster that is split next: the one with the largest inertia, or with the most rows.",
    )
    max_depth: int | None = Field(
        None, ge=1, le=10_000, description="Maximum depth of the tree of splits; null: unlimited."
    )
    n_init: int = Field(10, ge=1, le=1000, description="Number of starts of each split, of which the best is kept.")
    max_iter: int = Field(300, ge=1, le=100_000, description="Maximum number of moves of the centres in each start.")


class State(NamedTuple):
    """The nodes of the tree, from the root on; a split makes the next two."""

    centres: Matrix
    """(m, d) means of the rows of each node."""
    children: Labels
    """(m,) the left one of the two nodes that it is split into; 0 of a cluster."""
    labels: Labels
    """(m,) number of each cluster, in the order of the nodes; -1 of a node that is split."""
    sizes: Labels
    """(m,) training rows."""
    inertias: Vector
    """(m,) their weighted squared distances to the centre, summed."""


def fit(params: BisectingKMeans, data: Data, context: Context) -> Fit[State]:
    order = canonical_order(data.x)
    x, weights = data.x[order], data.weights[order]
    nodes, children = [_root(x, weights)], dict[int, int]()
    curve, converged, queue = [nodes[0].inertia], True, [*_entries(params, nodes, 0)]
    while queue and len(curve) < params.n_clusters:
        _, parent = heapq.heappop(queue)
        run = _bisection(params, x[nodes[parent].rows], weights[nodes[parent].rows], context.rng)
        if len(run.centres) == 2:
            children[parent] = len(nodes)
            nodes += _halves(nodes[parent], run, weights)
            curve.append(max(0.0, curve[-1] - nodes[parent].inertia + nodes[-2].inertia + nodes[-1].inertia))
            converged = converged and run.converged
            for entry in _entries(params, nodes, len(nodes) - 2):
                heapq.heappush(queue, entry)
            context.progress(len(curve) / params.n_clusters, inertia=curve[-1])
    k = len(curve)
    warnings = [f"Only {k} clusters could be made by splits."] if k < params.n_clusters else []
    return Fit(_state(nodes, children), converged, k - 1, curves={"inertia": curve}, warnings=warnings)


class _Node(NamedTuple):
    rows: Labels
    centre: Vector
    inertia: float
    depth: int


def _root(x: Matrix, weights: Vector) -> _Node:
    centre: Vector = np.average(x, axis=0, weights=weights)
    return _Node(np.arange(len(x)), centre, float(weights @ norms(x - centre)), 0)


def _entries(params: BisectingKMeans, nodes: list[_Node], start: int) -> Iterator[tuple[float, int]]:
    """Nodes from `start` on that can be split, with a first number that is lower for those to split first."""
    for number, node in enumerate(nodes[start:], start):
        if node.inertia > 0 and (params.max_depth is None or node.depth < params.max_depth):
            yield -(node.inertia if params.bisecting_strategy == "biggest_inertia" else len(node.rows)), number


def _bisection(params: BisectingKMeans, x: Matrix, weights: Vector, rng: np.random.Generator) -> Run:
    """The best of several starts of 2-means; it has one centre if all rows are equal."""

    def start() -> Run:
        first = seeds(x, weights, 2, rng, candidates=CANDIDATES)
        return exchanged(x, weights, lloyd(x, weights, x[first], params.max_iter), params.max_iter)

    return min((start() for _ in range(params.n_init)), key=lambda run: run.inertia[-1])


def _halves(parent: _Node, run: Run, weights: Vector) -> Iterator[_Node]:
    costs = weights[parent.rows] * run.squares
    for label, centre in enumerate(run.centres):
        inside = run.labels == label
        yield _Node(parent.rows[inside], centre, float(costs[inside].sum()), parent.depth + 1)


def _state(nodes: list[_Node], children: dict[int, int]) -> State:
    left = np.array([children.get(number, 0) for number in range(len(nodes))])
    return State(
        np.array([node.centre for node in nodes]),
        left,
        np.where(left > 0, -1, np.cumsum(left == 0) - 1),
        np.array([len(node.rows) for node in nodes]),
        np.array([node.inertia for node in nodes]),
    )


def predict(params: BisectingKMeans, state: State, x: Matrix) -> Labels:
    row_labels = np.zeros(len(x), np.intp)
    waiting = [(0, np.arange(len(x)))]
    while waiting:
        node, rows = waiting.pop()
        if left := int(state.children[node]):
            nearer = nearest_labels(x[rows], state.centres[left : left + 2])
            waiting += [(left + side, rows[nearer == side]) for side in (0, 1)]
        else:
            row_labels[rows] = state.labels[node]
    return row_labels


def _leaves(params: BisectingKMeans, state: State) -> Matrix:
    """(k, d) centres of the clusters."""
    centres: Matrix = state.centres[state.labels >= 0]
    return centres


def distance(params: BisectingKMeans, state: State, x: Matrix) -> Vector:
    distances: Vector = np.sqrt(norms(x - _leaves(params, state)[predict(params, state, x)]))
    return distances


def grouped(params: BisectingKMeans, state: State, groups: int) -> Labels:
    """(k,) of each cluster the node above it after the first splits, numbered in their order."""
    above = np.zeros(len(state.centres), np.intp)
    split = np.flatnonzero(state.children)
    above[state.children[split]] = above[state.children[split] + 1] = split
    nodes = np.flatnonzero(state.labels >= 0)
    while (late := nodes > 2 * (groups - 1)).any():
        nodes = np.where(late, above[nodes], nodes)
    return np.unique(nodes, return_inverse=True)[1]


def summary(params: BisectingKMeans, state: State) -> JSON:
    """Centres are in prepared (scaled) columns. Nodes are in the order in which splits made them: the first m splits
    leave m + 1 clusters.
    """
    parents = {int(left) + side: node for node, left in enumerate(state.children) if left for side in (0, 1)}
    nodes = [
        {
            "node": node,
            "parent": parents.get(node),
            "cluster": None if state.children[node] else int(state.labels[node]),
            "size": int(state.sizes[node]),
            "inertia": float(state.inertias[node]),
            "centre": centre.tolist(),
        }
        for node, centre in enumerate(state.centres)
    ]
    return {
        "columns": every(state.centres.shape[1]),
        "nodes": nodes,
        "inertia": float(state.inertias[state.labels >= 0].sum()),
    }


def _seconds(params: BisectingKMeans, size: Size) -> float:
    """Each level of the tree bisects all rows."""
    levels = 2 + math.log2(params.n_clusters)
    return params.n_init * (levels * size.rows * (2e-6 + 5e-8 * size.columns) + 5e-4 * params.n_clusters)


def to_tensor(params: BisectingKMeans, state: State, x: Tensor) -> Tensor:
    labels_by_node = {node: x.repeated(np.array([float(label)])) for node, label in enumerate(state.labels.tolist())}
    for node, left in reversed([*enumerate(state.children.tolist())]):
        if left:
            is_right = nearest_place(state.centres[left : left + 2], x).to_numbers() > 0.0
            labels_by_node[node] = labels_by_node[left + 1].where(is_right, labels_by_node[left])
    return labels_by_node[0].to_integers()


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=BisectingKMeans,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=_seconds,
    outputs={
        "distance": Output("Euclidean distance to the centre of the cluster, in prepared (scaled) columns.", distance)
    },
    prototypes=_leaves,
    grouped=grouped,
    summary=summary,
    breaks={
        Symmetry.SCALE: "Euclidean distance gives a column the weight of its unit; scale the columns alike first.",
    },
)
