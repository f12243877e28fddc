r"""Lasso: a weighted sum of few inputs; the others get a coefficient of exactly zero.

Minimises  Σ wᵢ(yᵢ − xᵢβ − b)² / 2Σ wᵢ + λ‖β‖₁, with free intercept b or none, or the squares subject to ‖β‖₁ ≤ t. The
absolute values pull every coefficient towards zero by the same amount, so that weak ones arrive there. Coordinate
descent with soft threshold λΣ wᵢ on the coefficients that are not zero, then an exact solution for these; a path of
penalties is followed down from λ = max|Σ wᵢxᵢⱼyᵢ|/Σ wᵢ, where all are zero, each fit starting from the last. A fit
stops when the duality gap proves it close to the minimum. With more columns than rows, or very many, products are
computed of those columns alone that may leave zero, and the gradient of all shows that no other has to. On request λ
is chosen by cross-validation: the best one, or the largest within one standard error of the best.

The penalty is fixed by default. On 120 rows of the benchmark table `wide` the RMSE is then 2.44, and that of
scikit-learn's LassoCV, which chooses its penalty, 1.79: `selection` lowest_error or one_standard_error does so here.

In short: A weighted sum of the inputs, with a penalty on the sizes of the weights that makes many of them exactly
zero. The whole path of penalties is shown, and cross-validation can choose.

Use when: only some of many inputs matter and the model shall select them. Scale the inputs: the penalty counts in
their units. Among inputs that move together the choice is unstable; `ridge` keeps all of them.

References: Tibshirani (1996), J. Roy. Statist. Soc. B 58:267; Friedman, Hastie & Tibshirani (2010), J. Stat.
Softw. 33(1); Battiti & Brunato, The LION Way, ch. 8.
"""

import math
from collections.abc import Iterator, Sequence
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
    Labels,
    LinearForm,
    Matrix,
    Params,
    Progress,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.linear_algebra.solve import each_row
from app.ml.numerics.linear_models import lasso_path
from app.ml.numerics.linear_models.coefficient_errors import as_json, form
from app.ml.numerics.linear_models.fit_memory import lasso_bytes
from app.ml.numerics.linear_models.fold_sums import mean_losses
from app.ml.numerics.linear_models.lasso_bound import at_bound
from app.ml.numerics.linear_models.lasso_designs import (
    MAX_PRODUCT_COLUMNS,
    MAX_SPARSE_COLUMNS,
    Design,
    Fold,
    designs,
)
from app.ml.numerics.linear_models.lasso_path import Problem
from app.ml.numerics.linear_models.strength_choice import by_rule

STEPS, REACH = 40, 1e-3
"""Penalties on the path, and the last of them as a share of the first."""
FOLD_TOL = 1e-7
"""Duality gap at which the best penalty is known."""


class Lasso(Params):
    """Least squares with a penalty on the absolute coefficients, or a bound of their sum."""

    selection: Literal["fixed", "bound", "lowest_error", "one_standard_error"] = Field(
        "fixed",
        description="Choice of the strength. `fixed`: `l1`; `bound`: `bound`; `lowest_error`: the lowest "
        "cross-validated error; `one_standard_error`: the strongest within one standard error of the lowest.",
    )
    l1: float | None = Field(
        None,
        gt=0,
        le=1e12,
        description="Penalty for `selection` fixed, beside the mean (not the sum) of the losses: minimises "
        "(Σ weight·½residual²)/(Σ weight) + l1·Σ|coefficient|. Null: 1/(2·Σ weight).",
    )
    bound: float = Field(1.0, gt=0, le=1e12, description="Largest sum of absolute coefficients, for `selection` bound.")
    cv: int = Field(5, ge=2, le=50, description="Number of folds of the cross-validation.")
    fit_intercept: bool = Field(
        True, description="Fits a constant term; without it the prediction is 0 where all inputs are 0."
    )
    penalise_intercept: bool = Field(False, description="Pulls the intercept to zero like a coefficient.")
    tol: float = Field(
        1e-10, gt=0, le=1e-2, description="Stop when the duality gap is at most this share of the objective."
    )
    max_iter: int = Field(10_000, ge=1, le=1_000_000, description="Maximum number of sweeps for one strength.")


LISTED = 100_000
"""Coefficients of a path in the report; one of more has none."""


