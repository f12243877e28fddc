r"""Ridge: a straight-line fit that stays calm when inputs move together.

Minimises  Σ wᵢ(yᵢ − xᵢβ − b)² + λ‖β‖², least squares with a pull of every coefficient towards
zero; the intercept b is free. Where inputs are nearly dependent, many coefficients fit equally
well and plain least squares picks among them by rounding and noise; the penalty picks the
shortest. The system is factorised, never inverted, and a singular value decomposition takes over
where the factorisation is not to be trusted. λ = 0 is ordinary least squares.

Classes are fitted as numbers: one score per class, with target +1 for its own rows and −1 for
the others. Probabilities are (1 + score)/2, cut off at 0 and made to sum to 1; where every score is
below −1 the largest takes all. The class with the largest score always comes first.

Use when: the target is roughly a weighted sum of the inputs, when a fit must take milliseconds,
or as the first model that every other one has to beat. Scale the inputs: the penalty counts in their units.

References: Hoerl & Kennard (1970), Technometrics 12:55; Björck (1996), Numerical Methods for Least
Squares Problems; Battiti & Brunato, The LION Way, ch. 4.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract import (
    JSON,
    Affine,
    Algorithm,
    Context,
    Data,
    Fit,
    LeaveOneOut,
    Matrix,
    Params,
    Symmetry,
    Task,
    Vector,
)
from app.ml.numerics.inference import form
from app.ml.numerics.leave_one_out import left_out
from app.ml.numerics.linalg import ILL_CONDITIONED, Solution, each_row, weighted_ridge
from app.ml.numerics.scores import sign_probabilities


class Ridge(Params):
    """Least squares with a penalty on the squared coefficients."""

    penalty: float = Field(1.0, ge=0, le=1e12, description="Weight of the squared coefficients; 0 is least squares.")


class State(NamedTuple):
    coef: NDArray[np.float64]
    """(d,) for regression, (d, k) for k classes."""
    intercept: NDArray[np.float64]
    """() or (k,)."""
    rank: int
    condition: float


def fit(params: Ridge, data: Data, context: Context) -> Fit[State]:
    solution = weighted_ridge(data.x, data.signs, data.weights, params.penalty)
    coef, intercept = solution.coef, solution.intercept
    if data.task is Task.REGRESSION:
        coef, intercept = coef[:, 0], intercept[0]
    state = State(coef, np.asarray(intercept), solution.rank, solution.condition)
    return Fit(state, iterations=1, warnings=_warnings(params, solution, data.x.shape[1]))


def predict(params: Ridge, state: State, x: Matrix) -> Vector | Matrix:
    score = each_row(x, state.coef) + state.intercept
    return score if state.coef.ndim == 1 else sign_probabilities(score)


def objective(params: Ridge, state: State, data: Data) -> float:
    residual = data.signs - (data.x @ state.coef + state.intercept).reshape(data.signs.shape)
    return float(data.weights @ (residual**2).sum(axis=1) + params.penalty * (state.coef**2).sum())


def summary(params: Ridge, state: State, units: Affine | None = None) -> JSON:
    return {
        **form(state.coef, state.intercept, units),
        "rank": int(state.rank),
        "condition_number": float(state.condition) if np.isfinite(state.condition) else None,
    }


def _warnings(params: Ridge, solution: Solution, d: int) -> tuple[str, ...]:
    """A penalty is the cure; without one the coefficients of dependent inputs are anybody's."""
    if params.penalty > 0 or solution.condition < ILL_CONDITIONED:
        return ()
    fault = (
        f"The inputs span only {solution.rank} of {d} dimensions"
        if solution.rank < d
        else f"The inputs are nearly dependent (condition number {solution.condition:.1e})"
    )
    return (f"{fault}: use a penalty above 0 (ridge) for coefficients that small changes of the data leave alone.",)


def without_each(params: Ridge, data: Data) -> NDArray[np.float64]:
    score = left_out(data.x, data.signs, data.weights, params.penalty, intercept=True)
    return score[:, 0] if data.task is Task.REGRESSION else sign_probabilities(score)


ALGORITHM = Algorithm(
    tasks={Task.REGRESSION, Task.CLASSIFICATION},
    params=Ridge,
    state=State,
    fit=fit,
    predict=predict,
    rowwise=True,
    objective=objective,
    summary=summary,
    leave_one_out=LeaveOneOut(without_each, unscaled=lambda params: params.penalty == 0),
    unscaled=summary,
    breaks={Symmetry.SCALE: "the penalty counts coefficients in the units of their columns"},
)
