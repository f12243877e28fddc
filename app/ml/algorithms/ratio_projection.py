r"""Ratio projection: directions that draw rows of different classes apart and keep rows of one class together.

The directions w₁, w₂, … maximise one after the other, each uncorrelated with those before over the pairs of one class,

    Σ dᵢⱼ (wᵀxᵢ − wᵀxⱼ)² / Σ sᵢⱼ (wᵀxᵢ − wᵀxⱼ)²   over pairs of rows i < j,

with d the weight of pairs that belong apart and s that of pairs that belong together. Both are the product of the row
weights: d of pairs of different classes, s of pairs of one class. Pairs given as relations add their weights, times
`relation_weight`: those that cannot be together to d, those that must be to s. Both sums are quadratic forms XᵀLX of a
Laplacian, and the directions solve (XᵀL_dX)w = λ(XᵀL_sX)w. No matrix is inverted: the form below is factored by QR and
singular values, in columns of unit deviation, and the form above is taken in its coordinates.
Each direction is turned so that its largest loading is positive, columns counted in their deviations.

Every pair counts here, so that large classes count by the square of their size; in `lda` every row does. With classes
of equal size both find the same directions.

In short: The table is turned and scaled so that pairs of rows of different classes lie far apart and pairs of one class
close. Known pairs can be added to the classes.

Use when: classes are known and, beside them, some pairs that must or cannot be together. Without such pairs take `lda`.

Two classes of equal size whose scatter within is the unit matrix up to a factor: the direction is that of the means.

>>> x = np.array([[0.0, 0], [2, 0], [1, 1], [1, -1], [3, 4], [5, 4], [4, 5], [4, 3]])
>>> rows = Data.of(Task.PROJECTION, x, [0, 0, 0, 0, 1, 1, 1, 1], target=TargetKind.CLASSES)
>>> state = fit(RatioProjection(), rows, Context.of(0)).state
>>> print((state.loadings[0] / state.loadings[0, 0]).round(6), state.ratio[0].round(6))
[1.       1.333333] 26.0

References: Koren & Carmel (2004), IEEE Trans. Vis. Comput. Graph. 10:459; Yan et al. (2007), IEEE Trans. Pattern Anal.
Mach. Intell. 29:40; Battiti & Brunato, The LION Way, ch. 15.
"""

from typing import NamedTuple

import numpy as np
import scipy
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
    Params,
    TargetKind,
    Task,
    Vector,
)
from app.ml.contract.named_numbers import every
from app.ml.contract.relations import Edges
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.linear_algebra.pair_scatter import of_all_pairs, of_edges
from app.ml.numerics.linear_algebra.whitening import spread, whitening


class RatioProjection(Params):
    """Largest ratio of the distances of pairs that belong apart to those of pairs that belong together."""

    n_components: int = Field(2, ge=1, le=1000, description="Number of directions to keep; at most one per column.")
    shrinkage: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the mean variance in the scatter of pairs that belong together: 0 is the scatter of the "
        "rows, 1 takes all columns, in units of their deviations, for equally noisy and unrelated.",
    )
    relation_weight: float = Field(
        1.0,
        ge=0,
        le=1e12,
        description="Factor of the weights of pairs given as relations; a pair of rows counts 1 by its classes.",
    )


class State(NamedTuple):
    mean: Vector
    """(d,) of the training rows."""
    loadings: Matrix
    """(p, d) a row for each direction."""
    ratio: Vector
    """(p,) squared distances of pairs that belong apart over those of pairs that belong together, descending."""


class Centred(NamedTuple):
    """Rows in columns of unit deviation."""

    z: Matrix
    """(n, d)."""
    weights: Vector
    """(n,), adding up to 1."""
    means: Matrix
    """(k, d) of the classes; 0 for a class without rows."""
    mass: Vector
    """(k,) weights of the classes."""


