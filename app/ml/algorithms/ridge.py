r"""Ridge: a straight-line fit that stays calm when inputs move together.

Minimises  Σ wᵢ(yᵢ − xᵢβ − b)² + λ‖β‖², least squares with a pull of every coefficient towards
zero; the intercept b is free, or, on request, pulled like a coefficient (the literal (λI + XᵀX)⁻¹Xᵀy with a
column of ones in X), or absent. Where inputs are nearly dependent, many coefficients fit equally
well and plain least squares picks among them by rounding and noise; the penalty picks the
shortest. The system is factorised, never inverted, and a singular value decomposition takes over
where the factorisation is not to be trusted. λ = 0 is ordinary least squares. On request cross-validation chooses
λ, along a path of penalties that one decomposition serves: generalised, the one of least error in folds, or the
strongest within one standard error of that.

Classes are fitted as numbers: one score per class, with target +1 for its own rows and −1 for
the others. Probabilities are (1 + score)/2, cut off at 0 and made to sum to 1; where every score is
below −1 the largest takes all. The class with the largest score always comes first.

The penalty is fixed by default. On 120 rows of the benchmark table `wide` the RMSE is then 2.31, scikit-learn's RidgeCV
has 1.69, and `selection` generalised_cross_validation has 1.67; the class error there is 0.303, 0.193 and 0.195.

In short: A weighted sum of the inputs, with a penalty on large weights that keeps it calm when inputs move together.
Cross-validation can choose the penalty.

Use when: the target is roughly a weighted sum of the inputs, when a fit must take milliseconds,
or as the first model that every other one has to beat. Scale the inputs: the penalty counts in their units.

References: Hoerl & Kennard (1970), Technometrics 12:55; Björck (1996), Numerical Methods for Least
Squares Problems; Golub, Heath & Wahba (1979), Technometrics 21:215; Battiti & Brunato, The LION Way, ch. 4.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.faults import Fault
from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Affine,
    Algorithm,
    Context,
    Data,
    Fit,
    Inputs,
    LeaveOneOut,
    LinearForm,
    Matrix,
    Params,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.capacity import planes
from app.ml.contract.sparse_rows import SparseRows, sparse
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.linear_algebra.solve import ILL_CONDITIONED, Solution, each_row, weighted_ridge
from app.ml.numerics.linear_models.class_scores import sign_probabilities
from app.ml.numerics.linear_models.coefficient_errors import as_json, form
from app.ml.numerics.linear_models.fit_memory import ridge_bytes
from app.ml.numerics.linear_models.leave_one_out import left_out
from app.ml.numerics.linear_models.ridge_path import Spectrum, cross_validate
from app.ml.numerics.linear_models.sparse_ridge import sparse_ridge
from app.ml.numerics.linear_models.strength_choice import by_rule
from app.ml.numerics.tensor_graphs.class_tensors import sign_shares


class Ridge(Params):
    """Least squares with a penalty on the squared coefficients."""

    selection: Literal["fixed", "generalised_cross_validation", "lowest_error", "one_standard_error"] = Field(
        "fixed",
        description="Choice of the strength. `fixed`: `l2`; `generalised_cross_validation`: its lowest error; "
        "`lowest_error`: the lowest error of cross-validation in folds; `one_standard_error`: the strongest within one "
        "standard error of the lowest.",
    )
    l2: float = Field(
        1.0,
        ge=0,
        le=1e12,
        description="Penalty for `selection` fixed, beside the sum (not the mean) of squared residuals: minimises "
        "Σ weight·residual² + l2·‖coefficients‖²; 0 is least squares.",
    )
    cv: int = Field(5, ge=2, le=50, description="Number of folds of the cross-validation.")
    fit_intercept: bool = Field(
        True, description="Fits a constant term; without it the prediction is 0 where all inputs are 0."
    )
    penalise_intercept: bool = Field(False, description="Pulls the intercept to zero like a coefficient.")


class Path(NamedTuple):
    """Expected errors for m penalties in descending order; empty if the penalty was given."""

    penalties: NDArray[np.float64]
    errors: NDArray[np.float64]
    """(m,) mean squared errors on rows not seen."""
    spreads: NDArray[np.float64]
    """(m,) their standard errors; (0,) of generalised cross-validation, which has none."""
    degrees: NDArray[np.float64]
    """(m,) effective degrees of freedom."""
    chosen: int = 0


class State(NamedTuple):
    coef: NDArray[np.float64]
    """(d,) for regression, (d, k) for k classes."""
    intercept: NDArray[np.float64]
    """() or (k,)."""
    rank: int
    """The most that it can be, where rows are texts of many terms."""
    condition: float
    """NaN where rows are texts of many terms: it is not known."""
    path: Path = Path(*np.zeros((4, 0)))


def fit(params: Ridge, data: Data, context: Context) -> Fit[State]:
    if (texts := sparse(data.x)) is not None:
        return _of_texts(params, texts, data)
    rows = _with_ones(data) if params.fit_intercept and params.penalise_intercept else data
    free = params.fit_intercept and not params.penalise_intercept
    path = _path(params, rows, context, free=free)
    penalty = _penalty(params, path)
    solution = weighted_ridge(rows.x, data.signs, data.weights, penalty, intercept=free)
    d = data.x.shape[1]
    coef, intercept = solution.coef[:d], solution.intercept if rows is data else solution.coef[d]
    if data.task is Task.REGRESSION:
        coef, intercept = coef[:, 0], np.asarray(intercept)[0]
    state = State(coef, np.asarray(intercept), solution.rank, solution.condition, path)
    return Fit(
        state,
        iterations=1,
        warnings=_warnings(penalty, path, solution, rows.directions(intercept=params.fit_intercept)),
    )


def _of_texts(params: Ridge, rows: SparseRows, data: Data) -> Fit[State]:
    solution = sparse_ridge(rows, data.signs, data.weights, params.l2, intercept=params.fit_intercept)
    coef, intercept = solution.coef, solution.intercept
    if data.task is Task.REGRESSION:
        coef, intercept = coef[:, 0], intercept[0]
    state = State(coef, np.asarray(intercept), solution.rank, solution.condition)
    return Fit(state, solution.converged, solution.iterations)


def faults(params: Ridge, inputs: Inputs) -> Iterator[Fault]:
    if not inputs.texts:
        return
    if params.selection != "fixed":
        yield Fault("/selection", "Texts are learned with a given penalty: set selection to fixed, and l2.")
    elif params.l2 == 0:
        yield Fault("/l2", "Texts have too many terms for least squares without a penalty: set l2 above 0.")
    if params.penalise_intercept:
        yield Fault("/penalise_intercept", "Texts are learned with a free intercept, or without one: set it to false.")


def _with_ones(data: Data) -> Data:
    """With a column of ones behind: an intercept that is a coefficient like others."""
    return replace(data, x=np.column_stack([data.x, np.ones(len(data.x))]), levels=np.append(data.levels, 0))


def _path(params: Ridge, data: Data, context: Context, *, free: bool) -> Path:
    folds = min(params.cv, len(data.x))
    if params.selection == "fixed" or folds < 2:
        return Path(*np.zeros((4, 0)))
    spectrum = Spectrum.of(data.x, data.signs, data.weights, intercept=free)
    grid = spectrum.grid()
    if params.selection == "generalised_cross_validation":
        errors, spreads = spectrum.generalised(grid), np.zeros(0)
    else:
        errors, spreads = cross_validate(data, grid, context.rng.permutation(len(data.x)) % folds, intercept=free)
    path = Path(grid, errors, spreads, spectrum.degrees(grid))
    return path._replace(chosen=by_rule(path.errors, path.spreads, params.selection))


def predict(params: Ridge, state: State, x: Matrix) -> Vector | Matrix:
    score = each_row(x, state.coef) + state.intercept
    return score if state.coef.ndim == 1 else sign_probabilities(score)


def objective(params: Ridge, state: State, data: Data) -> float:
    intercept = state.intercept if params.fit_intercept else np.zeros(())
    residual = data.signs - (data.x @ state.coef + intercept).reshape(data.signs.shape)
    size = (state.coef**2).sum() + params.penalise_intercept * (intercept**2).sum()
    return float(data.weights @ (residual**2).sum(axis=1) + _penalty(params, state.path) * size)


def summary(params: Ridge, state: State, units: Affine | None = None) -> JSON:
    path = state.path
    result: dict[str, JSON] = {
        **form(state.coef, state.intercept, units),
        "rank": int(state.rank),
        "condition_number": float(state.condition) if np.isfinite(state.condition) else None,
        "l2": _penalty(params, state.path),
    }
    if path.penalties.size:
        result["cross_validation"] = {
            "penalties": path.penalties.tolist(),
            "errors": as_json(path.errors),
            "standard_errors": path.spreads.tolist() or None,
            "degrees_of_freedom": path.degrees.tolist(),
            "lowest_error": float(path.penalties[by_rule(path.errors, path.spreads, "lowest_error")]),
            "one_standard_error": float(path.penalties[by_rule(path.errors, path.spreads, "one_standard_error")])
            if path.spreads.size
            else None,
        }
    return result


def _penalty(params: Ridge, path: Path) -> float:
    return float(path.penalties[path.chosen]) if path.penalties.size else params.l2


def without_each(params: Ridge, data: Data) -> NDArray[np.float64]:
    """NaN everywhere where each row without the others would choose a penalty of its own."""
    rows = _with_ones(data) if params.fit_intercept and params.penalise_intercept else data
    free = params.fit_intercept and not params.penalise_intercept
    score = left_out(rows.x, data.signs, data.weights, params.l2, intercept=free)
    if params.selection != "fixed":
        score = np.full_like(score, np.nan)
    return score[:, 0] if data.task is Task.REGRESSION else sign_probabilities(score)


def _warnings(penalty: float, path: Path, solution: Solution, directions: int) -> tuple[str, ...]:
    """A penalty is the cure. directions: what the inputs span unless they depend on each other."""
    if path.penalties.size and penalty in (path.penalties[0], path.penalties[-1]):
        end = "strongest" if penalty == path.penalties[0] else "weakest"
        return (f"Cross-validation chose the {end} of the penalties tried: the best may lie beyond.",)
    deficient, indicators = solution.rank < directions, directions < len(solution.coef)
    if penalty > 0 or solution.condition < ILL_CONDITIONED or (indicators and not deficient):
        return ()
    fault = (
        f"The inputs span only {solution.rank} of {directions} dimensions"
        if deficient
        else f"The inputs are nearly dependent (condition number {solution.condition:.1e})"
    )
    return (f"{fault}: use a penalty above 0 (ridge) for coefficients that small changes of the data leave alone.",)


def _memory(params: Ridge, size: Size) -> float:
    ones = 9.0 * size.cells if params.penalise_intercept else 0.0
    return ones + ridge_bytes(size, params.l2 if params.selection == "fixed" else None)


def to_tensor(params: Ridge, state: State, x: Tensor) -> Tensor:
    score = x @ state.coef + state.intercept
    return score if state.coef.ndim == 1 else sign_shares(score)


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    accepts={Accepts.INDICATORS, Accepts.SPARSE},
    params=Ridge,
    faults=faults,
    state=State,
    degrees=lambda _: True,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    through_origin=lambda params: not params.fit_intercept,
    seconds=lambda _, size: size.cells * (1e-8 + 1e-10 * size.columns),
    memory=_memory,
    rowwise=True,
    linear=lambda state: LinearForm.of(state.coef, state.intercept),
    capacity=planes,
    least_squares=True,
    objective=objective,
    summary=summary,
    leave_one_out=LeaveOneOut(
        without_each, unscaled=lambda params: params.l2 == 0 and params.fit_intercept and not params.penalise_intercept
    ),
    unscaled=summary,
    breaks={Symmetry.SCALE: "the penalty counts coefficients in the units of their columns"},
)
