r"""k-means: k centres, each the mean of the rows nearest to it.

Minimises the inertia Σ wᵢ ‖xᵢ − c(xᵢ)‖², the squared distance of every row to its nearest centre, by Lloyd's two
steps in turn: assign each row to the nearest centre, move each centre to the mean of its rows. Neither step can raise
the inertia, so it ends, though in general not at the lowest there is: it runs from several starts and keeps the best.
A row equally near to two centres goes to the first of them. A centre left without rows takes over the row farthest
from its own centre; with fewer distinct rows than k there are as many clusters as distinct rows.
The order of the rows does not matter: they are sorted by value before anything is drawn.

In short: k centres are placed so that the squared distances of the rows to their nearest centre are small. A row
belongs to the nearest centre.

Use when: groups are round and of like spread in the scaled columns, and k is known or can be tried.

The rows {1, 2, 3, 4} from centres 2 and 4 end at inertia 2 though 1 is possible, because 3, equally near to both,
goes to the first:

>>> import numpy as np
>>> from app.ml.numerics.clustering.lloyd import lloyd
>>> rows = np.array([[1.0], [2.0], [3.0], [4.0]])
>>> lloyd(rows, np.ones(4), rows[[1, 3]], max_iter=10).inertia[-1]
2.0
>>> fit(KMeans(n_clusters=2), Data.of(Task.CLUSTERING, rows), Context.of(0)).curves["inertia"][-1]
1.0

References: Lloyd (1982), IEEE Trans. Inf. Theory 28:129; Arthur & Vassilvitskii (2007), SODA: 1027;
Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 22.2.
"""

import math
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
from app.ml.numerics.clustering.lloyd import Run, lloyd
from app.ml.numerics.clustering.seeding import canonical_order, seeds
from app.ml.numerics.clustering.voronoi import neighbours, walls
from app.ml.numerics.neighbours.distances import nearest, nearest_labels


class KMeans(Params):
    """k-means clustering."""

    n_clusters: int = Field(8, ge=1, le=10_000, description="Number of clusters.")
    init: Literal["greedy-k-means++", "k-means++", "random"] = Field(
        "greedy-k-means++",
        description="Starting rows: far from each other, the best of a few draws each (greedy) or of one; or any.",
    )
    n_init: int = Field(10, ge=1, le=1000, description="Number of starts, of which the best is kept.")
    max_iter: int = Field(300, ge=1, le=100_000, description="Maximum number of moves of the centres in each start.")


class State(NamedTuple):
    centres: Matrix
    """(k, d)"""
    sizes: Labels
    """(k,) training rows of each."""
    inertias: Vector
    """(k,) their weighted squared distances to the centre, summed."""


def fit(params: KMeans, data: Data, context: Context) -> Fit[State]:
    order = canonical_order(data.x)
    x, weights = data.x[order], data.weights[order]
    candidates = 2 + int(math.log(params.n_clusters)) if params.init.startswith("greedy") else 1

    def start() -> Run:
        first = seeds(x, weights, params.n_clusters, context.rng, spread=params.init != "random", candidates=candidates)
        return lloyd(x, weights, x[first], params.max_iter)

    best = start()
    for done in range(1, params.n_init):
        context.progress(done / params.n_init, inertia=best.inertia[-1])
        best = min(best, start(), key=lambda run: run.inertia[-1])
    return _fitted(params, best, weights)


def fit_from(params: KMeans, centres: Matrix, data: Data, _: Context) -> Fit[State]:
    order = canonical_order(data.x)
    weights = data.weights[order]
    return _fitted(params, lloyd(data.x[order], weights, centres, params.max_iter), weights)


def _fitted(params: KMeans, best: Run, weights: Vector) -> Fit[State]:
    k = len(best.centres)
    inertias = np.bincount(best.labels, weights * best.squares, k).astype(np.float64)
    state = State(best.centres, np.bincount(best.labels, minlength=k), inertias)
    warnings = [f"There are only {k} distinct rows, so there are {k} clusters."] if k < params.n_clusters else []
    curves = {"inertia": best.inertia}
    return Fit(state, best.converged, len(best.inertia) - 1, curves=curves, warnings=warnings)


def predict(params: KMeans, state: State, x: Matrix) -> Labels:
    return nearest_labels(x, state.centres)


def distance(params: KMeans, state: State, x: Matrix) -> Vector:
    return np.sqrt(nearest(x, state.centres)[1])


def objective(params: KMeans, state: State, data: Data) -> float:
    return float(data.weights @ nearest(data.x, state.centres)[1])


def summary(params: KMeans, state: State) -> JSON:
    """Centres are in prepared (scaled) columns. Quantisation error is the inertia, as a sum and per row (LION 12.7)."""
    inertia, rows = float(state.inertias.sum()), int(state.sizes.sum())
    result = {
        "clusters": [
            {"cluster": j, "size": int(state.sizes[j]), "inertia": float(state.inertias[j]), "centre": centre.tolist()}
            for j, centre in enumerate(state.centres)
        ],
        "inertia": inertia,
        "mean_inertia": inertia / rows,
        "neighbours": neighbours(state.centres).tolist(),
    }
    return result | _voronoi(state.centres) if state.centres.shape[1] == 2 else result


def _voronoi(centres: Matrix) -> dict[str, JSON]:
    return {"voronoi": [wall._asdict() for wall in walls(centres)]}


def _seconds(params: KMeans, size: Size) -> float:
    """More rows take more rounds, about as their square root."""
    each = 1e-6 + 8e-9 * size.columns
    return params.n_clusters * params.n_init * each * size.rows * math.sqrt(size.rows / 5000)


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=KMeans,
    state=State,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    objective=objective,
    outputs={
        "distance": Output("Euclidean distance to the nearest centre, in the prepared (scaled) columns.", distance)
    },
    prototypes=lambda _, state: state.centres,
    fit_from=fit_from,
    summary=summary,
    breaks={
        Symmetry.SCALE: "Euclidean distance gives a column the weight of its unit; scale the columns alike first.",
    },
)
