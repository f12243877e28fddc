r"""Metric pairwise-constrained k-means: k-means with pairs, in which every cluster learns a metric of its own.

Rows are counted in units of the mean variance of the columns. With the metric A of cluster l, a row costs

    (1 − s)‖x − c‖²_A + s·tr A − log det A,   s = `shrinkage`,

and a violated pair adds (1 − s) times its weight times, if it must be together, the mean of its squared distances in
the metrics of its two clusters, so that far apart costs more; if it cannot be, what its squared distance lacks to the
reach of the metric, so that near costs more. The reach is four times the squared distance of the farthest row from the
mean of all: no pair exceeds it. (The paper takes the two farthest rows, whose search needs all pairs.)

The first centres are as in `pck_means`, with the plain metric. In turn, every group that must be together, and then
every row, gets the label that costs least; centres move to the means of their rows; and the metric of a cluster becomes
the inverse of the covariance of its rows and violated pairs, shrunk towards the unit matrix. That closed form takes
the farthest row for given. Where another row becomes the farthest the objective could rise, in the paper it need not
fall; here the step is then shortened, and the objective never rises. Violated pairs are possible, and listed; more
starts help. A new row belongs to the cluster in which it costs least. `shrinkage` 1 is `pck_means`, its penalties by
distance.

In short: k-means that heeds what is known of some pairs of rows, and learns from these and from the rows which
directions matter in each cluster.

Use when: for some rows it is known that they belong together, or do not, and clusters are long, flat or of different
size. For round clusters `pck_means` has fewer numbers to learn.

Two long clusters side by side, which 2-means cuts across:

>>> from app.ml.contract.relations import Edges, Meaning, Relations
>>> rng = np.random.default_rng(0)
>>> x = np.column_stack([rng.uniform(-4, 4, 80), np.repeat([0.0, 2.0], 40) + 0.2 * rng.normal(size=80)])
>>> first = np.concatenate([np.arange(8), np.arange(40, 48)])
>>> along = Edges(first, first + 1, np.ones(16))
>>> data = Data.of(Task.CLUSTERING, x, relations=Relations(Meaning.CONSTRAINT, edges=along))
>>> learned = fit(MPCKMeans(n_clusters=2), data, Context.of(0)).state
>>> labels = predict(MPCKMeans(), learned, x)
>>> np.bincount(labels[:40] == labels[0]).tolist(), np.bincount(labels[40:] == labels[0]).tolist()
([0, 40], [40])

References: Bilenko, Basu & Mooney (2004), Integrating constraints and metric learning in semi-supervised clustering,
ICML: 81; Battiti & Brunato, The LION Way, ch. 17.
"""

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
from app.ml.numerics.clustering.metric_pairs import MetricProblem, MetricRun, cheapest_labels, metric_lloyd
from app.ml.numerics.clustering.metrics_by_cluster import ClusterMetrics
from app.ml.numerics.clustering.pair_constraints import Pairs, Problem, first_centres, given_edges
from app.ml.numerics.clustering.pair_report import PairReport
from app.ml.numerics.clustering.seeding import in_canonical_order
from app.ml.numerics.metric_learning.row_frame import RowFrame


class MPCKMeans(Params):
    """k-means with pairs and a metric for each cluster."""

    n_clusters: int = Field(8, ge=1, le=1000, description="Number of clusters.")
    metric_form: Literal["full", "diagonal"] = Field(
        "full",
        description="Form of the learned metric of each cluster: `full` turns and weighs the columns, `diagonal` has "
        "one weight for each.",
    )
    must_link_weight: float = Field(
        1.0,
        ge=0,
        le=1e12,
        description="Penalty of a pair that must be together and is not, times the weight of the pair and its squared "
        "distance in the metrics of its clusters. 0: such pairs do not count.",
    )
    cannot_link_weight: float = Field(
        1.0,
        ge=0,
        le=1e12,
        description="Penalty of a pair that cannot be together and is, times the weight of the pair and what its "
        "squared distance lacks to the largest in the metric of its cluster. 0: such pairs do not count.",
    )
    shrinkage: float = Field(
        0.1,
        ge=1e-6,
        le=1,
        description="Share of the mean variance in the covariance that a metric follows: near 0 it follows its rows "
        "and pairs alone, 1 leaves every metric the plain one.",
    )
    n_init: int = Field(5, ge=1, le=1000, description="Number of starts, of which the best is kept.")
    max_iter: int = Field(100, ge=1, le=100_000, description="Maximum number of moves of the centres in each start.")


