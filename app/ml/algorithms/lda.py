r"""Linear discriminant analysis: the few directions along which the classes of a table lie farthest apart.

The directions w₁, w₂, … maximise the ratio of the scatter between classes to that within them (Fisher's criterion),

    w'S_B w / w'S_W w,   S_W = (1/W) Σ vᵢ (xᵢ − m_c(i))(xᵢ − m_c(i))',   S_B = Σ_c π_c (m_c − m)(m_c − m)',

with row weights v that add up to W, class means m_c, shares of the classes π_c and m the mean of all rows. For two
classes there is one, proportional to S_W⁻¹(m₁ − m₂); for k classes there are at most k − 1. S_W is the scatter of all
rows less that of the class means, from one pass over the rows, in columns of unit deviation; where it has lost digits,
S_W = V D² V' comes from the singular values of the rows less their class means. The directions are those of the class
means in the coordinates in which S_W is the unit matrix. Along each direction the variance within the classes is 1 on
average, as in scikit-learn. Each is turned so that its largest loading is positive, columns counted
in their deviations.

With `shrinkage` α the scatter within is (1 − α) S_W + α tr(S_W)/d · I, which helps where columns are many and rows few.
Without it, directions in which no class varies are left out, with a warning.

In short: The table is turned and scaled so that its first few directions separate the classes of the target best. A
row is described by its coordinates along them.

Use when: classes are known and a picture, or a few columns, should show how they differ. Without classes take `pca`.

Two classes in two columns, where the scatter within is the unit matrix up to a factor: the direction is m₁ − m₂.

>>> x = np.array([[0.0, 0], [2, 0], [1, 1], [1, -1], [3, 4], [5, 4], [4, 5], [4, 3]])
>>> rows = Data.of(Task.PROJECTION, x, [0, 0, 0, 0, 1, 1, 1, 1], target=TargetKind.CLASSES)
>>> state = fit(LDA(), rows, Context.of(0)).state
>>> print((state.loadings[0] / state.loadings[0, 0]).round(6), state.ratio.round(6))
[1.       1.333333] [12.5]

References: Fisher (1936), Ann. Eugenics 7:179; Rao (1948), J. R. Statist. Soc. B 10:159;
Hastie, Tibshirani & Friedman (2009), The Elements of Statistical Learning, section 4.3.3;
Battiti & Brunato, The LION Way, ch. 15.
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
    Matrix,
    Params,
    TargetKind,
    Task,
    Vector,
)
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.clustering.bounds import Clusters
from app.ml.numerics.linear_algebra.covariance import covariance
from app.ml.numerics.linear_algebra.whitening import spread, whitening, whitening_of


class LDA(Params):
    n_components: int | None = Field(
        None, ge=1, le=1000, description="Number of directions to keep; null: all, one fewer than there are classes."
    )
    shrinkage: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the mean variance in the scatter within classes: 0 is the scatter of the rows, 1 takes "
        "all columns, in units of their deviations, for equally noisy and unrelated.",
    )


class State(NamedTuple):
    mean: Vector
    """(d,) of the training rows."""
    loadings: Matrix
    """(p, d) a row for each direction."""
    ratio: Vector
    """(p,) scatter between classes over that within, descending."""
    total: float
    """Sum of the ratios of all directions."""
    centres: Matrix
    """(k, p) coordinates of the class means; NaN for a class without rows."""


class Scatter(NamedTuple):
    """Classes of the rows in columns of unit deviation, and coordinates in which the scatter within them is round."""

    mean: Vector
    """(d,) of all rows, in the table's units."""
    unit: Vector
    """(d,) deviations; infinite for a column that differs by rounding only."""
    mass: Vector
    """(k,) shares of the classes."""
    means: Matrix
    """(k, d) of the classes less that of all rows; zeros for a class without rows."""
    turn: Matrix
    """(d, r)"""


def _in_one_pass(params: LDA, data: Data) -> Scatter | None:
    """None: rows are few, or the sums have lost too many digits."""
    n, d = data.x.shape
    k = data.targets.shape[1]
    if n <= d + k:
        return None
    total = covariance(data.x, data.weights)
    deviation = np.sqrt(total.matrix.diagonal())
    if not deviation.all() or not np.isfinite(total.matrix).all():
        return None
    classes = Clusters.of(data.x, data.weights, data.codes, k)
    mass = classes.masses / classes.masses.sum()
    means = (classes.sums / np.where(mass > 0, classes.masses, 1.0)[:, None] - total.mean) / deviation
    means[mass == 0] = 0.0
    within = total.matrix / deviation / deviation[:, None] - (mass[:, None] * means).T @ means
    turn = whitening_of(within, params.shrinkage)
    return None if turn is None else Scatter(total.mean, deviation, mass, means, turn)


def _by_factor(params: LDA, data: Data) -> tuple[Scatter, list[str]]:
    """And warnings."""
    share = data.weights / data.weights.sum()
    mass = share @ data.targets
    mean, unit = spread(data.x, share)
    z = (data.x - mean) / unit
    means = data.targets.T @ (share[:, None] * z) / np.where(mass > 0, mass, 1.0)[:, None]
    turn, warnings = whitening(np.sqrt(share)[:, None] * (z - means[data.codes]), params.shrinkage)
    return Scatter(mean, unit, mass, means, turn), warnings


def fit(params: LDA, data: Data, context: Context) -> Fit[State]:
    scatter, warnings = _in_one_pass(params, data), list[str]()
    if scatter is None:
        scatter, warnings = _by_factor(params, data)
    mean, unit, mass, means, turn = scatter
    present = mass > 0
    between = np.sqrt(mass)[:, None] * means @ turn
    _, values, directions = scipy.linalg.svd(between, full_matrices=False)
    most = min(int(present.sum()) - 1, turn.shape[1])
    n_directions = min(most, params.n_components or most)
    if params.n_components is not None and n_directions < params.n_components:
        warnings.append(f"There are only {n_directions} directions, not {params.n_components}.")
    z_loadings = (turn @ directions[:n_directions].T).T if n_directions else np.zeros((1, data.x.shape[1]))
    largest = np.take_along_axis(z_loadings, np.abs(z_loadings).argmax(axis=1)[:, None], axis=1)
    loadings = z_loadings * np.where(largest < 0, -1.0, 1.0) / unit
    ratio = np.square(values[:n_directions]) if n_directions else np.zeros(1)
    centres = np.where(present[:, None], (means * np.where(np.isfinite(unit), unit, 0.0)) @ loadings.T, np.nan)
    return Fit(
        State(mean, loadings, ratio, float(np.square(values[:most]).sum()), centres), iterations=1, warnings=warnings
    )


def predict(params: LDA, state: State, x: Matrix) -> Matrix:
    return (x - state.mean) @ state.loadings.T


def summary(params: LDA, state: State) -> JSON:
    return {
        "columns": every(state.loadings.shape[1]),
        "loadings": state.loadings.tolist(),
        "separation": state.ratio.tolist(),
        "separation_ratio": (state.ratio / (state.total or 1.0)).tolist(),
        "mean": state.mean.tolist(),
        "centres": [
            {"class": code, "coordinates": centre.tolist()}
            for code, centre in enumerate(state.centres)
            if np.isfinite(centre).all()
        ],
    }


def to_tensor(params: LDA, state: State, x: Tensor) -> Tensor:
    return (x - state.mean) @ state.loadings.T


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    targets={Task.PROJECTION: TargetKind.CLASSES},
    params=LDA,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=lambda _, size: size.cells * (3e-8 + 5e-10 * size.columns),
    memory=lambda _, size: 36.0 * size.cells,
    summary=summary,
)
