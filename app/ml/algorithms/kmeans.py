r"""k-means: k centres, each the mean of the rows nearest to it.

Minimises the inertia Σ wᵢ ‖xᵢ − c(xᵢ)‖², the squared distance of every row to its nearest centre, by Lloyd's two
steps in turn: assign each row to the nearest centre, move each centre to the mean of its rows. Neither step can raise
the inertia, so it ends, though in general not at the lowest there is: it runs from several starts and keeps the best.
A row equally near to two centres goes to the first of them. A centre left without rows takes over the row farthest
from its own centre; with fewer distinct rows than k there are as many clusters as distinct rows. In small tables, rows
then change clusters one by one where that lowers the inertia (Hartigan's method), as Lloyd's steps can end where a row
between two centres is better off with the other.
Instead of rows, the first centres may be the means of a random partition, or come by splitting: the mean of all rows is
split into two, and each centre again after it has settled. With `shift`, the centre that serves least is moved to where
the inertia is largest, as long as that lowers the whole. Starts run at once where processors are free.
The order of the rows does not matter: they are sorted by value before anything is drawn.
Of many rows, the centres first settle among every eighth of them, and then go on with all.
Without `n_clusters` the number of 2 to 10 with the largest index of Calinski and Harabasz is chosen by the rows.
Of a table that memory does not hold, the starts are made of a random sample; the best of them goes on with all rows,
which are read once for each move of the centres.

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
Linde, Buzo & Gray (1980), IEEE Trans. Commun. 28:84; Fritzke (1997), Neural Process. Lett. 5:35;
Hartigan & Wong (1979), Appl. Stat. 28:100; Caliński & Harabasz (1974), Commun. Stat. 3:1;
Hamerly (2010), SIAM Data Mining: 130; Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, sec. 22.2.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    ColumnUnits,
    Context,
    Data,
    Fit,
    Labels,
    Matrix,
    Output,
    Params,
    Size,
    StreamedRows,
    Symmetry,
    Task,
    Vector,
    WarmStart,
    silent,
)
from app.ml.contract.named_numbers import every
from app.ml.numerics.clustering.cluster_count import MAX_CLUSTERS, choose_count
from app.ml.numerics.clustering.distortion import distortion
from app.ml.numerics.clustering.exchange import exchanged
from app.ml.numerics.clustering.lloyd import Run, lloyd, means
from app.ml.numerics.clustering.seeding import canonical_order, seeds
from app.ml.numerics.clustering.splitting import shifted, split_centres
from app.ml.numerics.clustering.streamed_lloyd import streamed_distortion, streamed_lloyd
from app.ml.numerics.clustering.voronoi import neighbours, walls
from app.ml.numerics.neighbours.distances import nearest, nearest_labels
from app.ml.numerics.tensor_graphs.distance_tensors import nearest_centre

Init: TypeAlias = Literal["greedy-k-means++", "k-means++", "random", "random-partition", "split"]


MANY_ROWS, EVERY = 2**15, 8
"""Rows from which on centres first settle among every so manieth: the way there costs so much less."""


class KMeans(Params):
    """k-means clustering."""

    n_clusters: int | None = Field(
        None, ge=1, le=10_000, description="Number of clusters. Null: the one of 2 to 10 with the largest index of "
        "Calinski and Harabasz, the scatter between the clusters over that within them.",
    )  # fmt: skip
    init: Init = Field(
        "greedy-k-means++",
        description="Starting centres. `greedy-k-means++`: rows far from each other, the best of a few draws each; "
        "`k-means++`: the same with one draw each; `random`: any rows; `random-partition`: the means of a random "
        "partition of the rows; `split`: the mean of all rows, split into two and refined until there are enough.",
    )
    shift: bool = Field(
        False,
        description="True: at the end of each start the centre whose removal would cost least moves into the cluster "
        "of the largest inertia, as long as this lowers the inertia.",
    )
    n_init: int = Field(10, ge=1, le=1000, description="Number of starts, of which the best is kept.")
    max_iter: int = Field(300, ge=1, le=100_000, description="Maximum number of moves of the centres in each start.")


CHOOSING_STARTS, MAX_CHOOSING_ROWS = 3, 20_000
"""Starts of each number of clusters that is compared with others, and rows that are compared."""


class State(NamedTuple):
    centres: Matrix
    """(k, d)"""
    sizes: Labels
    """(k,) training rows of each."""
    inertias: Vector
    """(k,) their weighted squared distances to the centre, summed."""
    pairwise: Vector
    """(k,) their squared distances to each other times both weights, summed over pairs."""
    radii: Vector
    """(k,) distance of the farthest of them to the centre."""
    diameters: Vector
    """(k,) distance of the farthest two; NaN where too many pairs must be compared."""


class Start(NamedTuple):
    """The end of one start."""

    centres: Matrix
    inertia: list[float]
    converged: bool


def fit(params: KMeans, data: Data, context: Context) -> Fit[State]:
    order = canonical_order(data.x)
    x, weights = data.x[order], data.weights[order]
    settled, chosen = _settled(params, x, weights, context)
    fitted = _fitted(settled, _best_start(settled, x, weights, context), x, weights)
    return replace(fitted, warnings=[*chosen, *fitted.warnings])


def _settled(params: KMeans, x: Matrix, weights: Vector, context: Context) -> tuple[KMeans, list[str]]:
    """The parameters with a number of clusters, and a sentence on its choice, if it was chosen."""
    if params.n_clusters is not None:
        return params, []
    step, quiet = -(-len(x) // MAX_CHOOSING_ROWS), replace(context, progress=silent)
    some, some_weights = np.ascontiguousarray(x[::step]), weights[::step].copy()
    tried = params.model_copy(update={"n_init": min(params.n_init, CHOOSING_STARTS)})

    def fit_centres(k: int) -> Matrix:
        return _best_start(tried.model_copy(update={"n_clusters": k}), some, some_weights, quiet).centres

    k = choose_count(some, some_weights, fit_centres)
    reason = f"of 2 to {MAX_CLUSTERS} it has the largest index of Calinski and Harabasz"
    return params.model_copy(update={"n_clusters": k}), [f"n_clusters was not given and {k} was chosen: {reason}."]


def fit_blocks(params: KMeans, rows: StreamedRows, context: Context) -> Fit[State]:
    """The starts are made of the sample of the rows; the best of them goes on with all rows."""
    chosen: list[str] = []
    if rows.start is not None:
        centres = rows.start.centres
    else:
        order = canonical_order(rows.sample.x)
        x, weights = rows.sample.x[order], rows.sample.weights[order]
        params, chosen = _settled(params, x, weights, context)
        centres = _best_start(params, x, weights, replace(context, progress=silent)).centres
    run = streamed_lloyd(rows, centres, params.max_iter, context.progress)
    k, state = len(run.centres), State(run.centres, *streamed_distortion(rows, run.centres))
    few = f"The rows that the starts were drawn from have only {k} distinct rows, so there are {k} clusters."
    warnings = [*chosen, *([few] if k < (params.n_clusters or k) else [])]
    return Fit(state, run.converged, len(run.inertia) - 1, curves={"inertia": run.inertia}, warnings=warnings)


def _best_start(params: KMeans, x: Matrix, weights: Vector, context: Context) -> Start:
    rngs = context.rng.spawn(params.n_init)
    runs = context.each(Start, [partial(_start, params, x, weights, rng) for rng in rngs])
    best = next(runs)
    context.progress(1 / params.n_init, inertia=best.inertia[-1])
    for done, run in enumerate(runs, 2):
        best = min(best, run, key=lambda run: run.inertia[-1])
        context.progress(done / params.n_init, inertia=best.inertia[-1])
    return best


def fit_from(params: KMeans, state: State, data: Data, _: Context) -> Fit[State]:
    order = canonical_order(data.x)
    x, weights = data.x[order], data.weights[order]
    return _fitted(params, _local(params, x, weights, state.centres), x, weights)


def moved(state: State, units: ColumnUnits) -> State:
    return state._replace(centres=units.values(state.centres))


def _fitted(params: KMeans, best: Start | Run, x: Matrix, weights: Vector) -> Fit[State]:
    k = len(best.centres)
    state = State(best.centres, *distortion(x, weights, nearest_labels(x, best.centres), best.centres))
    warnings = [f"There are only {k} distinct rows, so there are {k} clusters."] if k < (params.n_clusters or k) else []
    return Fit(state, best.converged, len(best.inertia) - 1, curves={"inertia": best.inertia}, warnings=warnings)


def _start(params: KMeans, x: Matrix, weights: Vector, rng: np.random.Generator) -> Start:
    first = _first(params, x, weights, rng)
    if len(x) >= MANY_ROWS:
        few = lloyd(np.ascontiguousarray(x[::EVERY]), weights[::EVERY].copy(), first, params.max_iter).centres
        first = few if len(few) == len(first) else first
    run = _local(params, x, weights, first)
    if params.shift:
        run = shifted(x, weights, run, params.max_iter, rng)
    return Start(run.centres, run.inertia, run.converged)


def _local(params: KMeans, x: Matrix, weights: Vector, first: Matrix) -> Run:
    """A local minimum from the first centres."""
    return exchanged(x, weights, lloyd(x, weights, first, params.max_iter), params.max_iter)


def _first(params: KMeans, x: Matrix, weights: Vector, rng: np.random.Generator) -> Matrix:
    k = params.n_clusters or MAX_CLUSTERS
    if params.init == "split":
        return split_centres(x, weights, k, rng, params.max_iter)
    if params.init == "random-partition":
        k = min(k, len(x))
        return means(x, weights, rng.permutation(len(x)) % k, k)
    return x[seeds(x, weights, k, rng, spread=params.init != "random", candidates=_candidates(params))]


def _candidates(params: KMeans) -> int:
    return 2 + int(math.log(params.n_clusters or MAX_CLUSTERS)) if params.init.startswith("greedy") else 1


def predict(params: KMeans, state: State, x: Matrix) -> Labels:
    return nearest_labels(x, state.centres)


def distance(params: KMeans, state: State, x: Matrix) -> Vector:
    return np.sqrt(nearest(x, state.centres)[1])


def objective(params: KMeans, state: State, data: Data) -> float:
    return float(data.weights @ nearest(data.x, state.centres)[1])


def summary(params: KMeans, state: State) -> JSON:
    """Centres are in prepared (scaled) columns. Quantisation error is the inertia, as a sum and per row (LION 12.7).

    `pairwise` sums the squared distances of all pairs of rows of a cluster; `diameter` is the distance of the farthest
    two, null where it takes too many comparisons. Beside the clusters stand the sums over them.
    """
    inertia, rows = float(state.inertias.sum()), int(state.sizes.sum())
    result = {
        "columns": every(state.centres.shape[1]),
        "clusters": [_cluster(state, j) for j in range(len(state.centres))],
        "inertia": inertia,
        "mean_inertia": inertia / rows,
        "pairwise": float(state.pairwise.sum()),
        "diameter": _known(state.diameters.sum()),
        "neighbours": neighbours(state.centres).tolist(),
    }
    return result | _voronoi(state.centres) if state.centres.shape[1] == 2 else result


def _cluster(state: State, j: int) -> dict[str, JSON]:
    return {
        "cluster": j,
        "size": int(state.sizes[j]),
        "inertia": float(state.inertias[j]),
        "pairwise": float(state.pairwise[j]),
        "radius": float(state.radii[j]),
        "diameter": _known(state.diameters[j]),
        "centre": state.centres[j].tolist(),
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _voronoi(centres: Matrix) -> dict[str, JSON]:
    return {"voronoi": [wall._asdict() for wall in walls(centres)]}


def _seconds(params: KMeans, size: Size) -> float:
    """Rows are compared with all centres in the first moves, and with few in the later ones."""
    moves = min(params.max_iter, 2 * math.sqrt(size.rows)) / (1 if size.rows < MANY_ROWS else 6)
    compared = (params.n_clusters or MAX_CLUSTERS) * (1e-7 + 5e-9 * size.columns)
    start = 2e-3 + size.rows * (compared + moves * (2e-8 + 3e-9 * min(size.columns, 50)))
    if params.n_clusters is not None:
        return params.n_init * start
    choosing = CHOOSING_STARTS * (MAX_CLUSTERS - 1) * min(1.0, MAX_CHOOSING_ROWS / max(size.rows, 1))
    return (params.n_init + choosing) * start


def _memory(params: KMeans, size: Size) -> float:
    """Rows in order and every eighth again; of each row bounds, and distances to the rows that are drawn at a time."""
    return 8 * (1 + 1 / EVERY) * size.cells + 8 * (10 + _candidates(params)) * size.rows


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=KMeans,
    state=State,
    fit=fit,
    fit_blocks=fit_blocks,
    predict=predict,
    graph=nearest_centre,
    seconds=_seconds,
    memory=_memory,
    objective=objective,
    outputs={
        "distance": Output("Euclidean distance to the nearest centre, in the prepared (scaled) columns.", distance)
    },
    prototypes=lambda _, state: state.centres,
    warm_start=WarmStart(fit_from, moved, equal=("n_clusters",), values="centres"),
    summary=summary,
    breaks={Symmetry.SCALE: "Euclidean distance gives a column the weight of its unit; scale the columns alike first."},
)
