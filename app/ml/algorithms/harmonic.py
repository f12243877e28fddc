r"""Harmonic classification: labels spread over a similarity graph from labelled to unlabelled rows (Gaussian fields).

Rows with and without a label are nodes of a graph whose edges weigh how alike two rows are. The probabilities f of a
labelled row are fixed, 1 for its class; of any other row they are the weighted mean over its neighbours, which makes
Σ wᵢⱼ‖fᵢ − fⱼ‖² over edges least. So f is the probability that a random walk over the edges reaches a row of the class
first, or the voltage between labelled rows at 1 and 0 volt where edges conduct.
Where classes should have certain shares of the unlabelled rows, `priors` multiplies the probabilities of each class
by the share it should have over the mean that it has (class mass normalisation).
A row from which no edges lead to a labelled row has no class: it is predicted as null, with equal probabilities of all
classes, and is `determined: false`. Of classes that are exactly equally probable otherwise, the first is predicted.
The graph joins near rows as its parameters set; or it is given: a square of similarities, or edges of pairs. Row
weights multiply the weights of edges. A training row has its own probabilities. A new row has the weighted mean over
the training rows to which its edges lead: it is joined to training rows as the graph joins rows, or has its own
similarities to the rows of a square, or those of the nearest training row beside given edges. Where the table has no
columns but names and labels beside given edges, rows are predicted by name, and labels that are held out
stay in the graph as rows without a label.

In short: a row has the classes of the rows that it is joined to, and these have those of theirs, up to rows with a
label. Rows without a label show where one class ends and the next begins.

Use when: few rows have a label and many have none, and rows of one class lie close together in any shape, or a
network of relations joins them.

A path of five rows, with labels at its ends:

>>> import numpy as np
>>> from app.ml.contract.data import Unlabelled
>>> path = np.arange(5.0)[:, None]
>>> rows = Data.of(Task.CLASSIFICATION, path[[0, 4]], [1, 0], unlabelled=Unlabelled(path[1:4]))
>>> params = Harmonic(graph="epsilon", radius=1)
>>> predict(params, fit(params, rows, Context.of(0)).state, path)[:, 1].round(9).tolist()
[1.0, 0.75, 0.5, 0.25, 0.0]

References: Zhu, Ghahramani & Lafferty (2003), Semi-supervised learning using Gaussian fields and harmonic functions,
ICML: 912; Doyle & Snell (1984), Random Walks and Electric Networks; Battiti & Brunato, The LION Way, ch. 17.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Algorithm,
    Context,
    Data,
    Fit,
    Form,
    Matrix,
    Meaning,
    Output,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.named_numbers import every
from app.ml.numerics.class_probabilities.class_priors import Share, prior_faults
from app.ml.numerics.graphs import similarity_graph
from app.ml.numerics.graphs.graph_rows import GraphRows, averages, own_places, rows_of
from app.ml.numerics.graphs.harmonic_values import harmonic, mean_shares
from app.ml.numerics.graphs.labelled_nodes import LabelledNodes, labelled_nodes
from app.ml.numerics.graphs.similarity_graph import GraphParams, made

TIED = 1e-12
"""Difference of probabilities that counts as rounding."""
LISTED = 1000
"""Unlabelled rows in the report."""


class Harmonic(GraphParams):
    """Harmonic classification over a similarity graph."""

    priors: Literal["none", "learned", "uniform"] | list[Share] = Field(
        "none",
        description="Prior probabilities of the classes, which their probabilities over the rows without a label are "
        "multiplied up to. none: the probabilities of the graph as they are; learned: the shares of the labelled rows; "
        "uniform: all alike; or a list of numbers from 0 to 1, one for each class, in the order of the classes.",
    )


class State(NamedTuple):
    nodes: GraphRows
    values: Matrix
    """(n, k) probabilities of the training rows, before `factors`."""
    determined: NDArray[np.bool_]
    """(n,) rows with such probabilities."""
    labelled: NDArray[np.bool_]
    """(n,)"""
    factors: Vector
    """(k,) by which the probabilities of a class are multiplied."""
    edges: int
    """Edges of the graph."""
    energy: Vector
    """(1,) sum over edges of the weight times the squared difference of probabilities."""


def fit(params: Harmonic, data: Data, context: Context) -> Fit[State]:
    nodes = labelled_nodes(data)
    graph = made(params, nodes.data)
    context.progress(0.3)
    solved = harmonic(graph, nodes.given, nodes.labelled)
    free = ~nodes.labelled if (solved.determined & ~nodes.labelled).any() else nodes.labelled
    shares = mean_shares(solved, graph.masses, free)
    learned = mean_shares(solved, graph.masses, nodes.labelled)
    state = State(
        nodes=rows_of(params, nodes.data, graph),
        values=nodes.same_for_equal(solved.values),
        determined=solved.determined,
        labelled=nodes.labelled,
        factors=_factors(params, shares, learned),
        edges=int(np.count_nonzero(graph.weights) if isinstance(graph.weights, np.ndarray) else graph.weights.nnz) // 2,
        energy=graph.in_unit(np.array([solved.energy])),
    )
    return Fit(state, solved.converged, 1, warnings=[*_warnings(nodes, state)])


def _factors(params: Harmonic, shares: Vector, learned: Vector) -> Vector:
    """(k,) 1 on average over the classes that have a share."""
    if params.priors == "none":
        return np.ones_like(shares)
    wanted = {"learned": learned, "uniform": np.ones_like(shares)}
    priors = wanted[params.priors] if isinstance(params.priors, str) else np.array(params.priors)
    factors = np.where(shares > 0, priors / np.where(shares > 0, shares, 1.0), 0.0)
    return np.asarray(factors / factors.max()) if factors.any() else np.ones_like(shares)


def _warnings(nodes: LabelledNodes, state: State) -> Iterator[str]:
    lost = int((~state.determined).sum())
    if nodes.labelled.all():
        yield "No row lacks the target: only new rows have the classes of their neighbours."
    elif lost:
        yield (
            f"From {lost} rows no edges lead to a labelled row: they have no class. More neighbours, or a larger "
            f"radius or width, join them."
        )


def _shares(params: Harmonic, state: State, x: Matrix) -> tuple[Matrix, NDArray[np.bool_]]:
    """Probabilities (q, k), and the rows (q,) that have any; the others have zeros."""
    places = own_places(state.nodes, x)
    values, determined = state.values[np.maximum(places, 0)], state.determined[np.maximum(places, 0)]
    new = np.flatnonzero(places < 0)
    if new.size:
        columns = np.column_stack([state.values, state.determined])
        means, joined = averages(params, state.nodes, x[new], columns)
        values[new], determined[new] = means[:, :-1], (joined > 0) & (means[:, -1] > 0)
    return _weighted(state, values, determined)


def _weighted(state: State, values: Matrix, determined: NDArray[np.bool_]) -> tuple[Matrix, NDArray[np.bool_]]:
    """Probabilities with priors, and the rows that have any; the others have zeros."""
    values = values * state.factors
    total = values.sum(axis=1)
    determined = determined & (total > 0)
    return np.where(determined[:, None], values / np.where(total > 0, total, 1.0)[:, None], 0.0), determined


def predict(params: Harmonic, state: State, x: Matrix) -> Matrix:
    return _with_ties(*_shares(params, state, x))


def _with_ties(values: Matrix, there: NDArray[np.bool_]) -> Matrix:
    """Classes equal but for rounding are equal, and the first of them leads by the last bit: of rows without a class
    all are exactly equal.
    """
    k = values.shape[1]
    tied = there & (np.ptp(values, axis=1) <= TIED) if k > 1 else np.zeros_like(there)
    values[tied | ~there] = 1 / k
    values[tied, 0] = np.nextafter(1 / k, 1)
    return values


def accepted_rows(_: Harmonic, probabilities: Matrix) -> NDArray[np.bool_]:
    """Rows with a class: the others have exactly equal probabilities."""
    return np.asarray((np.ptp(probabilities, axis=1) > 0) | (probabilities.shape[1] == 1))


def harmonic_values(params: Harmonic, state: State, x: Matrix) -> Matrix:
    return _shares(params, state._replace(factors=np.ones_like(state.factors)), x)[0]


def determined(params: Harmonic, state: State, x: Matrix) -> NDArray[np.bool_]:
    return _shares(params, state, x)[1]


def summary(_: Harmonic, state: State) -> JSON:
    """`energy` is the sum over edges of the weight times the squared difference of probabilities. `labels` are of rows
    without a label, the first of them.
    """
    order = np.argsort(state.nodes.numbers, kind="stable")
    free = order[~state.labelled[order]]
    shares, there = _weighted(state, state.values[free[:LISTED]], state.determined[free[:LISTED]])
    rows = zip(state.nodes.numbers[free].tolist(), _with_ties(shares, there), there, strict=False)
    return {
        "labelled_rows": int(state.labelled.sum()),
        "unlabelled_rows": free.size,
        "undetermined_rows": int((~state.determined).sum()),
        "edges": state.edges,
        "energy": float(state.energy[0]),
        "classes": every(state.factors.size),
        "factors": state.factors.tolist(),
        "labels": [_label(row, shares, sure=sure) for row, shares, sure in rows],
    }


def _label(row: int, shares: Vector, *, sure: bool) -> dict[str, JSON]:
    return {"row": row, "class": int(shares.argmax()), "probability": float(shares.max())} if sure else {"row": row}


def _seconds(params: Harmonic, size: Size) -> float:
    edges = size.rows if params.graph == "full" else 2 * params.n_neighbors
    return 5e-3 + size.rows * (edges * 5e-8 + 1e-6 * max(1, size.classes)) + 2e-8 * size.cells


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=Harmonic,
    state=State,
    fit=fit,
    predict=predict,
    known=accepted_rows,
    accepts={Accepts.UNLABELLED},
    faults=lambda params, inputs: prior_faults(params.priors, inputs.size.classes),
    memory=similarity_graph.memory,
    seconds=_seconds,
    relations={form: {Meaning.SIMILARITY} for form in (Form.SQUARE, Form.EDGES)},
    edges_and_target=True,
    outputs={
        "determined": Output("True if edges lead from the row to a labelled row.", determined),
        "harmonic_values": Output(
            "Probabilities of the classes before priors, zeros where no edges lead to a labelled row.",
            harmonic_values,
            lambda _, state: state.values.shape[1],
        ),
    },
    summary=summary,
    breaks={
        Symmetry.SCALE: "A distance gives a column the weight of its unit; scale the columns alike first.",
        Symmetry.WEIGHTS: "Neighbours are counted by rows, so that copies of a row take the place of others.",
    },
)
