r"""Selection of columns: those that best stand for all the others, or those that are named.

Each coordinate is a column of the table as it is: an orthogonal projection onto axes. Without names the columns are
chosen one after the other, each the one with which a linear fit by those chosen so far explains the most of the
variance of all columns: with C the covariance matrix of what is left unexplained, the largest Σₖ Cⱼₖ²/Cⱼⱼ, after which
C loses cⱼcⱼᵀ/Cⱼⱼ. Of equals the first is taken, and never a column that the chosen ones make up. The fit by the
chosen columns restores the others.

In short: A few columns of the table are kept as they are, chosen so that the others can nearly be computed from them.

Use when: coordinates should be columns that can be read and measured, not mixtures of all as in `pca`; to leave out
columns that others make up; or to put certain columns in front of a learner. Scale the columns first unless they share
a unit: variance counts in their units.

Three columns, the second twice the first: either of these explains five sixths of the variance, and both nothing more.

>>> x = np.array([[1.0, 2.0, 1.0], [-1.0, -2.0, 1.0], [1.0, 2.0, -1.0], [-1.0, -2.0, -1.0]])
>>> state = fit(SelectColumns(), Data.of(Task.PROJECTION, x), Context.of(0)).state
>>> print(state.kept, state.explained.round(6))
[0 2] [0.833333 1.      ]

References: Farahat, Ghodsi & Kamel (2011), IEEE Int. Conf. Data Mining, 161; Golub (1965), Numer. Math. 7:206;
Battiti & Brunato, The LION Way, ch. 15.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Inputs,
    Labels,
    Matrix,
    Output,
    Params,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.column_names import unknown
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.linear_algebra.covariance import covariance
from app.ml.numerics.linear_algebra.solve import near_one, weighted_ridge
from app.ml.numerics.neighbours.distances import norms

ROUNDING = 1e-12
"""Share of the variance of a column below which what others leave unexplained of it is rounding."""


class SelectColumns(Params):
    """Columns of the table as they are."""

    n_components: int = Field(
        2,
        ge=1,
        le=10_000,
        description="Number of directions, each of which is a column; without effect beside `column_names`.",
    )
    column_names: list[str] | None = Field(
        None,
        min_length=1,
        max_length=10_000,
        description="Names of the columns to keep, in this order; a categorical one stands for its indicator columns. "
        "Null: `n_components` columns are chosen.",
    )


class State(NamedTuple):
    kept: Labels
    """(p,) places of the columns."""
    mean: Vector
    """(d,) of the training rows."""
    coefficients: Matrix
    """(p, d): the linear fit of all columns by those kept, each about its mean."""
    explained: Vector
    """(p,) share of all variance that a linear fit by the columns up to this one explains."""


def fit(params: SelectColumns, data: Data, context: Context) -> Fit[State]:
    matrix, mean = covariance(data.x, data.weights)
    named = _named(params, data)
    columns, explained = _chosen(matrix, params.n_components) if named is None else (named, _in_order(matrix, named))
    x = data.x * near_one(float(np.abs(data.x).max(initial=0.0)))
    coefficients = weighted_ridge(np.ascontiguousarray(x[:, columns]), x, data.weights, 0.0).coef
    coefficients[:, columns] = np.eye(len(columns))
    short = named is None and len(columns) < params.n_components
    few = f"There are only {len(columns)} columns to choose, not {params.n_components}: they make up the others."
    return Fit(State(columns, mean, coefficients, explained), iterations=1, warnings=[few] if short else ())


def _named(params: SelectColumns, data: Data) -> Labels | None:
    """Places of the columns with these names, each once."""
    if params.column_names is None:
        return None
    places = [
        j
        for name in params.column_names
        for j, column in enumerate(data.names)
        if column == name or _level(column, name)
    ]
    if not places:
        raise InvalidData("None of the columns to keep is left after preparation.")
    return np.array(list(dict.fromkeys(places)), np.intp)


def _level(column_name: str, name: str) -> bool:
    return column_name.startswith(f"{name}=")


def _chosen(covariances: Matrix, most: int) -> tuple[Labels, Vector]:
    """Places of at most so many columns, and the share that those up to each explain: at least one column."""
    left, variances = _scaled(covariances), _scaled(covariances).diagonal().copy()
    columns, explained = list[int](), list[float]()
    total = variances.sum() or 1.0
    while len(columns) < most:
        free = left.diagonal() > ROUNDING * variances
        free[columns] = False
        if columns and not free.any():
            break
        gain = np.where(free, np.square(left).sum(axis=1) / np.where(free, left.diagonal(), 1.0), 0.0)
        columns.append(int((gain >= gain.max() * (1 - 1e-9)).argmax()))
        explained.append(min(sum(explained[-1:]) + gain[columns[-1]] / total, 1.0))
        left = _without(left, variances, columns[-1])
    return np.array(columns, np.intp), np.array(explained)


def _in_order(covariances: Matrix, columns: Labels) -> Vector:
    """Share of all variance that a linear fit by the columns up to each explains."""
    left, variances = _scaled(covariances), _scaled(covariances).diagonal().copy()
    unexplained = np.empty(len(columns))
    for place, j in enumerate(columns):
        left = _without(left, variances, j)
        unexplained[place] = np.maximum(left.diagonal(), 0).sum()
    return np.clip(1 - unexplained / (variances.sum() or 1.0), 0, 1) if variances.sum() > 0 else np.zeros(len(columns))


def _scaled(covariances: Matrix) -> Matrix:
    """Shares of the variance of the widest column: squares of these neither overflow nor vanish."""
    return covariances / (covariances.diagonal().max(initial=0.0) or 1.0)


def _without(left: Matrix, variances: Vector, j: int) -> Matrix:
    """The covariance that is left when column j has explained what it can."""
    return left - np.outer(left[j], left[j]) / left[j, j] if left[j, j] > ROUNDING * variances[j] else left


def predict(params: SelectColumns, state: State, x: Matrix) -> Matrix:
    return np.ascontiguousarray(x[:, state.kept])


def inverse(params: SelectColumns, state: State, z: Matrix) -> Matrix:
    return (z - state.mean[state.kept]) @ state.coefficients + state.mean


def lost(params: SelectColumns, state: State, x: Matrix) -> Vector:
    return np.sqrt(norms(x - inverse(params, state, predict(params, state, x))))


def summary(params: SelectColumns, state: State) -> JSON:
    return {
        "selected_columns": [
            {"column": int(j), "explained_variance_ratio": float(share)}
            for j, share in zip(state.kept, state.explained, strict=True)
        ],
        "columns": every(state.coefficients.shape[1]),
        "coefficients": state.coefficients.tolist(),
        "mean": state.mean.tolist(),
    }


def _faults(params: SelectColumns, inputs: Inputs) -> Iterable[Fault]:
    return unknown(params.column_names or (), "/column_names", inputs.kinds)


def to_tensor(params: SelectColumns, state: State, x: Tensor) -> Tensor:
    return x[state.kept]


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    params=SelectColumns,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    faults=_faults,
    seconds=lambda _, size: 1e-3 + size.cells * (2e-8 + 6e-10 * size.columns),
    outputs={
        "distance": Output(
            "Euclidean distance between the row and its reconstruction, in the prepared (scaled) columns.", lost
        )
    },
    inverse=inverse,
    summary=summary,
    breaks={Symmetry.SCALE: "variance counts in the units of the columns"},
)
