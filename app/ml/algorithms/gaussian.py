r"""Gaussian density: one normal distribution fitted to all rows; rows in its far tail are anomalies.

The mean μ and covariance Σ of the training rows, weighted, with the sum of the weights in the denominator, maximise the
likelihood. A row of d columns has the log density

    log f(x) = −½ (d log 2π + log |Σ| + (x − μ)ᵀ Σ⁻¹ (x − μ)),

by a Cholesky factor of Σ, never an inverse. It is per unit of the prepared columns: of two densities compare those with
the same preparation. `covariance` is the form of Σ: `full`; `diagonal`, columns independent of each other; or
`spherical`, one variance for all.

With few rows for its columns, the covariance of the rows is uncertain, or singular. It is therefore shrunk to the mean
variance σ̄², Σ = (1 − α) S + α σ̄² I. By default α is estimated from the rows by the formula of Ledoit and Wolf, and goes
to 0 as rows grow in number; `shrinkage` 0 is the maximum of the likelihood.

A row is an anomaly where its log density is below that of all but `contamination` of the training rows. The threshold
is kept with the model. The training rows made the density, so that a somewhat larger share of new rows lies below.

In short: One normal distribution, with its mean and covariance, describes where rows lie. Rows of low density are
anomalies.

Use when: rows form one cloud, roughly elliptic, and it matters how usual a new row is.

Of two columns with correlation 0.9 the point (1, -1) is far likelier if they are taken as independent:

>>> rng = np.random.default_rng(0)
>>> rows = rng.normal(size=(4000, 2)) @ np.linalg.cholesky([[1, 0.9], [0.9, 1]]).T
>>> for covariance in ("full", "diagonal"):
...     params = Gaussian(covariance=covariance)
...     state = fit(params, Data.of(Task.DENSITY, rows), Context.of(0)).state
...     print(covariance, predict(params, state, np.array([[1.0, 1.0], [1.0, -1.0]])).round(0))
full [ -2. -11.]
diagonal [-3. -3.]

References: Ledoit & Wolf (2004), J. Multivar. Anal. 88:365; Bishop (2006), Pattern Recognition and Machine Learning,
ch. 2.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import InvalidData
from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    ColumnUnits,
    Context,
    Data,
    Fit,
    Matrix,
    Output,
    Params,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.density.normal_ellipsoids import Normals
from app.ml.numerics.density.shrunk_covariance import Covariance, covariance_of
from app.ml.numerics.linear_algebra.solve import EPS, near_one
from app.ml.numerics.neighbours.distances import norms

MAX_REPORTED_COLUMNS = 50
"""Columns of a covariance matrix in the report."""


class Gaussian(Params):
    covariance: Literal["full", "diagonal", "spherical"] = Field(
        "full",
        description="Form of the covariance. `full`: any; `diagonal`: columns are independent; `spherical`: and have "
        "the same variance.",
    )
    shrinkage: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of the mean variance in the covariance: 0 is the covariance of the rows, 1 one variance for "
        "all columns. Null: estimated from the rows (Ledoit and Wolf), at least 1e-6.",
    )
    contamination: float = Field(
        0.05, ge=0, lt=1, description="Share of the training rows that are anomalies: those of the lowest density."
    )


class State(NamedTuple):
    mean: Vector
    """(d,)"""
    factor: Matrix
    """(d, d) lower Cholesky factor of a full covariance; else (1, d) standard deviations."""
    shrinkage: float
    threshold: float
    """Log density below which a row is an anomaly."""


def fit(params: Gaussian, data: Data, context: Context) -> Fit[State]:
    share = data.weights / data.weights.sum()
    mean = share @ data.x
    centred = data.x - mean
    unit = near_one(float(np.abs(centred).max()))
    fitted = covariance_of(centred * unit, share, params.covariance, params.shrinkage)
    factor, warnings = _factor(fitted, data, mean, unit)
    state = State(mean, factor, fitted.shrinkage, -math.inf)
    logs = predict(params, state, data.x)
    threshold = float(np.quantile(logs, params.contamination, method="lower")) if params.contamination else -math.inf
    return Fit(state._replace(threshold=threshold), iterations=1, warnings=warnings)


def _factor(fitted: Covariance, data: Data, mean: Vector, unit: float) -> tuple[Matrix, list[str]]:
    """unit: of the covariance, by which columns were multiplied. Raises InvalidData for one that is singular but for
    rounding.
    """
    deviation = np.sqrt(fitted.variances)
    constant = np.flatnonzero(deviation <= 4 * EPS * np.sqrt(len(data.x)) * np.abs(mean * unit))
    if constant.size == deviation.size:
        warning = "No column varies: the variance of each is taken for 1."
        return (np.eye(deviation.size) if fitted.full else np.ones((1, deviation.size))), [warning]
    if constant.size:
        names = ", ".join(repr(data.names[j]) if data.names else str(j) for j in constant[:5])
        raise InvalidData(f"These columns do not vary: {names}. Leave them out, or raise `shrinkage`.")
    if not fitted.full:
        return deviation[None] / unit, []
    try:
        factor = scipy.linalg.cholesky(fitted.matrix / deviation[:, None] / deviation, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        factor = np.zeros((1, 1))
    if np.diag(factor).min() <= np.sqrt(deviation.size * EPS):
        raise InvalidData(
            "Columns determine each other: leave some out, raise `shrinkage`, or take a diagonal covariance."
        )
    return deviation[:, None] * factor / unit, []


def predict(params: Gaussian, state: State, x: Matrix) -> Vector:
    spread = np.diag(state.factor) if params.covariance == "full" else state.factor[0]
    constant = len(state.mean) * math.log(2 * math.pi) + 2 * np.log(spread).sum()
    return np.asarray(-0.5 * (constant + _squares(params, state, x)))


def _squares(params: Gaussian, state: State, x: Matrix) -> Vector:
    """(n,) squared Mahalanobis distance to the mean."""
    centred = x - state.mean
    if params.covariance != "full":
        return norms(centred / state.factor)
    solved = scipy.linalg.solve_triangular(state.factor, centred.T, lower=True, check_finite=False)
    return norms(solved.T)


def distance(params: Gaussian, state: State, x: Matrix) -> Vector:
    return np.sqrt(_squares(params, state, x))


def tail_probability(params: Gaussian, state: State, x: Matrix) -> Vector:
    """(n,) probability that a row of the density is farther from the mean: the chi-square tail of d degrees."""
    return np.asarray(scipy.special.chdtrc(len(state.mean), _squares(params, state, x)))


def anomaly(params: Gaussian, state: State, x: Matrix) -> NDArray[np.bool_]:
    return predict(params, state, x) < state.threshold


def free_parameters(params: Gaussian, state: State) -> float:
    """Those of the mean; and of the covariance the trace of the map that shrinks it, which leaves its mean variance and
    takes the share `shrinkage` of all else.
    """
    d = len(state.mean)
    covariance = d * (d + 1) / 2 if params.covariance == "full" else d
    return d + 1 + (1 - state.shrinkage) * (covariance - 1)


def in_units(params: Gaussian, state: State, units: ColumnUnits) -> JSON:
    result = summary(params, state)
    moments = {"mean": units.values(state.mean), "standard_deviations": units.widths(result["standard_deviations"])}
    if "covariance" in result:
        moments["covariance"] = result["covariance"] * np.outer(units.scale, units.scale)
    return result | {name: values.tolist() for name, values in moments.items()}


def summary(params: Gaussian, state: State) -> JSON:
    full = params.covariance == "full"
    deviations = np.sqrt(np.square(state.factor).sum(axis=1)) if full else state.factor[0]
    result = {
        "columns": every(len(state.mean)),
        "mean": state.mean.tolist(),
        "standard_deviations": deviations.tolist(),
        "shrinkage": state.shrinkage,
        "threshold": state.threshold,
        "free_parameters": free_parameters(params, state),
    }
    if full and len(state.mean) <= MAX_REPORTED_COLUMNS:
        correlation = state.factor / deviations[:, None]
        result["correlations"] = (correlation @ correlation.T).tolist()
        result["covariance"] = (state.factor @ state.factor.T).tolist()
    return result


def to_tensor(params: Gaussian, state: State, x: Tensor) -> Tensor:
    centred = x - state.mean
    if params.covariance == "full":
        spread = np.diag(state.factor)
        inverse = scipy.linalg.solve_triangular(state.factor, np.eye(len(spread)), lower=True)
        squares = (centred @ inverse.T).reduce("ReduceSumSquare")
    else:
        spread = state.factor[0]
        squares = (centred / spread).reduce("ReduceSumSquare")
    constant = float(len(state.mean) * math.log(2 * math.pi) + 2 * np.log(spread).sum())
    density: Tensor = -0.5 * (constant + squares)
    return density


ALGORITHM = Algorithm(
    tasks={Task.DENSITY},
    params=Gaussian,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=lambda _, size: size.cells * (2e-8 + 1e-9 * size.columns),
    memory=lambda _, size: 32.0 * size.cells,
    outputs={
        "distance": Output("Mahalanobis distance to the mean: 1 is one standard deviation.", distance),
        "tail_probability": Output(
            "Probability that a row of this density is farther from the mean: small for outliers.", tail_probability
        ),
        "anomaly": Output(
            "True where the log density is below the threshold that `contamination` of the training rows set.", anomaly
        ),
    },
    free_parameters=free_parameters,
    queries={"ellipsoids": lambda _, state: Normals(np.ones(1), state.mean[None], state.factor[None])},
    summary=summary,
    in_units=in_units,
    breaks={
        Symmetry.SCALE: "a density is per unit of its columns",
        Symmetry.WEIGHTS: "a row given twice counts as two observations of the covariance, by which it shrinks less",
    },
)