class Path(NamedTuple):
    """The fits of m penalties in descending order."""

    penalties: NDArray[np.float64]
    """(m,) on the scale of `l1`."""
    coefs: NDArray[np.float64]
    """(m, d)."""
    gaps: NDArray[np.float64]
    """(m,) relative duality gaps."""
    errors: NDArray[np.float64]
    """(m,) mean squared errors of cross-validation; (0,) without it."""
    spreads: NDArray[np.float64]
    """(m,) their standard errors."""
    chosen: int


class State(NamedTuple):
    coef: NDArray[np.float64]
    """(d,)."""
    intercept: NDArray[np.float64]
    """()."""
    path: Path


def fit(params: Lasso, data: Data, context: Context) -> Fit[State]:
    left = _left_out(params, len(data.x), context.rng)
    design, folds = designs(data, left, free=_free(params), pulled=_pulled(params))
    penalties = _penalties(params, design)
    solutions = _follow(params, design.problem, penalties)
    errors = spreads = np.zeros(0)
    if params.selection == "bound":
        penalties, solutions, chosen = at_bound(
            design.problem, penalties, solutions, params.bound, tol=params.tol, max_iter=params.max_iter
        )
    elif params.selection == "fixed":
        chosen = len(penalties) - 1
    else:
        errors, spreads = _cross_validate(params, data, folds, penalties, context.progress)
        chosen = by_rule(errors, spreads, params.selection)
    coefs, intercepts = _coefficients(params, design, solutions.coefs)
    path = Path(penalties / (2 * design.weight), coefs, solutions.gaps, errors, spreads, chosen)
    converged = bool((solutions.gaps <= params.tol).all())
    return Fit(
        State(coefs[chosen].copy(), np.asarray(intercepts[chosen]), path), converged, int(solutions.sweeps.sum())
    )


def predict(params: Lasso, state: State, x: Matrix) -> Vector:
    return each_row(x, state.coef) + state.intercept


def objective(params: Lasso, state: State, data: Data) -> float:
    constant = state.intercept if params.fit_intercept else 0.0
    square = np.average((data.y - data.x @ state.coef - constant) ** 2, weights=data.weights) / 2
    size = np.abs(state.coef).sum() + _pulled(params) * np.abs(state.intercept)
    if params.selection == "bound":
        return float(square) if size <= params.bound * (1 + 1e-8) else float("inf")
    return float(square + state.path.penalties[state.path.chosen] * size)


def summary(params: Lasso, state: State, units: Affine | None = None) -> JSON:
    path = state.path
    linear = form(state.coef, state.intercept, units)
    selected = np.flatnonzero(state.coef).tolist()
    coefs = path.coefs if units is None else units.coef(path.coefs.T).T
    result = {
        **linear,
        "selected": selected,
        "selected_columns": [{"column": j, "coefficient": linear["coefficients"][j]} for j in selected],
        "l1": float(path.penalties[path.chosen]),
        "bound": float(np.abs(state.coef).sum()),
        "duality_gap": float(path.gaps[path.chosen]),
        "path": {
            "penalties": path.penalties.tolist(),
            "selected": (path.coefs != 0).sum(axis=1).tolist(),
            "coefficients": as_json(coefs) if coefs.size <= LISTED else None,
            "sizes": np.abs(path.coefs).sum(axis=1).tolist(),
            "duality_gaps": path.gaps.tolist(),
        },
    }
    if path.errors.size:
        best, modest = (by_rule(path.errors, path.spreads, rule) for rule in ("lowest_error", "one_standard_error"))
        result["cross_validation"] = {
            "errors": path.errors.tolist(),
            "standard_errors": path.spreads.tolist(),
            "lowest_error": float(path.penalties[best]),
            "one_standard_error": float(path.penalties[modest]),
        }
    return result


def _free(params: Lasso) -> bool:
    """True if there is an intercept without a penalty."""
    return params.fit_intercept and not params.penalise_intercept


def _pulled(params: Lasso) -> bool:
    """True if there is an intercept that counts as a coefficient."""
    return params.fit_intercept and params.penalise_intercept


def _coefficients(params: Lasso, design: Design, coefs: Matrix) -> tuple[Matrix, Vector]:
    """Coefficients of the inputs (m, d), and the intercepts (m,)."""
    if _pulled(params):
        return coefs[:, :-1].copy(), coefs[:, -1]
    return coefs, design.means.target - coefs @ design.means.inputs