class State(NamedTuple):
    centres: Matrix
    """(k, d)"""
    factors: Matrix
    """(k, d, d) F of the metric A = FFᵀ of each cluster, for rows in the unit; (k, d, 1), its diagonal."""
    unit: float
    """Factor of differences of rows before the metric."""
    shrinkage: float
    sizes: Labels
    """(k,) training rows of each."""
    pairs: PairReport


def fit(params: MPCKMeans, data: Data, context: Context) -> Fit[State]:
    data = in_canonical_order(data)
    edges, frame = given_edges(data), RowFrame.of(data.x, data.weights, diagonal=True)
    pairs = Pairs.of(edges._replace(values=_weights(params, edges.values)), len(data.x))
    best = _best(params, MetricProblem(frame.rows, data.weights, pairs), context)
    used, labels = np.unique(best.labels, return_inverse=True)
    unit = float(frame.axes[0, 0])
    state = State(
        centres=frame.mean + best.centres[used] / unit,
        factors=best.metrics.factors[used],
        unit=unit,
        shrinkage=params.shrinkage,
        sizes=np.bincount(labels),
        pairs=PairReport.of(data, edges, labels),
    )
    return Fit(
        state,
        best.converged,
        len(best.objective) - 1,
        curves={"objective": best.objective},
        warnings=list(_warnings(params, state)),
    )


def _best(params: MPCKMeans, problem: MetricProblem, context: Context) -> MetricRun:
    """The start with the least objective; the first of equals."""
    d, runs, diagonal = problem.x.shape[1], list[MetricRun](), params.metric_form == "diagonal"
    for start in range(params.n_init):
        first = first_centres(Problem(*problem.parts), params.n_clusters, context.rng)
        plain = ClusterMetrics.plain(len(first), d, params.shrinkage, diagonal=diagonal)
        run = metric_lloyd(problem, first, plain, params.max_iter, context.rng)
        runs = [min([*runs, run], key=lambda run: run.objective[-1])]
        context.progress((start + 1) / params.n_init, objective=runs[0].objective[-1])
    return runs[0]


def _weights(params: MPCKMeans, signed: Vector) -> Vector:
    return signed * np.where(signed > 0, params.must_link_weight, params.cannot_link_weight)


def _warnings(params: MPCKMeans, state: State) -> Iterator[str]:
    n_clusters = len(state.centres)
    if n_clusters < params.n_clusters:
        yield f"{n_clusters} of {params.n_clusters} clusters have rows."
    yield from state.pairs.warnings


def _metrics(state: State) -> ClusterMetrics:
    return ClusterMetrics(state.factors, state.shrinkage)


def predict(params: MPCKMeans, state: State, x: Matrix) -> Labels:
    return cheapest_labels(*_in_units(state, x), _metrics(state))


def _in_units(state: State, x: Matrix) -> tuple[Matrix, Matrix]:
    """Rows and centres about the first centre."""
    origin = state.centres[0]
    return (x - origin) * state.unit, (state.centres - origin) * state.unit


def distance(params: MPCKMeans, state: State, x: Matrix) -> Vector:
    rows, centres = _in_units(state, x)
    metrics = _metrics(state)
    labels, squares = cheapest_labels(rows, centres, metrics), np.empty(len(x))
    for h, centre in enumerate(centres):
        squares[labels == h] = metrics.squares(rows[labels == h] - centre, h)
    return np.sqrt(squares)


def summary(params: MPCKMeans, state: State) -> JSON:
    """Centres, the weight of each column alone in the metric of each cluster, and the pairs."""
    weights = np.square(state.factors).sum(axis=2) * state.unit**2
    return {
        "sizes": state.sizes.tolist(),
        "columns": every(state.centres.shape[1]),
        "centres": state.centres.tolist(),
        "column_weights": weights.tolist(),
        **state.pairs.summary,
    }


def _seconds(params: MPCKMeans, size: Size) -> float:
    each = size.rows * (8e-7 + (params.metric_form == "full") * 4e-11 * size.columns**2)
    return params.n_init * (8e-3 + params.n_clusters * 15 * each)


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=MPCKMeans,
    state=State,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    memory=lambda params, size: 8.0 * params.n_clusters * size.columns ** (1 + (params.metric_form == "full")),
    relations={Form.PAIRS: {Meaning.CONSTRAINT}},
    outputs={
        "distance": Output(
            "Distance to the centre of the cluster in its own metric, in units of the mean variance of the prepared "
            "(scaled) columns.",
            distance,
        )
    },
    prototypes=lambda _, state: state.centres,
    summary=summary,
    breaks={Symmetry.SCALE: "metrics are shrunk towards that of columns as they are"},
)
