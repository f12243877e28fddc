r"""Bayesian locally weighted regression: a plane for every predicted row, with its uncertainty.

The local least squares of `locally_weighted`, with weights sᵢ² = exp(−2‖xᵢ − q‖²/W) for query q, and a prior:
coefficients w ~ N(0, σ²Σ) and noise 1/σ² ~ Gamma(k, rate θ). Then V = (Σ⁻¹ + XᵀS²X)⁻¹, the coefficients are w̄ = VXᵀS²y,
the noise is σ² = (2θ + Σ sᵢ²(yᵢ − xᵢw̄)² + w̄ᵀΣ⁻¹w̄)/(2k + Σ sᵢ²), and the prediction has variance qᵀVq σ². Far from all
rows the prior alone remains, and the interval is wide.

Σ has one variance for each coefficient, that of the intercept included; one for each row, as printed, fits no
product. θ is a rate (the printed name is scale). The posterior is Student's t with 2k + Σ sᵢ² degrees of freedom;
k + Σ sᵢ², as printed, does not go with the same σ²; `dof` selects it. So that a prior about zero makes sense
whatever the units of the target, it is given in standard deviations of the target about its mean, and at the mean of
the inputs; `literal` has it about zero in the units given.

In short: Around every predicted row, a plane is fitted to the training rows near it. A prior steadies it where there
are few. The prediction comes with a Student-t interval.

Use when: a prediction without an error bar is worth little, rows are few in places, or predicted rows leave the region
of the training rows. Scale the columns alike: a distance counts in their units.

The parabola 0, 1, 4, 9 about 2.5, with a unit prior: the prediction, its variance, and σ².

>>> import numpy as np
>>> rows = Data.of(Task.REGRESSION, [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0])
>>> params = BayesianLocallyWeighted(width=1, prior_variance=1, prior_shape=1, prior_rate=1, literal=True)
>>> posterior = explain(params, fit(params, rows, Context.of(0)).state, np.array([[2.5]]))[0]
>>> [round(posterior[name], 7) for name in ("prediction", "variance", "noise_variance", "degrees_of_freedom")]
[6.0457781, 2.1890779, 3.0393421, 3.224174]

References: Moore & Schneider (1996), NIPS 8:1066; Atkeson, Moore & Schaal (1997), Artif. Intell. Rev. 11:11;
Battiti & Brunato, The LION Way, ch. 8.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import JSON, Algorithm, Context, Data, Fit, Matrix, Params, Symmetry, Task, Vector
from app.ml.numerics.effective_rows import effective_rows
from app.ml.numerics.linear_algebra.solve import EPS, centred
from app.ml.numerics.linear_models.coefficient_errors import as_json
from app.ml.numerics.linear_models.local_regression import blocks, choose_width, local_fits, seconds


class BayesianLocallyWeighted(Params):
    """Least squares on the neighbourhood of each query, with a prior."""

    width: float | None = Field(
        None, gt=0, le=1e300, description="Kernel width W, a squared distance; null: chosen by leave-one-out."
    )
    prior_variance: float = Field(
        1e4, ge=1e-100, le=1e15, description="Prior variance of each coefficient, relative to that of the noise."
    )
    prior_shape: float = Field(
        0.5, gt=0, le=1e6, description="Shape k of the Gamma prior of 1/σ²: it counts as 2k rows."
    )
    prior_rate: float = Field(
        0.05, gt=0, le=1e100, description="Rate θ of the Gamma prior of 1/σ²: the prior noise is θ/k."
    )
    literal: bool = Field(
        False, description="Prior about zero in the units given, not about the mean in standard deviations."
    )
    dof: Literal["conjugate", "printed"] = Field(
        "conjugate", description="Degrees of freedom of the interval: 2k + Σs², or k + Σs² as printed."
    )
    interval_of: Literal["mean", "observation"] = Field(
        "observation",
        description="Target of a prediction interval: `observation`, a new row with its noise, or `mean`, the plane.",
    )


class State(NamedTuple):
    rows: Matrix
    """(n, d)."""
    targets: Vector
    """(n,) in the units of the prior."""
    weights: Vector
    """(n,)."""
    centre: Vector
    """(d,) where the prior of the intercept holds."""
    middle: float
    unit: float
    """A prediction is middle + unit times that of the planes."""
    width: float


class Posterior(NamedTuple):
    """Posterior of q queries, in the units of the prior."""

    coef: Matrix
    """(q, d + 1), the intercept first."""
    mean: Vector
    variance: Vector
    noise: Vector
    """Variance of a row."""
    mass: Vector
    """Σ sᵢ² times row weights."""
    rows: Vector
    """Effective number of rows by these weights."""


def fit(params: BayesianLocallyWeighted, data: Data, context: Context) -> Fit[State]:
    d = data.x.shape[1]
    centre, middle, unit = np.zeros(d), 0.0, 1.0
    if not params.literal:
        targets = centred(data.targets, data.weights)
        centre, middle = centred(data.x, data.weights).mean, float(targets.mean[0])
        unit = float(np.sqrt(np.average(targets.x[:, 0] ** 2, weights=data.weights))) or 1.0
    bare = State(data.x, (data.y - middle) / unit, data.weights, centre, middle, unit, 0.0)

    def plane_values(x: Matrix, squares: Matrix, counted: Matrix, width: float) -> Vector:
        return middle + unit * _posterior(params, bare._replace(width=width), x, squares, counted).mean

    return Fit(bare._replace(width=params.width or choose_width(data.x, data.y, data.weights, plane_values)))


def predict(params: BayesianLocallyWeighted, state: State, x: Matrix) -> Vector:
    parts = [posterior.mean for posterior in _posteriors(params, state, x)]
    return state.middle + state.unit * np.concatenate([np.zeros(0), *parts])


def interval(params: BayesianLocallyWeighted, state: State, x: Matrix, confidence: float) -> Matrix:
    bounds = [np.zeros((0, 2))]
    for posterior in _posteriors(params, state, x):
        variance = posterior.variance + (posterior.noise if params.interval_of == "observation" else 0.0)
        reach = scipy.special.stdtrit(_freedom(params, posterior), (1 + confidence) / 2) * np.sqrt(variance)
        bounds.append(state.middle + state.unit * (posterior.mean[:, None] + np.outer(reach, [-1, 1])))
    return np.vstack(bounds)


def explain(params: BayesianLocallyWeighted, state: State, x: Matrix) -> list[JSON]:
    """For each row its plane, the variances, the effective number of training rows in its fit, and `total_weight`,
    the sum of their weights, by which they count beside the prior.
    """
    result: list[JSON] = []
    for posterior in _posteriors(params, state, x):
        coef = state.unit * posterior.coef
        named = {
            "prediction": state.middle + state.unit * posterior.mean,
            "variance": state.unit**2 * posterior.variance,
            "noise_variance": state.unit**2 * posterior.noise,
            "degrees_of_freedom": _freedom(params, posterior),
            "effective_rows": posterior.rows,
            "total_weight": posterior.mass,
            "intercept": state.middle + coef[:, 0] - coef[:, 1:] @ state.centre,
            "coefficients": coef[:, 1:],
        }
        result += [{name: as_json(values[i]) for name, values in named.items()} for i in range(len(coef))]
    return result


def summary(params: BayesianLocallyWeighted, state: State) -> JSON:
    return {"width": state.width, "rows": len(state.rows)}


def _posteriors(params: BayesianLocallyWeighted, state: State, x: Matrix) -> Iterator[Posterior]:
    for block, squares in blocks(x, state.rows):
        counted = np.broadcast_to(state.weights, squares.shape)
        yield _posterior(params, state, x[block], squares, counted)


def _posterior(params: BayesianLocallyWeighted, state: State, x: Matrix, squares: Matrix, counted: Matrix) -> Posterior:
    with np.errstate(over="ignore"):
        weights = np.exp(-2 * (squares / state.width)) * counted
    design = np.column_stack([np.ones(len(state.rows)), state.rows - state.centre])
    precision = np.full(design.shape[1], 1 / params.prior_variance)
    fits = local_fits(design, state.targets, weights, precision)
    for i in np.flatnonzero(~fits.sound):
        fits.coef[i], fits.factor[i] = _alone(design, state.targets, weights[i], precision)
    local_design = np.column_stack([np.ones(len(x)), x - state.centre])
    residuals = state.targets - fits.coef @ design.T
    square = np.einsum("ij,ij->i", weights, residuals**2) + fits.coef**2 @ precision
    mass = weights.sum(axis=1)
    noise = (2 * params.prior_rate + square) / (2 * params.prior_shape + mass)
    with np.errstate(over="ignore"):
        spread = (np.matmul(local_design[:, None, :], fits.factor)[:, 0] ** 2).sum(axis=1)
    return Posterior(
        fits.coef, np.einsum("ij,ij->i", local_design, fits.coef), spread * noise, noise, mass, effective_rows(weights)
    )


def _alone(design: Matrix, y: Vector, weights: Vector, precision: Vector) -> tuple[Vector, NDArray[np.float64]]:
    """The same for one query from the singular values of the rows with the prior beneath them."""
    root = np.sqrt(weights)
    rows = np.vstack([design * root[:, None], np.diag(np.sqrt(precision))])
    length = np.sqrt((rows * rows).sum(axis=0))
    u, s, vt = np.linalg.svd(rows / length, full_matrices=False)
    factor = vt.T / np.maximum(s, EPS * s[0]) / length[:, None]
    return factor @ (u.T @ np.append(y * root, np.zeros(len(precision)))), factor


def _freedom(params: BayesianLocallyWeighted, posterior: Posterior) -> Vector:
    return np.asarray((1 if params.dof == "printed" else 2) * params.prior_shape + posterior.mass)


ALGORITHM = Algorithm(
    tasks={Task.REGRESSION},
    params=BayesianLocallyWeighted,
    state=State,
    fit=fit,
    predict=predict,
    seconds=lambda _, size: seconds(size),
    interval=interval,
    interval_of_mean=lambda params: params.interval_of == "mean",
    explain=explain,
    summary=summary,
    breaks={Symmetry.SCALE: "a distance gives a column the weight of its unit: scale the columns alike first"},
)
