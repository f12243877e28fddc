r"""k nearest neighbours: the mean or the vote of the most similar training rows.

A number is the mean of the k nearest rows' numbers, a class has the share of their votes; each counts by its row
weight, and on request by 1/(d + d0) with d its distance (formula 2.1). As d0 grows the prediction goes to the mean of
the k neighbours, not of all rows as the book prints. With d0 = 0 rows at distance zero decide alone.

Ties: of rows equally far, that one is nearer which is higher in the first column where they differ, then in the
target. Of classes with equal votes wins the one with the nearest row, and its share is larger by 1e-9. Under the
unanimity rule a prediction is known only if all neighbours agree, and this is so just where a probability is exactly 1;
otherwise the prediction is null and flagged `unknown`, and the probabilities are the shares of the votes.

The nearest rows are found by a KD-tree or by looking at all of them; both give the same to the last bit. On request
k-means centres stand for the rows, some for each class; in regression they have the mean of their rows.

Distances are of the prepared columns, in which two categories of a column are √2 apart, as far as two rows are in a
scaled number in the mean of squares. With `cosine` a row of zeros is at a right angle to all others. With ranges,
standard deviations and the covariance a column or a direction in which the training rows do not vary plays no part. A
metric that is learned, of the form √((u − v)LᵀL(u − v)ᵀ), is the Euclidean one of Lx: a stored `lda` or `pca` model as
`preprocessing.projection` is such an L.

In short: The prediction of a row is the mean, or the vote, of the training rows most similar to it. With the unanimity
rule it abstains unless all of them agree.

Use when: similar inputs have similar targets, columns are few and scaled alike, and examples are the best explanation.

Rows 0, 1, 3 with targets 0, 1, 9, predicted at 1.5: 3, then 3 2/3, then the mean 5 of two (of all it would be 3 1/3).

>>> import numpy as np
>>> rows = Data.of(Task.REGRESSION, [[0.0], [1.0], [3.0]], [0.0, 1.0, 9.0])
>>> for d0 in 0, 0.5, 1e9:
...     params = KNN(n_neighbors=2, weights="distance", d0=d0)
...     print(f"{predict(params, fit(params, rows, Context.of(0)).state, np.array([[1.5]]))[0]:.5f}")
3.00000
3.66667
5.00000

References: Cover & Hart (1967), IEEE Trans. Inf. Theory 13:21; Dudani (1976), IEEE Trans. Syst. Man Cybern. 6:325;
Battiti & Brunato, The LION Way, ch. 2.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Labels,
    LeaveOneOut,
    Matrix,
    Params,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.clustering.class_centres import class_centres
from app.ml.numerics.neighbours import metric_space, named_metrics
from app.ml.numerics.neighbours.metric_space import MetricSpace
from app.ml.numerics.neighbours.named_metrics import Metric, NamedMetric
from app.ml.numerics.neighbours.nearest import TREE_COLUMNS, neighbours
from app.ml.numerics.neighbours.neighbour_lists import Neighbours
from app.ml.numerics.neighbours.neighbour_votes import shares, votes
from app.ml.numerics.tensor_graphs.neighbour_tensors import neighbour_tensors, share_tensor, vote_tensor

BLOCK = 2**18
"""Neighbours looked at together."""


class KNN(Params):
    """k nearest neighbours for regression and classification."""

    n_neighbors: int = Field(
        5, ge=1, le=10_000, description="Number of neighbours; with fewer training rows, all of them."
    )
    metric: Metric = Field("euclidean", description=named_metrics.DESCRIPTION)
    p: float = Field(3.0, ge=1, le=100, description="Power of the differences, for the metric minkowski only.")
    weights: Literal["uniform", "distance"] = Field(
        "uniform", description="Neighbours count alike, or by 1/(d + d0) with their distance d."
    )
    d0: float = Field(1e-3, ge=0, le=1e12, description="Distance added before dividing: larger makes far rows count.")
    rule: Literal["majority", "unanimity"] = Field(
        "majority",
        description="Rule of a vote: majority predicts the class with the most votes, unanimity only a class "
        "that has all of them.",
    )
    prototypes: int | None = Field(
        None, ge=1, le=100_000, description="Centres kept in place of the rows, for each class; null: all rows."
    )
    index: Literal["auto", "kdtree", "brute"] = Field(
        "auto", description="Search for the neighbours; it changes the time, not the prediction."
    )


class State(NamedTuple):
    rows: Matrix
    """(m, r) training rows, or prototypes, as points of the metric."""
    targets: Vector
    """(m,) their numbers or class codes."""
    weights: Vector
    """(m,) what each counts."""
    numbers: Labels
    """(m,) numbers of the rows in the dataset, from 0, else among the training rows; of prototypes, their own."""
    sizes: Labels
    """(m,) training rows that each stands for."""
    classes: int
    """0 for numbers."""
    items: NDArray[np.str_] | None = None
    """(m,) names of the rows; None: they have none."""
    space: MetricSpace | None = None
    """Space of a metric that depends on the training rows."""


def fit(params: KNN, data: Data, context: Context) -> Fit[State]:
    classes = data.targets.shape[1] if data.task is Task.CLASSIFICATION else 0
    space = metric_space.learned(params.metric, data.x, data.weights)
    points = _metric(params, space).points(data.x)
    if params.prototypes is None:
        order = _sorted(data)
        ones = np.ones(len(order), np.intp)
        items = None if data.items is None else data.items[order]
        numbers = order if data.numbers is None else data.numbers[order]
        state = State(points[order], data.y[order], data.weights[order], numbers, ones, classes, items, space)
    else:
        centres, targets, sizes = class_centres(params.prototypes, replace(data, x=points), context.rng)
        rows = metric_space.unit_rows(centres) if params.metric == "cosine" else centres
        state = State(rows, targets, np.ones(len(rows)), np.arange(len(rows)), sizes, classes, space=space)
    few = len(state.rows) < params.n_neighbors
    return Fit(state, warnings=[f"Only {len(state.rows)} neighbours: all are used."] if few else [])


def predict(params: KNN, state: State, x: Matrix) -> NDArray[np.float64]:
    predicted = np.empty((len(x), state.classes) if state.classes else len(x))
    for block, places, far in _neighbours(params, state, x):
        predicted[block] = _predicted(state, places, _counts(params, state, places, far))
    return predicted


def without_each(params: KNN, data: Data) -> NDArray[np.float64]:
    """One neighbour more is looked up, and the row itself left out; prototypes, and metrics that depend on the rows,
    need fits of their own.
    """
    own_places = replace(data, numbers=None)
    state = fit(params, own_places, Context.of(0)).state if params.prototypes is None else None
    shape = (len(data.x), data.targets.shape[1]) if data.task is Task.CLASSIFICATION else (len(data.x),)
    predicted = np.full(shape, np.nan)
    if state is None or state.space is not None or len(data.x) < 2:
        return predicted
    for block, places, far in _neighbours(params, state, data.x, params.n_neighbors + 1):
        is_same_row = state.numbers[places] == np.arange(len(data.x))[block, None]
        is_same_row[~is_same_row.any(axis=1), -1] = True  # hidden behind rows equally near
        others, away = (part[~is_same_row].reshape(len(part), -1) for part in (places, far))
        predicted[block] = _predicted(state, others, _counts(params, state, others, away))
    return predicted


def accepted_rows(params: KNN, probabilities: Matrix) -> NDArray[np.bool_]:
    """(n,) true where the rule accepts the prediction."""
    unanimous: NDArray[np.bool_] = probabilities.max(axis=1) == 1.0
    return unanimous if params.rule == "unanimity" else np.ones_like(unanimous)


def explain(params: KNN, state: State, x: Matrix) -> list[JSON]:
    """For each row its neighbours, nearest first: number of the training row in the dataset, from 0 (or of the
    prototype), distance, share in the prediction.
    """
    result: list[JSON] = []
    for _, places, far in _neighbours(params, state, x):
        counts = _counts(params, state, places, far)
        result += [_explained(params, state, *row) for row in zip(places, far, counts, strict=True)]
    return result


def nearest(params: KNN, state: State, x: Matrix, count: int | None) -> Neighbours:
    """Neighbours of each row, nearest first. count: of them, in place of `n_neighbors`."""
    return _listed(params, state, _metric(params, state.space).points(x), count)


def nearest_to_items(params: KNN, state: State, places: Labels, count: int | None) -> Neighbours:
    """The same of training rows, by their places among the items."""
    return _listed(params, state, state.rows[places], count)


def _listed(params: KNN, state: State, points: Matrix, count: int | None) -> Neighbours:
    blocks = [(places, far) for _, places, far in _near(params, state, points, count or params.n_neighbors)]
    places, far = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    counts = _counts(params, state, places, far)
    items = None if state.items is None else state.items[places]
    return Neighbours(state.numbers[places], far, state.targets[places], counts, params.prototypes is not None, items)


def summary(params: KNN, state: State) -> JSON:
    return {
        "kept": len(state.rows),
        "training_rows": int(state.sizes.sum()),
        "neighbours": min(params.n_neighbors, len(state.rows)),
        "prototypes": params.prototypes is not None,
    }


def _sorted(data: Data) -> Labels:
    """Highest first, so that of rows equally far the higher is nearer: by the first column, ties by the rest."""
    first = data.x[:, 0] if data.x.shape[1] else np.zeros(len(data.x))
    order = np.argsort(first, kind="stable")
    same = np.diff(first[order]) == 0
    tied = np.append(same, False) | np.insert(same, 0, False)
    rows = order[tied]
    order[tied] = rows[np.lexsort((data.weights[rows], data.y[rows], *data.x[rows].T[::-1]))]
    return order[::-1]


def _metric(params: KNN, space: MetricSpace | None) -> NamedMetric:
    return NamedMetric.of(params.metric, params.p, space)


def _neighbours(
    params: KNN, state: State, x: Matrix, count: int | None = None
) -> Iterator[tuple[slice, Labels, Matrix]]:
    """Blocks of rows with their neighbours and distances. count: of them, in place of `n_neighbors`."""
    return _near(params, state, _metric(params, state.space).points(x), count or params.n_neighbors)


def _near(params: KNN, state: State, points: Matrix, count: int) -> Iterator[tuple[slice, Labels, Matrix]]:
    """The same of points of the metric."""
    metric = _metric(params, state.space)
    step = max(1, BLOCK // min(count, len(state.rows)))
    for start in range(0, len(points), step):
        block = slice(start, start + step)
        places, far = neighbours(points[block], state.rows, count, p=metric.p, index=params.index)
        yield block, places, metric.distances(far)


def _counts(params: KNN, state: State, places: Labels, far: Matrix) -> Matrix:
    """(n, k) what each neighbour counts: of each row together 1."""
    return shares(state.weights[places], far, params.d0 if params.weights == "distance" else None)


def _predicted(state: State, places: Labels, counts: Matrix) -> NDArray[np.float64]:
    targets = state.targets[places]
    return votes(targets, counts, state.classes) if state.classes else np.asarray((targets * counts).sum(axis=1))


def _explained(params: KNN, state: State, places: Labels, far: Vector, counts: Vector) -> JSON:
    kind = "row" if params.prototypes is None else "prototype"
    target, typed = ("class", int) if state.classes else ("target", float)
    result: dict[str, JSON] = {
        "neighbours": [
            {kind: int(state.numbers[i]), target: typed(state.targets[i]), "distance": float(d), "weight": float(w)}
            for i, d, w in zip(places, far, counts, strict=True)
        ]
    }
    if state.classes and params.rule == "unanimity":
        result["status"] = "known" if len(set(state.targets[places].tolist())) == 1 else "unknown"
    return result


def to_tensor(params: KNN, state: State, x: Tensor) -> Tensor:
    metric = _metric(params, state.space)
    far, places = neighbour_tensors(metric, state.rows, params.n_neighbors, x)
    counts = share_tensor(places.among(state.weights), far, params.d0 if params.weights == "distance" else None)
    if not state.classes:
        return (places.among(state.targets) * counts).reduce("ReduceSum")
    return vote_tensor(places.among(state.targets), counts, state.classes)


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=KNN,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    degrees=lambda params: params.n_neighbors == 1,
    seconds=lambda _, size: size.rows * (5e-6 + (0 if size.columns <= TREE_COLUMNS else 2.5e-11 * size.cells)),
    rowwise=True,
    known=accepted_rows,
    explain=explain,
    summary=summary,
    queries={"neighbours": nearest, "neighbours_of_items": nearest_to_items, "items": lambda _, state: state.items},
    leave_one_out=LeaveOneOut(without_each, unscaled=lambda _: False),
    breaks={
        Symmetry.SCALE: "a distance gives a column the weight of its unit: scale the columns alike first",
        Symmetry.WEIGHTS: "k counts rows: a row given twice takes two of the k places, a weight counts in the vote",
    },
)