def fit(params: RatioProjection, data: Data, context: Context) -> Fit[State]:
    share = data.weights / data.weights.sum()
    mean, unit = spread(data.x, share)
    z, mass = (data.x - mean) / unit, share @ data.targets
    rows = Centred(z, share, data.targets.T @ (share[:, None] * z) / np.where(mass > 0, mass, 1.0)[:, None], mass)
    must, cannot = _pairs(params, data)
    turn, warnings = whitening(_together(rows, data, must), params.shrinkage)
    values, vectors = scipy.linalg.eigh(turn.T @ _apart(rows, data, cannot) @ turn) if turn.size else _none()
    p = min(params.n_components, len(values))
    if p < params.n_components:
        warnings.append(f"There are only {p} directions, not {params.n_components}.")
    axes = (turn @ vectors[:, ::-1][:, :p]).T if p else np.zeros((1, z.shape[1]))
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    ratio = np.maximum(values[::-1][:p], 0.0) if p else np.zeros(1)
    return Fit(State(mean, axes * np.where(largest < 0, -1.0, 1.0) / unit, ratio), iterations=1, warnings=warnings)


def _none() -> tuple[Vector, Matrix]:
    return np.zeros(0), np.zeros((0, 0))


def _pairs(params: RatioProjection, data: Data) -> tuple[Edges, Edges]:
    """Pairs that must be together and that cannot, with their weights in units of the squared sum of row weights."""
    nothing = np.zeros(0, np.intp)
    edges = None if data.relations is None else data.relations.edges
    if edges is None:
        return (Edges(nothing, nothing, np.zeros(0)),) * 2
    values = params.relation_weight * np.abs(edges.values) / data.weights.sum() ** 2
    values = values * data.weights[edges.first] * data.weights[edges.second]
    must = edges.values > 0
    parts = [Edges(edges.first[some], edges.second[some], values[some]) for some in (must, ~must)]
    return parts[0], parts[1]


def _together(rows: Centred, data: Data, must: Edges) -> Matrix:
    """(n + m, d), a factor of the scatter of pairs that belong together: a class of weight V has V times its own."""
    within = rows.z - rows.means[data.codes]
    gaps = rows.z[must.first] - rows.z[must.second]
    heavy = np.sqrt(rows.weights * rows.mass[data.codes])
    return np.vstack([heavy[:, None] * within, np.sqrt(must.values)[:, None] * gaps])


def _apart(rows: Centred, data: Data, cannot: Edges) -> Matrix:
    """(d, d) scatter of pairs that belong apart: those of two classes have the scatter of both and of their means."""
    others = (rows.weights.sum() - rows.mass)[data.codes]
    inner = (rows.z - rows.means[data.codes]) * np.sqrt(rows.weights * others)[:, None]
    return np.asarray(
        inner.T @ inner + of_all_pairs(*_seen(rows)) + of_edges(rows.z, cannot, cannot.values), np.float64
    )


def _seen(rows: Centred) -> tuple[Matrix, Vector]:
    """Means and weights of the classes with rows."""
    seen = rows.mass > 0
    return np.ascontiguousarray(rows.means[seen]), rows.mass[seen]


def predict(params: RatioProjection, state: State, x: Matrix) -> Matrix:
    return (x - state.mean) @ state.loadings.T


def summary(params: RatioProjection, state: State) -> JSON:
    return {
        "columns": every(state.loadings.shape[1]),
        "loadings": state.loadings.tolist(),
        "ratio": state.ratio.tolist(),
        "mean": state.mean.tolist(),
    }


def to_tensor(params: RatioProjection, state: State, x: Tensor) -> Tensor:
    return (x - state.mean) @ state.loadings.T


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    targets={Task.PROJECTION: TargetKind.CLASSES},
    params=RatioProjection,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    relations={Form.PAIRS: {Meaning.CONSTRAINT}},
    seconds=lambda _, size: size.cells * (4e-8 + 7e-10 * size.columns),
    summary=summary,
)
