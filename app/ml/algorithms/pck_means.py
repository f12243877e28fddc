r"""k-means with pairs: rows that must be in one cluster, and rows that cannot.

The objective adds to the squared distances of the rows from their centres a penalty for every violated pair:

    E = Σᵢ wᵢ‖xᵢ − c(lᵢ)‖² + Σ_must a·vᵢⱼ [lᵢ ≠ lⱼ] + Σ_cannot b·vᵢⱼ [lᵢ = lⱼ]

with the weights v of the pairs, a = `must_link_weight` and b = `cannot_link_weight`. The first centres are the means of
the largest groups of rows that must be together, far from each other, and then rows as k-means++ draws them. In turn,
every such group gets the label that costs least while all others keep theirs, so does every row, and centres move to
the means of their rows: E never rises. Without pairs it is k-means. Whether pairs that cannot be together can all be
kept apart is the colouring of a graph, which no fast method always solves: more starts help. A new row belongs
to the nearest centre.

In short: k-means that heeds what is known of some pairs of rows. The larger the weights, the fewer pairs are violated.

Use when: for some rows it is known that they belong together, or do not, and the columns alone would group them
otherwise.

Two rows of a rectangle that 2-means would part must be together:

>>> import numpy as np
>>> from app.ml.contract.relations import Edges, Meaning, Relations
>>> corners = np.array([[0.0, 0], [0, 1], [3, 0], [3, 1]])
>>> across = Relations(Meaning.CONSTRAINT, edges=Edges(np.array([0, 1]), np.array([2, 3]), np.array([100.0, 100.0])))
>>> data = Data.of(Task.CLUSTERING, corners, relations=across)
>>> state = fit(PCKMeans(n_clusters=2), data, Context.of(0)).state
>>> predict(PCKMeans(), state, corners).tolist()[0] == 0, state.centres.tolist()
(True, [[1.5, 0.0], [1.5, 1.0]])

References: Basu, Banerjee & Mooney (2004), Active semi-supervision for pairwise constrained clustering, SDM: 333;
LION ch. 17.
"""

from typing import NamedTuple

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
    Output,
    Params,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.named_numbers import every
from app.ml.contract.relations import Edges
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.clustering.pair_constraints import (
    Pairs,
    Problem,
    Run,
    constrained_lloyd,
    first_centres,
    given_edges,
)
from app.ml.numerics.clustering.pair_report import PairReport
from app.ml.numerics.clustering.seeding import in_canonical_order
from app.ml.numerics.neighbours.distances import nearest, nearest_labels
from app.ml.numerics.tensor_graphs.distance_tensors import nearest_place


class PCKMeans(Params):
    """k-means with pairs of rows that must be together or cannot."""

    n_clusters: int = Field(8, ge=1, le=10_000, description="Number of clusters.")
    must_link_weight: float = Field(
        1.0,
        ge=0,
        le=1e12,
        description="Penalty of a pair that must be together and is not, times the weight of the pair, beside "
        "squared distances in prepared (scaled) columns. 0: such pairs do not count.",
    )
    cannot_link_weight: float = Field(
        1.0,
        ge=0,
        le=1e12,
        description="Penalty of a pair that cannot be together and is, times the weight of the pair, beside "
        "squared distances in prepared (scaled) columns. 0: such pairs do not count.",
    )
    n_init: int = Field(10, ge=1, le=1000, description="Number of starts, of which the best is kept.")
    max_iter: int = Field(300, ge=1, le=100_000, description="Maximum number of moves of the centres in each start.")


class State(NamedTuple):
    centres: Matrix
    """(k, d)"""
    sizes: Labels
    """(k,) training rows of each."""
    pairs: PairReport


def fit(params: PCKMeans, data: Data, context: Context) -> Fit[State]:
    data = in_canonical_order(data)
    edges = given_edges(data)
    pairs = Pairs.of(edges._replace(values=_penalties(params, edges.values)), len(data.x))
    problem = Problem(data.x, data.weights, pairs)
    best: Run | None = None
    for start in range(params.n_init):
        first = first_centres(problem, params.n_clusters, context.rng)
        run = constrained_lloyd(problem, first, params.max_iter, context.rng)
        best = run if best is None or run.objective[-1] < best.objective[-1] else best
        context.progress((start + 1) / params.n_init, objective=best.objective[-1])
    assert best is not None  # noqa: S101 - there is at least one start
    state = _state(data, edges, best)
    return Fit(
        state,
        best.converged,
        len(best.objective) - 1,
        curves={"objective": best.objective},
        warnings=_warnings(params, state),
    )


def _penalties(params: PCKMeans, signed: Vector) -> Vector:
    return signed * np.where(signed > 0, params.must_link_weight, params.cannot_link_weight)


def _state(data: Data, edges: Edges, run: Run) -> State:
    used, labels = np.unique(run.labels, return_inverse=True)
    return State(run.centres[used], np.bincount(labels), PairReport.of(data, edges, labels))


def _warnings(params: PCKMeans, state: State) -> list[str]:
    n_clusters, wanted = len(state.centres), params.n_clusters
    few = [f"{n_clusters} of {wanted} clusters have rows."] if n_clusters < wanted else []
    return [*few, *state.pairs.warnings]


def predict(params: PCKMeans, state: State, x: Matrix) -> Labels:
    return nearest_labels(x, state.centres)


def distance(params: PCKMeans, state: State, x: Matrix) -> Vector:
    return np.sqrt(nearest(x, state.centres)[1])


def summary(params: PCKMeans, state: State) -> JSON:
    """Counts of pairs, and the violated ones by numbers and names of rows. Centres are in prepared (scaled) columns."""
    return {
        "sizes": state.sizes.tolist(),
        "columns": every(state.centres.shape[1]),
        "centres": state.centres.tolist(),
        **state.pairs.summary,
    }


def _seconds(params: PCKMeans, size: Size) -> float:
    each = 1e-6 + 8e-9 * size.columns
    return params.n_clusters * params.n_init * each * size.rows * 20 / 8


def to_tensor(params: PCKMeans, state: State, x: Tensor) -> Tensor:
    return nearest_place(state.centres, x)


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=PCKMeans,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=_seconds,
    relations={Form.PAIRS: {Meaning.CONSTRAINT}},
    outputs={
        "distance": Output("Euclidean distance to the nearest centre, in the prepared (scaled) columns.", distance)
    },
    prototypes=lambda _, state: state.centres,
    summary=summary,
    breaks={
        Symmetry.SCALE: "Euclidean distance gives a column the weight of its unit; scale the columns alike first.",
    },
)
