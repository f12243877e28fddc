r"""Spectral clustering: the rows are nodes of a similarity graph, which is cut where few edges cross.

Of a partition into k clusters, RatioCut adds the weights of the edges that leave each cluster over the number of its
rows, and the normalised cut over the sum of their degrees. The least of either is hard to find. With the Laplacian
L = D − W of the graph, RatioCut is the trace of HᵀLH, where the orthonormal columns of H indicate the clusters; if any
orthonormal columns are allowed, the least trace is the sum of the k smallest eigenvalues, which no RatioCut is below.
The eigenvectors are values of the rows, and k-means groups the rows by them. The normalised Laplacian does the same for
the normalised cut.
The graph joins near rows as its parameters set; or it is given: a square of similarities, or edges of pairs that
are alike, which may be all that is known. Row weights multiply the weights of edges. With more components of the graph
than clusters, the largest components are clusters, and the others together are the last one.
A training row has its own cluster. A new row gets the cluster to which its edges weigh most: it is joined to training
rows as the graph joins rows, or has its own similarities to the rows of a square, or is joined to the nearest
training row beside given edges. Where it has no edge, the nearest training row decides.
The eigengap is the largest step between two consecutive eigenvalues, and suggests as many clusters as stand before it.
Its ratio to the second largest step shows how clear that is: near 1 another number is as plausible. A search for the
number of clusters by `stability` compares fits of halves of the rows instead.

In short: similar rows are joined by edges, and the graph is cut into clusters where few edges cross. Clusters may have
any shape.

Use when: clusters are not round, such as rings or long rows, or relations are all that is known. For round clusters
`kmeans` is faster.

Two rings, of which 2-means would take halves:

>>> import numpy as np
>>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
>>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
>>> rings = Data.of(Task.CLUSTERING, np.concatenate([ring, 4 * ring]))
>>> fitted = fit(Spectral(n_clusters=2, graph="full", width=0.5), rings, Context.of(0)).state
>>> np.bincount(fitted.labels).tolist(), predict(Spectral(), fitted, ring).tolist() == [0] * 60
([60, 60], True)

References: von Luxburg (2007), A tutorial on spectral clustering, Stat. Comput. 17:395; Shi & Malik (2000), IEEE Trans.
Pattern Anal. 22:888; Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 22.3.
"""

import math
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Form,
    Labels,
    Matrix,
    Meaning,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.numerics.clustering.exchange import exchanged
from app.ml.numerics.clustering.lloyd import Run, lloyd
from app.ml.numerics.clustering.seeding import canonical_order, seeds
from app.ml.numerics.graphs import similarity_graph
from app.ml.numerics.graphs.graph_blocks import edge_blocks, made_again
from app.ml.numerics.graphs.graph_cuts import Cuts, cuts, trace
from app.ml.numerics.graphs.graph_rows import GraphRows, averages, nearest_places, own_places, rows_of
from app.ml.numerics.graphs.kept_graph import KeptGraph, keep
from app.ml.numerics.graphs.laplacian import Spectrum, smallest
from app.ml.numerics.graphs.node_values import by_first_row, numbered, partition_coordinates, same_for_equal
from app.ml.numerics.graphs.partitioned_graph import PartitionedGraph
from app.ml.numerics.graphs.similarity_graph import Graph, GraphParams, made
from app.ml.numerics.graphs.spectrum_view import SpectrumView, eigengap, eigengap_ratio, widest_step

MIN_EIGENVALUES = 12
"""Eigenvalues that are computed at least, for the eigengap."""
MOST_SIZES = 1000
"""Clusters in the summary."""


class Spectral(GraphParams):
    """Spectral clustering."""

    n_clusters: int = Field(8, ge=1, le=10_000, description="Number of clusters.")
    laplacian: Literal["normalised", "unnormalised"] = Field(
        "normalised",
        description="Laplacian of the graph: `normalised` relaxes the normalised cut, in which clusters count by the "
        "sum of their degrees; `unnormalised` relaxes RatioCut, in which they count by their number of rows.",
    )
    n_init: int = Field(10, ge=1, le=1000, description="Number of starts of k-means, of which the best is kept.")
    max_iter: int = Field(300, ge=1, le=100_000, description="Maximum number of moves of the centres in each start.")


class State(NamedTuple):
    nodes: GraphRows
    labels: Labels
    """(n,) clusters of the training rows."""
    coordinates: Matrix
    """(n, k) values of the training rows by eigenvectors."""
    eigenvalues: Vector
    """(m,) smallest ones, ascending."""
    components: int
    """Components of the graph."""
    cuts: Cuts
    trace: Vector
    """(1,) trace of HᵀLH."""
    graph: KeptGraph


class Solved(NamedTuple):
    graph: Graph
    spectrum: Spectrum
    coordinates: Matrix
    """(n, k)"""


def fit(params: Spectral, data: Data, context: Context) -> Fit[State]:
    data = numbered(data)
    solved = _solved(params, data)
    context.progress(0.6)
    run = _grouped(params, solved, context)
    state = _state(params, data, solved, by_first_row(run.labels))
    curves, warnings = {"inertia": run.inertia}, _warnings(params, state)
    return Fit(state, run.converged, len(run.inertia) - 1, curves=curves, warnings=warnings)


