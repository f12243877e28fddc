r"""Linear regression: a weighted sum of the inputs, with the error of every coefficient.

Minimises  Σ wᵢ(yᵢ − xᵢβ − b)²  by orthogonal factorisations, never by inverting XᵀX; where many coefficients fit
equally well it takes the shortest. A row of weight w has noise of standard deviation σ/√w: a measured error σᵢ per row
is given as the weight 1/σᵢ² with `sigma` 1, and then the sum is χ², its size against the ν = N − M degrees of freedom
shows whether model and errors are plausible (Q), and the coefficient covariance is (XᵀWX)⁻¹. Without `sigma` the
weights count only relative to each other, σ² is estimated as χ²/ν, and there is nothing left to test the fit by. All
of it assumes independent normal errors.

Classes are fitted as numbers: one score per class, with target +1 for its own rows and −1 for the others;
probabilities are (1 + score)/2, cut off at 0 and made to sum to 1. Their errors are not normal, and not reported.

In short: A weighted sum of the inputs plus a constant, found by least squares. Every coefficient comes with its
error, and the fit with its goodness.

Use when: the target is roughly a weighted sum of the inputs and the coefficients themselves, with their errors,
are of interest. Sizes of coefficients compare only for inputs on one scale. For dependent inputs take `ridge`.

References: Press et al. (2007), Numerical Recipes, ch. 15; Björck (1996), Numerical Methods for Least Squares Problems;
Battiti & Brunato, The LION Way, ch. 4 and 5.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Affine,
    Algorithm,
    Context,
    Data,
    Fit,
    LeaveOneOut,
    LinearForm,
    Matrix,
    Params,
    Task,
    Vector,
)
from app.ml.contract.capacity import planes
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.linear_algebra.least_squares import least_squares
from app.ml.numerics.linear_algebra.solve import ILL_CONDITIONED, Solution, each_row
from app.ml.numerics.linear_models.class_scores import sign_probabilities
from app.ml.numerics.linear_models.coefficient_errors import Inference, as_json, form
from app.ml.numerics.linear_models.fit_memory import ridge_bytes
from app.ml.numerics.linear_models.leave_one_out import left_out
from app.ml.numerics.tensor_graphs.class_tensors import sign_shares


class Linear(Params):
    """Least squares."""

    fit_intercept: bool = Field(
        True, description="Fits a constant term; without it the prediction is 0 where all inputs are 0."
    )
    sigma: float | None = Field(
        None,
        le=1e100,
        ge=1e-100,
        description="Noise (standard deviation) of a row of weight 1: 1 for weights of 1/σ². Null: estimated.",
    )
    interval_of: Literal["mean", "observation"] = Field(
        "observation",
        description="Target of a prediction interval: `observation`, a new row of weight 1 with its noise, or `mean`, "
        "the expected value there.",
    )


class State(NamedTuple):
    coef: NDArray[np.float64]
    """(d,) for regression, (d, k) for k classes."""
    intercept: NDArray[np.float64]
    """() or (k,)."""
    rank: int
    condition: float
    rows: int
    square: NDArray[np.float64]
    """() or (k,) the weighted sum of squared residuals."""
    weight: float
    """Sum of the row weights."""
    log_weight: float
    """Sum of their logarithms."""
    mean: NDArray[np.float64]
    """(d,) weighted means of the inputs; zero without an intercept."""
    factor: NDArray[np.float64]
    """(d, r): FFᵀ is the covariance of the coefficients for noise of variance 1/weight."""


def fit(params: Linear, data: Data, context: Context) -> Fit[State]:
    solution, factor = least_squares(data.x, data.signs, data.weights, params.fit_intercept)
    coef, intercept, square = solution.coef, solution.intercept, solution.square
    if data.task is Task.REGRESSION:
        coef, intercept, square = coef[:, 0], np.asarray(intercept[0]), np.asarray(square[0])
    weight, log_weight = float(data.weights.sum()), float(np.log(data.weights).sum())
    state = State(
        coef,
        intercept,
        solution.rank,
        solution.condition,
        len(data.x),
        square,
        weight,
        log_weight,
        solution.mean,
        factor,
    )
    return Fit(state, iterations=1, warnings=_warnings(params, solution, data))


def predict(params: Linear, state: State, x: Matrix) -> Vector | Matrix:
    score = each_row(x, state.coef) + state.intercept
    return score if state.coef.ndim == 1 else sign_probabilities(score)


def interval(params: Linear, state: State, x: Matrix, confidence: float) -> Matrix:
    """Interval of the mean at x, or of a new row with its noise; unbounded where the noise cannot be estimated."""
    noise_share = 1.0 if params.interval_of == "observation" else 0.0
    reach = _inference(params, state).reach(x - state.mean, confidence, noise_share)
    middle = predict(params, state, x)
    return np.column_stack([middle - reach, middle + reach])


def objective(params: Linear, state: State, data: Data) -> float:
    intercept = state.intercept if params.fit_intercept else 0.0
    residual = data.signs - (data.x @ state.coef + intercept).reshape(data.signs.shape)
    return float(data.weights @ (residual**2).sum(axis=1))


def summary(params: Linear, state: State, units: Affine | None = None) -> JSON:
    ground = {
        **form(state.coef, state.intercept, units),
        "rank": int(state.rank),
        "condition_number": as_json(state.condition),
    }
    return ground if state.coef.ndim == 2 else {**ground, **_inference(params, state).summary(units)}


def without_each(params: Linear, data: Data) -> NDArray[np.float64]:
    score = left_out(data.x, data.signs, data.weights, 0.0, intercept=params.fit_intercept)
    return score[:, 0] if data.task is Task.REGRESSION else sign_probabilities(score)


def _inference(params: Linear, state: State) -> Inference:
    return Inference(
        coef=state.coef,
        intercept=float(state.intercept) if params.fit_intercept else None,
        factor=state.factor,
        mean=state.mean,
        weight=state.weight,
        log_weight=state.log_weight,
        square=float(state.square),
        rows=state.rows,
        sigma=params.sigma,
    )


def _warnings(params: Linear, solution: Solution, data: Data) -> list[str]:
    warnings = []
    n, directions = len(data.x), data.directions(intercept=params.fit_intercept)
    if n <= (parameters := directions + params.fit_intercept):
        warnings.append(
            f"{n} rows for {parameters} parameters: the fit runs through all of them and swings freely between; "
            "use fewer inputs or ridge."
        )
    if solution.rank < directions:
        warnings.append(
            f"The inputs span only {solution.rank} of {directions} dimensions: use ridge, or drop the dependent ones."
        )
    elif solution.rank == data.x.shape[1] and solution.condition >= ILL_CONDITIONED:
        warnings.append(
            f"The inputs are nearly dependent (condition number {solution.condition:.1e}, numerical rank "
            f"{solution.rank}): use ridge for coefficients that small changes of the data leave alone."
        )
    return warnings


def to_tensor(params: Linear, state: State, x: Tensor) -> Tensor:
    score = x @ state.coef + state.intercept
    return score if state.coef.ndim == 1 else sign_shares(score)


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=Linear,
    state=State,
    degrees=lambda _: True,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    through_origin=lambda params: not params.fit_intercept,
    seconds=lambda _, size: size.cells * (1e-8 + 4e-10 * size.columns),
    memory=lambda _, size: ridge_bytes(size, 0.0),
    rowwise=True,
    linear=lambda state: LinearForm.of(state.coef, state.intercept),
    capacity=planes,
    least_squares=True,
    with_errors=lambda params: params.model_copy(update={"sigma": params.sigma or 1.0}),
    objective=objective,
    interval=interval,
    interval_of_mean=lambda params: params.interval_of == "mean",
    summary=summary,
    leave_one_out=LeaveOneOut(without_each, unscaled=lambda params: params.fit_intercept),
    unscaled=summary,
)
