"""Clusters about medoids, as a model: the parameters, the state, the fit and the predictions of all such objectives."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import JSON, Context, Data, Fit, Labels, Matrix, Params, Size, Vector
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.clustering.linkage import unit
from app.ml.numerics.clustering.medoids import KEPT, Block, Dissimilarities, Run, between_points, of_square, search
from app.ml.numerics.clustering.seeding import canonical_order
from app.ml.numerics.neighbours import named_metrics
from app.ml.numerics.neighbours.metric_space import MetricSpace
from app.ml.numerics.neighbours.named_metrics import Metric, NamedMetric
from app.ml.numerics.neighbours.nearest import neighbours
from app.ml.numerics.tensor_graphs.neighbour_tensors import nearest_by_metric

MOST_SHOWN = 1000
"""Clusters in the summary."""


class MedoidParams(Params):
    """Clusters about medoids."""

    n_clusters: int = Field(8, ge=1, le=10_000, description="Number of clusters.")
    metric: Metric = Field(
        "euclidean", description=f"{named_metrics.DESCRIPTION} Unused where dissimilarities are given."
    )
    p: float = Field(3.0, ge=1, le=100, description="Power of the differences, for the metric minkowski only.")
    n_init: int = Field(5, ge=1, le=1000, description="Number of starts, of which the best is kept.")
    max_iter: int = Field(
        100, ge=1, le=100_000, description="Maximum number of passes over all rows, as new medoids, in each start."
    )


class State(NamedTuple):
    rows: Matrix
    """(k, d) medoids; (k, 0) where dissimilarities were given."""
    places: Labels
    """(k,) their places among the training rows."""
    numbers: Labels
    """(k,) their numbers in the dataset, from 0, else among the training rows."""
    sizes: Labels
    """(k,) training rows of each cluster."""
    losses: Vector
    """(k,) dissimilarities of these to the medoid, in the power of the objective, weighted and summed."""
    items: NDArray[np.str_] | None = None
    """(k,) names of the medoids; None: they have none."""
    space: MetricSpace | None = None
    """Space of a metric that depends on the training rows."""


class _Rows(NamedTuple):
    """Different training rows, in the order in which they are tried as medoids."""

    places: Labels
    """(m,) of the first of equal rows, among the training rows."""
    ranks: Labels
    """(m,) their ranks in an order that does not depend on that of the table."""
    weights: Vector
    """(m,) sum of the weights of the equal ones."""


def fit_medoids(params: MedoidParams, data: Data, context: Context, power: float) -> Fit[State]:
    """power: of the dissimilarities whose weighted sum is minimal."""
    metric = NamedMetric.of(params.metric, params.p, None)
    if data.square is None:
        metric = NamedMetric.learned(params.metric, params.p, data.x, data.weights)
    with np.errstate(over="ignore", invalid="ignore"):  # a loss beyond the largest number is cut off there
        rows = _different(data, context.rng)
        dissimilarities = Dissimilarities(_block(data, metric, rows, power), rows.weights)
        best = _best(params, dissimilarities, context)
        medoids = best.medoids[np.argsort(rows.ranks[best.medoids])]
        state = _state(data, metric, rows.places[medoids], power)
    k = len(state.places)
    warnings = [f"There are only {k} distinct rows, so there are {k} clusters."] if k < params.n_clusters else []
    return Fit(state, best.converged, len(best.loss) - 1, curves={"loss": best.loss}, warnings=warnings)


def _different(data: Data, rng: np.random.Generator) -> _Rows:
    """Shuffled: where rows of one cluster follow each other, swaps would undo each other."""
    order, new = np.arange(len(data.x)), np.ones(len(data.x), bool)
    if data.square is None:
        order = canonical_order(data.x)
        new[1:] = (data.x[order[1:]] != data.x[order[:-1]]).any(axis=1)
    first = np.flatnonzero(new)
    shuffled = rng.permutation(first.size)
    return _Rows(order[first][shuffled], shuffled, np.add.reduceat(data.weights[order], first)[shuffled])


def _block(data: Data, metric: NamedMetric, rows: _Rows, power: float) -> Block:
    """Dissimilarities in units in which they neither overflow nor vanish."""
    if data.square is not None:
        return of_square(data.square, rows.places, unit(data.square), power)
    points = metric.points(data.x[rows.places])
    scaled = np.ascontiguousarray(points / unit(points))
    return between_points(scaled, metric.p, power * (2 if metric.name == "cosine" else 1))


def _best(params: MedoidParams, dissimilarities: Dissimilarities, context: Context) -> Run:
    best: Run | None = None
    for start in range(params.n_init):
        run = search(dissimilarities, params.n_clusters, context.rng, params.max_iter)
        best = run if best is None or run.loss[-1] < best.loss[-1] else best
        context.progress((start + 1) / params.n_init, loss=best.loss[-1])
    assert best is not None  # noqa: S101 - there is at least one start
    return best


def _state(data: Data, metric: NamedMetric, places: Labels, power: float) -> State:
    square = data.square is not None
    numbers = np.arange(len(data.x)) if data.numbers is None else data.numbers
    state = State(
        rows=np.ascontiguousarray(data.x[places][:, : 0 if square else None]),
        places=places,
        numbers=numbers[places],
        sizes=np.zeros(0, np.intp),
        losses=np.zeros(0),
        items=None if data.items is None else data.items[places],
        space=metric.space,
    )
    labels, distances = _nearest(metric, state, data.x)
    k = len(places)
    losses = np.minimum(np.bincount(labels, data.weights * distances**power, k), np.finfo(float).max)
    return state._replace(sizes=np.bincount(labels, minlength=k), losses=losses)


def _nearest(metric: NamedMetric, state: State, x: Matrix) -> tuple[Labels, Vector]:
    """The nearest medoid of each row, the first of equally near ones, and the dissimilarity to it: both (n,)."""
    if not state.rows.shape[1]:
        columns = x[:, state.places]
        return columns.argmin(axis=1), columns.min(axis=1)
    places, distances = neighbours(metric.points(x), metric.points(state.rows), 1, p=metric.p)
    return places[:, 0], metric.distances(distances[:, 0])


def _metric(params: MedoidParams, state: State) -> NamedMetric:
    return NamedMetric.of(params.metric, params.p, state.space)


def predict(params: MedoidParams, state: State, x: Matrix) -> Labels:
    return _nearest(_metric(params, state), state, x)[0]


def to_tensor(params: MedoidParams, state: State, x: Tensor) -> Tensor:
    if not state.rows.shape[1]:
        return x[state.places].first_smallest()
    metric = _metric(params, state)
    return nearest_by_metric(metric, metric.points(state.rows), x)


def distance(params: MedoidParams, state: State, x: Matrix) -> Vector:
    return _nearest(_metric(params, state), state, x)[1]


def prototypes(_: MedoidParams, state: State) -> Matrix | None:
    return state.rows if state.rows.shape[1] else None


def summary(_: MedoidParams, state: State) -> JSON:
    """Medoids by the numbers and names of their rows; their values are in prepared (scaled) columns."""
    clusters = [_card(state, j) for j in range(min(len(state.sizes), MOST_SHOWN))]
    total, rows = float(state.losses.sum()), int(state.sizes.sum())
    columns = {"columns": every(state.rows.shape[1])} if state.rows.shape[1] else {}
    return {**columns, "clusters": clusters, "loss": total, "mean_loss": total / rows}


def _card(state: State, j: int) -> dict[str, JSON]:
    size, loss = int(state.sizes[j]), float(state.losses[j])
    named = {} if state.items is None else {"item": str(state.items[j])}
    values = {"medoid": state.rows[j].tolist()} if state.rows.shape[1] else {}
    return {"cluster": j, "row": int(state.numbers[j]), **named, "size": size, "loss": loss, **values}


def memory(params: MedoidParams, size: Size) -> float:
    """Dissimilarities of all pairs where they are kept, and those of medoids to all rows."""
    pairs = size.rows**2
    return 8 * ((pairs if pairs <= KEPT else 0) + min(params.n_clusters, size.rows) * size.rows)


def seconds(params: MedoidParams, size: Size) -> float:
    """About four passes a start."""
    pairs = size.rows**2
    seconds_of_distance = 1.2e-9 + (3e-8 if params.metric == "minkowski" else 1e-10) * size.columns
    each = 1.5e-9 + (0 if pairs <= KEPT else seconds_of_distance)
    return pairs * (seconds_of_distance + 4 * params.n_init * each) + 1e-6 * size.rows