def _solved(params: Spectral, data: Data) -> Solved:
    graph, k = made(params, data), min(params.n_clusters, len(data.x))
    spectrum = smallest(graph, max(MIN_EIGENVALUES, k + 1), normalised=params.laplacian == "normalised")
    return Solved(graph, spectrum, same_for_equal(data, partition_coordinates(spectrum, k), graph.masses))


def _grouped(params: Spectral, solved: Solved, context: Context) -> Run:
    """Clusters by k-means, in the order of the rows."""
    order, k = canonical_order(solved.coordinates), solved.coordinates.shape[1]
    x, weights = np.ascontiguousarray(solved.coordinates[order]), solved.graph.masses[order]
    best: Run | None = None
    for start, rng in enumerate(context.rng.spawn(params.n_init), 1):
        first = x[seeds(x, weights, k, rng, candidates=2 + int(math.log(k)))]
        run = exchanged(x, weights, lloyd(x, weights, first, params.max_iter), params.max_iter)
        best = run if best is None or run.inertia[-1] < best.inertia[-1] else best
        context.progress(0.6 + 0.4 * start / params.n_init, inertia=best.inertia[-1])
    assert best is not None  # noqa: S101 - there is at least one start
    labels = np.empty_like(best.labels)
    labels[order] = best.labels
    return best._replace(labels=labels)


def _state(params: Spectral, data: Data, solved: Solved, labels: Labels) -> State:
    graph, spectrum = solved.graph, solved.spectrum
    return State(
        nodes=rows_of(params, data, graph),
        labels=labels,
        coordinates=solved.coordinates,
        eigenvalues=graph.in_unit(spectrum.values) if params.laplacian == "unnormalised" else spectrum.values,
        components=spectrum.components,
        cuts=cuts(graph, labels),
        trace=np.array([trace(graph, labels)]),
        graph=keep(graph),
    )


def _warnings(params: Spectral, state: State) -> list[str]:
    k = int(state.labels.max()) + 1
    few = [f"There are only {k} distinct rows, so there are {k} clusters."] if k < params.n_clusters else []
    if state.components <= params.n_clusters:
        return few
    more = (
        f"The graph has {state.components} components, more than clusters: the largest ones are clusters, and the "
        f"others together are one. More neighbours, or a larger radius or width, join them."
    )
    return [*few, more]


def predict(params: Spectral, state: State, x: Matrix) -> Labels:
    places = own_places(state.nodes, x)
    labels: Labels = state.labels[np.maximum(places, 0)]
    new = np.flatnonzero(places < 0)
    if new.size:
        votes = np.eye(int(state.labels.max()) + 1)[state.labels]
        shares, joined = averages(params, state.nodes, x[new], votes)
        nearest = state.labels[nearest_places(state.nodes, x[new])]
        labels[new] = np.where(joined > 0, shares.argmax(axis=1), nearest)
    return labels


def summary(params: Spectral, state: State) -> JSON:
    """Cuts add up the weights of edges: `cut` counts each edge between two clusters twice. `trace_residual`: difference
    of RatioCut and the trace of HᵀLH, which are equal but for rounding. `suggested_clusters`: eigenvalues before the
    largest step between two of them, the `eigengap`; `eigengap_ratio` is that step over the second largest.
    """
    k = len(state.cuts.leaving)
    return {
        "clusters": k,
        "sizes": np.bincount(state.labels, minlength=k)[:MOST_SIZES].tolist(),
        "cut": state.cuts.cut,
        "ratio_cut": state.cuts.ratio_cut,
        "normalised_cut": state.cuts.normalised_cut,
        "trace_residual": abs(float(state.trace[0]) - state.cuts.ratio_cut),
        "eigenvalues": state.eigenvalues[:MOST_SIZES].tolist(),
        "eigengap": eigengap(state.eigenvalues),
        "eigengap_ratio": eigengap_ratio(state.eigenvalues),
        "suggested_clusters": widest_step(state.eigenvalues),
        "components": state.components,
        "edges": state.graph.edges,
    }


def spectrum(params: Spectral, state: State) -> SpectrumView:
    nodes = state.nodes
    return SpectrumView(state.eigenvalues, state.coordinates, nodes.numbers, nodes.items, state.components)


def partitioned(params: Spectral, state: State) -> PartitionedGraph:
    nodes = state.nodes
    again = partial(edge_blocks, params, nodes) if made_again(params, nodes) else None
    return PartitionedGraph(state.graph, state.labels, state.eigenvalues, nodes.numbers, nodes.items, again)


def _seconds(params: Spectral, size: Size) -> float:
    edges = size.rows if params.graph == "full" else 2 * params.n_neighbors
    solved = size.rows * (edges * 4e-7 + 4e-6 * params.n_clusters)
    return 5e-3 + solved + params.n_init * (1e-3 + 1e-7 * size.rows * params.n_clusters) + 2e-8 * size.cells


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=Spectral,
    state=State,
    fit=fit,
    predict=predict,
    memory=similarity_graph.memory,
    seconds=_seconds,
    relations={form: {Meaning.SIMILARITY} for form in (Form.SQUARE, Form.EDGES)},
    edges_alone=True,
    summary=summary,
    queries={"spectrum": spectrum, "cut_value": partitioned},
    breaks={
        Symmetry.SCALE: "A distance gives a column the weight of its unit; scale the columns alike first.",
        Symmetry.WEIGHTS: "Neighbours are counted by rows, so that copies of a row take the place of others.",
    },
)
