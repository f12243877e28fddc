r"""Spectral layout: coordinates of rows from eigenvectors of a similarity graph, so that joined rows are near (Hall).

One coordinate y of all rows makes yᵀLy = Σ wᵢⱼ(yᵢ − yⱼ)² over edges least, with the Laplacian L = D − W of the graph.
With unit length and mean 0, which rule out that all rows are at one point, the first coordinate is the eigenvector
of the smallest eigenvalue after that of the constant vector (the Fiedler vector), and the next ones follow. With the
normalised Laplacian rows of many edges count more in length and mean (Laplacian eigenmaps). Row weights multiply
the weights of edges and count likewise. Each coordinate is turned so that its largest value is positive.
The graph joins near rows as its parameters set; or it is given: a square of similarities, or edges of pairs, which may
be all that is known. The rows of each of several components that no edge joins would be best off at one point.
A training row has its own coordinates. A new row is at the weighted mean of the training rows to which its edges lead,
where yᵀLy is least with all others fixed: it is joined to training rows as the graph joins rows, or has its own
similarities to the rows of a square; beside given edges, and where it has no edge, it is at the nearest training row.

In short: rows that are joined are drawn near each other. The picture follows the graph, not the distances.

Use when: a network, or rows along a curve or surface, should be drawn or handed to another method in few coordinates.

A path of ten rows is drawn in its order, and its eigenvalues are known, 2 − 2cos(πi / 10):

>>> import numpy as np
>>> path = np.arange(10.0)[:, None]
>>> params = SpectralLayout(n_components=2, graph="epsilon", radius=1)
>>> state = fit(params, Data.of(Task.PROJECTION, path), Context.of(0)).state
>>> steps = np.diff(predict(params, state, path)[:, 0])
>>> bool((steps > 0).all() or (steps < 0).all())
True
>>> state.eigenvalues.round(6).tolist(), (2 - 2 * np.cos(np.pi * np.array([1, 2]) / 10)).round(6).tolist()
([0.097887, 0.381966], [0.097887, 0.381966])

References: Hall (1970), An r-dimensional quadratic placement algorithm, Manage. Sci. 17:219; Koren (2005), Drawing
graphs by eigenvectors, Comput. Math. Appl. 49:1867; Belkin & Niyogi (2003), Neural Comput. 15:1373.
"""

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
    Matrix,
    Meaning,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.numerics.graphs import similarity_graph
from app.ml.numerics.graphs.graph_rows import GraphRows, averages, nearest_places, own_places, rows_of
from app.ml.numerics.graphs.laplacian import smallest
from app.ml.numerics.graphs.node_values import Drawn, drawn, numbered, same_for_equal
from app.ml.numerics.graphs.similarity_graph import Graph, GraphParams, made
from app.ml.numerics.graphs.spectrum_view import SpectrumView
from app.ml.numerics.linear_algebra.principal_directions import signed


class SpectralLayout(GraphParams):
    """Coordinates from eigenvectors of a similarity graph."""

    n_components: int = Field(2, ge=1, le=1000, description="Number of components, the coordinates of a row.")
    laplacian: Literal["normalised", "unnormalised"] = Field(
        "unnormalised",
        description="Laplacian of the graph: `unnormalised` gives all rows the same part in the length of a "
        "coordinate; `normalised` gives them one by the sum of the weights of their edges.",
    )


class State(NamedTuple):
    nodes: GraphRows
    coordinates: Matrix
    """(n, p) of the training rows."""
    eigenvalues: Vector
    """(q,) of the coordinates, at most p: of fewer rows the last coordinates are 0."""
    components: int
    """Components of the graph."""


def fit(params: SpectralLayout, data: Data, context: Context) -> Fit[State]:
    data = numbered(data)
    graph = made(params, data)
    context.progress(0.3)
    spectrum = smallest(graph, params.n_components + 1, normalised=params.laplacian == "normalised")
    drawing = drawn(spectrum, params.n_components)
    state = State(
        nodes=rows_of(params, data, graph),
        coordinates=same_for_equal(data, _coordinates(params, drawing), graph.masses),
        eigenvalues=_eigenvalues(params, graph, drawing.values),
        components=spectrum.components,
    )
    return Fit(state, iterations=1, warnings=_warnings(params, state))


def _coordinates(params: SpectralLayout, drawing: Drawn) -> Matrix:
    """(n, p), with zeros where there are fewer eigenvectors."""
    coordinates = np.zeros((len(drawing.coordinates), params.n_components))
    if drawing.values.size:
        coordinates[:, : drawing.values.size] = signed(drawing.coordinates.T).T
    return coordinates


def _eigenvalues(params: SpectralLayout, graph: Graph, values: Vector) -> Vector:
    return graph.in_unit(values) if params.laplacian == "unnormalised" else values


def _warnings(params: SpectralLayout, state: State) -> list[str]:
    q, warnings = state.eigenvalues.size, list[str]()
    if q < params.n_components:
        warnings.append(f"There are only {q} eigenvectors, not {params.n_components}: the other coordinates are 0.")
    if state.components > 1:
        warnings.append(
            f"The graph has {state.components} components, which the first coordinates part: rows of one component "
            f"have one point there. More neighbours, or a larger radius or width, join them."
        )
    return warnings


def predict(params: SpectralLayout, state: State, x: Matrix) -> Matrix:
    places = own_places(state.nodes, x)
    coordinates: Matrix = state.coordinates[np.maximum(places, 0)]
    new = np.flatnonzero(places < 0)
    if new.size:
        means, joined = averages(params, state.nodes, x[new], state.coordinates)
        nearest = state.coordinates[nearest_places(state.nodes, x[new])]
        coordinates[new] = np.where(joined[:, None] > 0, means, nearest)
    return coordinates


def summary(_: SpectralLayout, state: State) -> JSON:
    """`eigenvalues` of the coordinates: the sum over edges of the weight times the squared difference along each."""
    return {"eigenvalues": state.eigenvalues.tolist(), "components": state.components}


def spectrum(_: SpectralLayout, state: State) -> SpectrumView:
    nodes = state.nodes
    values = np.concatenate([[0.0], state.eigenvalues])
    return SpectrumView(values, state.coordinates, nodes.numbers, nodes.items, state.components)


def _seconds(params: SpectralLayout, size: Size) -> float:
    joined = size.rows * 1e-7 if params.graph == "full" else params.n_neighbors * 4e-6
    return 5e-3 + size.rows * (joined + 2e-6 * params.n_components) + 2e-8 * size.cells


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    params=SpectralLayout,
    state=State,
    fit=fit,
    predict=predict,
    memory=similarity_graph.memory,
    seconds=_seconds,
    relations={form: {Meaning.SIMILARITY} for form in (Form.SQUARE, Form.EDGES)},
    edges_alone=True,
    summary=summary,
    queries={"spectrum": spectrum},
    breaks={
        Symmetry.SCALE: "A distance gives a column the weight of its unit; scale the columns alike first.",
        Symmetry.WEIGHTS: "Neighbours are counted by rows, so that copies of a row take the place of others.",
    },
)
