r"""Soft k-means: every row belongs to all centres, to near ones more than to far ones.

The membership of a row x of the centre c is exp(−β‖x − c‖²) / Σ exp(−β‖x − c‖²), with the stiffness β. In batches, each
centre moves to the mean of all rows, weighted by their memberships; this never raises the free energy

    F = −(1/β) Σᵢ wᵢ log( (1/k) Σ_c exp(−β‖xᵢ − c‖²) )

and is expectation maximisation of a mixture of k equally likely normal densities of variance 1/(2β). Online, the rows
come one by one in random order, and each draws every centre by `learning_rate` times its membership; the rate falls
with every pass. The stiffer, the nearer to k-means, whose inertia is the limit of F. Where β is small, centres meet;
below the reciprocal of twice the largest variance all are at the mean of the rows. Predictions are the nearest centres.

In short: k-means without hard borders. Each row has a membership of every cluster, and draws all centres by it.

Use when: groups overlap, and it matters how clearly a row belongs to one. The stiffness sets how soft the borders are.

Two rows at 0 and 1 keep two centres only where β is above 1 / (2 · 1/4) = 2; then the centres ½ ± m are the fixed
points m = ½ tanh(βm):

>>> import numpy as np
>>> rows = Data.of(Task.CLUSTERING, np.array([[0.0], [1.0]]))
>>> for stiffness in 1.9, 3.0:
...     found = fit(SoftKMeans(n_clusters=2, stiffness=stiffness, tol=1e-9, max_iter=10_000), rows, Context.of(0))
...     half = float(np.ptp(found.state.centres)) / 2
...     print(round(half, 5), round(np.tanh(stiffness * half) / 2, 5))
0.0 0.0
0.42928 0.42928

References: Rose, Gurewitz & Fox (1990), Pattern Recogn. Lett. 11:589; MacKay (2003), Information Theory, Inference, and
Learning Algorithms, chs. 20, 22; Varadhan & Roland (2008), Scand. J. Stat. 35:335; LION ch. 12.
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
from app.ml.numerics.clustering import soft_assignment
from app.ml.numerics.clustering.seeding import canonical_order, seeds
from app.ml.numerics.clustering.soft_assignment import Pace, Problem, Run, batch, free_energy, online
from app.ml.numerics.neighbours.distances import nearest, nearest_labels
from app.ml.numerics.tensor_graphs.distance_tensors import nearest_place


class SoftKMeans(Params):
    """Soft k-means clustering."""

    n_clusters: int = Field(8, ge=1, le=10_000, description="Number of clusters.")
    stiffness: float = Field(
        1.0,
        ge=1e-9,
        le=1e12,
        description="Factor of the squared distances, in prepared (scaled) columns, by which memberships fall: "
        "exp(−stiffness · distance²). The larger, the harder the borders between clusters.",
    )
    solver: Literal["batch", "online"] = Field(
        "batch",
        description="`batch`: centres move once for all rows; `online`: after each row, in random order.",
    )
    learning_rate: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="Factor by which the move of a centre towards a row is multiplied, divided by the number of the "
        "pass. Unused by `batch`.",
    )
    epochs: int = Field(
        20, ge=1, le=100_000, description="Maximum number of passes over the rows by `online`. Unused by `batch`."
    )
    n_init: int = Field(3, ge=1, le=1000, description="Number of starts, of which the best is kept.")
    max_iter: int = Field(
        1000, ge=1, le=100_000, description="Maximum number of moves of the centres in each start of `batch`."
    )
    tol: float = Field(
        1e-7,
        gt=0,
        le=1,
        description="Stop when no centre moves by more than this share of the root mean square distance of the rows "
        "from their mean.",
    )


class State(NamedTuple):
    centres: Matrix
    """(k, d)"""
    sizes: Labels
    """(k,) training rows nearest to each."""
    masses: Vector
    """(k,) sum of the weighted memberships of the training rows."""


def fit(params: SoftKMeans, data: Data, context: Context) -> Fit[State]:
    order = canonical_order(data.x)
    x, weights = data.x[order], data.weights[order]
    rngs = context.rng.spawn(params.n_init)
    best: Run | None = None
    for done, run in enumerate(context.each(Run, [partial(_start, params, x, weights, rng) for rng in rngs]), 1):
        best = run if best is None or run.objective[-1] < best.objective[-1] else best
        context.progress(done / params.n_init, objective=best.objective[-1])
    assert best is not None  # noqa: S101 - there is at least one start
    k = len(best.centres)
    sizes = np.bincount(nearest_labels(x, best.centres), minlength=k)
    state = State(best.centres, sizes, soft_assignment.masses(x, weights, best.centres, params.stiffness))
    warnings = [f"There are only {k} distinct rows, so there are {k} clusters."] if k < params.n_clusters else []
    curves = {"objective": best.objective}
    return Fit(state, best.converged, len(best.objective) - 1, curves=curves, warnings=warnings)


def _start(params: SoftKMeans, x: Matrix, weights: Vector, rng: np.random.Generator) -> Run:
    first = x[seeds(x, weights, params.n_clusters, rng, candidates=2 + int(math.log(params.n_clusters)))]
    mean = np.average(x, axis=0, weights=weights)
    tol = params.tol * math.sqrt(np.average(((x - mean) ** 2).sum(axis=1), weights=weights))
    problem = Problem(x, weights, params.stiffness, tol)
    if params.solver == "online":
        return online(problem, first, Pace(params.learning_rate, params.epochs), rng)
    return batch(problem, first, params.max_iter)


def predict(params: SoftKMeans, state: State, x: Matrix) -> Labels:
    return nearest_labels(x, state.centres)


def memberships(params: SoftKMeans, state: State, x: Matrix) -> Matrix:
    """(n, k) shares of each row that belong to each centre."""
    return soft_assignment.memberships(x, state.centres, params.stiffness)[0]


def distance(params: SoftKMeans, state: State, x: Matrix) -> Vector:
    return np.sqrt(nearest(x, state.centres)[1])


def objective(params: SoftKMeans, state: State, data: Data) -> float:
    return free_energy(data.x, data.weights, state.centres, params.stiffness)


def summary(params: SoftKMeans, state: State) -> JSON:
    """Centres are in prepared (scaled) columns. `mass` is the weight of the rows, shared out by their memberships."""
    return {
        "columns": every(state.centres.shape[1]),
        "clusters": [
            {
                "cluster": j,
                "size": int(state.sizes[j]),
                "mass": float(state.masses[j]),
                "centre": centre.tolist(),
            }
            for j, centre in enumerate(state.centres)
        ],
    }


def _seconds(params: SoftKMeans, size: Size) -> float:
    passes = params.epochs if params.solver == "online" else min(params.max_iter, 4 * math.sqrt(size.rows))
    return params.n_init * (7e-3 + params.n_clusters * passes * size.rows * (3e-8 + 1e-9 * size.columns))


def to_tensor(params: SoftKMeans, state: State, x: Tensor) -> Tensor:
    return nearest_place(state.centres, x)


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=SoftKMeans,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=_seconds,
    objective=objective,
    outputs={
        "memberships": Output(
            "Responsibility of each cluster for the row, in their order from 0: they add up to 1.",
            memberships,
            lambda _, state: len(state.centres),
        ),
        "distance": Output("Euclidean distance to the nearest centre, in the prepared (scaled) columns.", distance),
    },
    prototypes=lambda _, state: state.centres,
    summary=summary,
    breaks={
        Symmetry.SCALE: "Euclidean distance gives a column the weight of its unit; scale the columns alike first.",
    },
)