def _penalties(params: Lasso, design: Design) -> Vector:
    """From the first one down, or down to the one that is given; beside the sum of squared residuals."""
    largest, lowest = design.problem.largest, REACH
    penalty = 1.0 if params.l1 is None else 2 * design.weight * params.l1
    if params.selection == "fixed" and largest > 0:
        lowest = float(np.clip(penalty / largest, REACH, 1.0))
    grid = largest * np.geomspace(1, lowest, STEPS) if largest > 0 else np.ones(1)
    if params.selection == "fixed":
        grid = np.append(grid[grid > penalty * (1 + 1e-9)], penalty)
    return np.unique(grid)[::-1].copy()


def _follow(params: Lasso, problem: Problem, penalties: Vector, *, rough: bool = False) -> lasso_path.Path:
    """From strong to weak, each fit starting from the last."""
    tol = max(params.tol, FOLD_TOL) if rough else params.tol
    return problem.follow(penalties, np.zeros(problem.columns), tol, params.max_iter)


def _left_out(params: Lasso, n: int, rng: np.random.Generator) -> list[Labels]:
    """The rows of each fold; none without cross-validation, or with one row."""
    folds = min(params.cv, n)
    if params.selection in {"fixed", "bound"} or folds < 2:
        return []
    fold = rng.permutation(n) % folds
    return [np.flatnonzero(fold == k) for k in range(folds)]


def _cross_validate(
    params: Lasso, data: Data, folds: Sequence[Fold], penalties: Vector, progress: Progress
) -> tuple[Vector, Vector]:
    """Mean squared error of each penalty on rows not fitted, and its standard error over folds.

    A penalty counts against a sum over rows: on part of them it shrinks with their weight.
    """
    if not folds:
        return np.zeros(len(penalties)), np.zeros(len(penalties))
    losses = np.empty((len(folds), len(penalties)))
    for k, (rows, make) in enumerate(folds):
        design = make()
        solutions = _follow(params, design.problem, penalties * design.weight / data.weights.sum(), rough=True)
        losses[k] = mean_losses(data, rows, *_coefficients(params, design, solutions.coefs))
        progress((k + 1) / len(folds))
    return losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(len(folds))


def _seconds(params: Lasso, size: Size) -> float:
    """Sums of products, or gradients of all columns, and a path for each fold: with few rows it takes many sweeps."""
    n, d = size.rows, size.columns
    paths = 0.6 if params.selection in {"fixed", "bound"} else 1 + params.cv
    if d > min(n, MAX_PRODUCT_COLUMNS):
        return size.cells * (1e-8 + 3e-9 * paths * STEPS)
    sweeps = STEPS * 1000 / (1 + 5 * (n / d) * math.sqrt(n / d))
    return size.cells * (1e-8 + 1e-10 * d) + 4e-10 * paths * sweeps * min(n, d) * d


def _memory(params: Lasso, size: Size) -> float:
    folds = params.cv if params.selection != "fixed" else 0
    by_rows = size.columns > min(size.rows, MAX_PRODUCT_COLUMNS)
    needed = lasso_bytes(size, folds, by_rows=by_rows)
    if by_rows and size.indicators and size.columns <= MAX_SPARSE_COLUMNS:  # rows may be sparse
        return max(needed, lasso_bytes(size, folds, by_rows=False))
    return needed


def _faults(_: Lasso, inputs: Inputs) -> Iterator[Fault]:
    if inputs.texts and inputs.size.columns > MAX_SPARSE_COLUMNS:
        yield Fault("", f"Sparse rows of more than {MAX_SPARSE_COLUMNS} columns are not learned from.")


def to_tensor(params: Lasso, state: State, x: Tensor) -> Tensor:
    return x @ state.coef + state.intercept


ALGORITHM = Algorithm(
    tasks={Task.REGRESSION},
    accepts={Accepts.INDICATORS},
    faults=_faults,
    params=Lasso,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    through_origin=lambda params: not params.fit_intercept,
    seconds=_seconds,
    memory=_memory,
    rowwise=True,
    linear=lambda state: LinearForm.of(state.coef, state.intercept),
    least_squares=True,
    objective=objective,
    summary=summary,
    unscaled=summary,
    breaks={Symmetry.SCALE: "the penalty counts coefficients in the units of their columns"},
)
