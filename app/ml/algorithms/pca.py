r"""Principal components: the few directions in which a table varies most.

The orthogonal projection onto p directions that keeps the most variance, and so the most of the squared distances
between rows, and so the one from which the rows are rebuilt with the least error. The directions
are eigenvectors of the covariance matrix S = (1/n) Σ (xᵢ − x̄)(xᵢ − x̄)ᵀ, found from S where rows are many, and
by a singular value decomposition of the centred table where rows are few or small variances matter. Few directions of
a large table come from a block Krylov iteration, which goes on until they are right to rounding.
Each direction is turned so that its largest loading is positive. A table that memory does not hold is read in blocks,
whose covariances are merged.

In short: The table is turned so that its first few directions hold most of its variance. A row is described by its
coordinates along them, from which it can nearly be restored.

Use when: a table has many related columns, to look at it in two dimensions, to compress it, or to see
which columns move together. Scale the columns first unless they share a unit: variance counts in their units.

References: Pearson (1901), Phil. Mag. 2:559; Jolliffe (2002), Principal Component Analysis;
Battiti & Brunato, The LION Way, ch. 15.
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
    Matrix,
    Output,
    Params,
    StreamedRows,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.linear_algebra.principal_directions import Spectrum, principal, streamed_principal
from app.ml.numerics.linear_algebra.solve import EPS
from app.ml.numerics.neighbours.distances import norms


class PCA(Params):
    """Principal component analysis."""

    n_components: int = Field(
        2, ge=1, le=10_000, description="Number of directions to keep; at most one per row and column."
    )
    variance: float | None = Field(
        None, gt=0, le=1, description="Keep the fewest directions with this share of the variance instead of a number."
    )
    whiten: bool = Field(False, description="Divide each coordinate by its standard deviation.")


class State(NamedTuple):
    mean: Vector
    """(d,)."""
    loadings: Matrix
    """(p, d) orthonormal rows."""
    variance: Vector
    """(p,) of each coordinate, descending; with n in the denominator."""
    total: float
    """Variance of all columns together."""
    spectrum: Vector
    """(m,) variances along all directions that the fit found, of which the first p are kept."""


def fit(params: PCA, data: Data, context: Context) -> Fit[State]:
    return _fitted(params, principal(data.x, data.weights, lambda values: _kept(params, values), _count(params)))


def fit_blocks(params: PCA, rows: StreamedRows, context: Context) -> Fit[State]:
    return _fitted(params, streamed_principal(rows, lambda values: _kept(params, values), _count(params)))


def _fitted(params: PCA, spectrum: Spectrum) -> Fit[State]:
    mean, values, directions, total = spectrum
    p = _kept(params, values)
    short = params.variance is None and p < params.n_components
    warnings = (f"There are only {p} directions, not {params.n_components}.",) if short else ()
    return Fit(State(mean, directions[:p], values[:p], total, values), iterations=1, warnings=warnings)


def _count(params: PCA) -> int | None:
    """Number of directions to keep, if it does not depend on the variances."""
    return params.n_components if params.variance is None else None


def _kept(params: PCA, values: Vector) -> int:
    """Number of directions to keep, given the variance along each."""
    if params.variance is None:
        return min(params.n_components, len(values))
    # A share of 1 means all but rounding.
    enough = params.variance * (1 - len(values) * EPS) * values.sum()
    return int(np.searchsorted(np.cumsum(values), enough)) + 1


def predict(params: PCA, state: State, x: Matrix) -> Matrix:
    return (x - state.mean) @ state.loadings.T / _unit(params, state)


def inverse(params: PCA, state: State, z: Matrix) -> Matrix:
    return z * _unit(params, state) @ state.loadings + state.mean


def lost(params: PCA, state: State, x: Matrix) -> Vector:
    return np.sqrt(norms(x - inverse(params, state, predict(params, state, x))))


def objective(params: PCA, state: State, data: Data) -> float:
    """Squared reconstruction error of each row, summed: Σ wᵢ‖xᵢ − x̂ᵢ‖².

    Only the space that the loadings span counts, so that loadings which are not orthonormal gain nothing.
    """
    basis, _ = np.linalg.qr(state.loadings.T)
    residuals = data.x - state.mean
    residuals = residuals - (residuals @ basis) @ basis.T
    return float(data.weights @ (residuals * residuals).sum(axis=1))


def summary(params: PCA, state: State) -> JSON:
    """`variance_ratios` are of all directions that the fit found, kept or not."""
    ratio = state.spectrum / state.total if state.total > 0 else np.zeros_like(state.spectrum)
    return {
        "columns": every(state.loadings.shape[1]),
        "loadings": state.loadings.tolist(),
        "explained_variance": state.variance.tolist(),
        "explained_variance_ratio": ratio[: len(state.variance)].tolist(),
        "variance_ratios": ratio.tolist(),
        "mean": state.mean.tolist(),
    }


def _unit(params: PCA, state: State) -> Vector:
    """(p,): what coordinates are divided by. A direction without variance is left as it is."""
    return np.sqrt(np.where(params.whiten & (state.variance > 0), state.variance, 1.0))


def to_tensor(params: PCA, state: State, x: Tensor) -> Tensor:
    return (x - state.mean) @ state.loadings.T / _unit(params, state)


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    params=PCA,
    state=State,
    fit=fit,
    fit_blocks=fit_blocks,
    predict=predict,
    graph=to_tensor,
    seconds=lambda _, size: size.cells * (1e-8 + 1e-10 * size.columns),
    memory=lambda _, size: size.columns * (8.0 * size.rows + 48.0 * size.columns),
    outputs={
        "distance": Output(
            "Euclidean distance between the row and its reconstruction, in the prepared (scaled) columns.", lost
        )
    },
    inverse=inverse,
    objective=objective,
    summary=summary,
    breaks={Symmetry.SCALE: "variance counts in the units of the columns"},
)
