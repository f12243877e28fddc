r"""Lasso: a weighted sum of few inputs; the others get a coefficient of exactly zero.

Minimises  Σ wᵢ(yᵢ − xᵢβ − b)² + λ‖β‖₁, with free intercept b, or the sum of squares alone subject to  ‖β‖₁ ≤ t. The
absolute values pull every coefficient towards zero by the same amount, so that weak ones arrive there. Coordinate
descent with soft threshold λ/2 on the coefficients that are not zero, then an exact solution for these; a
path of penalties is followed down from λ = 2 max|xⱼ·y|, where all are zero, each fit starting from the
last. A fit stops when the duality gap proves it close to the minimum. On request λ is chosen by cross-validation:
the best one, or the largest within one standard error of the best.

Use when: only some of many inputs matter and the model shall say which. Scale the inputs: the penalty counts in
their units. Among inputs that move together the choice is unstable; `ridge` keeps all of them.

References: Tibshirani (1996), J. Roy. Statist. Soc. B 58:267; Friedman, Hastie & Tibshirani (2010), J. Stat.
Softw. 33(1); Battiti & Brunato, The LION Way, ch. 8.
"""

from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract import JSON, Algorithm, Context, Data, Fit, Matrix, Params, Symmetry, Task, Vector
from app.ml.numerics.lasso import Moments, Point, solve_lasso
from app.ml.numerics.linalg import centred, each_row

STEPS, REACH = 40, 1e-3
"""Penalties on the path, and the last of them as a share of the first."""
WEAKEST = 1e-9
"""The share of the first penalty below which a bound does not bind."""


class Lasso(Params):
    """Least squares with a penalty on the absolute coefficients, or a bound of their sum."""

    choice: Literal["penalty", "bound", "best", "one_standard_error"] = Field(
        "penalty",
        description="What fixes the strength: the penalty, the bound, or one of two rules of cross-validation.",
    )
    penalty: float = Field(1.0, gt=0, le=1e12, description="Weight of the absolute coefficients, if chosen so.")
    bound: float = Field(1.0, gt=0, le=1e12, description="Largest sum of the absolute coefficients, if chosen so.")
    folds: int = Field(5, ge=2, le=20, description="Parts of the rows in cross-validation.")
    penalise_intercept: bool = Field(False, description="Whether the intercept is pulled to zero like a coefficient.")
    tol: float = Field(1e-10, gt=0, le=1e-2, description="Duality gap to stop at, as a share of the objective.")
    max_iter: int = Field(10_000, ge=1, le=1_000_000, description="Most sweeps over the coefficients for one penalty.")


class Path(NamedTuple):
    """The fits of m penalties in descending order."""

    penalties: NDArray[np.float64]
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


class Design(NamedTuple):
    """Rows ready for the solver."""

    moments: Moments
    mean: Vector
    """(d,) of the inputs, zero if the intercept is a coefficient."""
    middle: float
    """Mean of the target, likewise."""


def fit(params: Lasso, data: Data, context: Context) -> Fit[State]:
    design = _design(params, data)
    penalties = _penalties(params, design.moments)
    points = _follow(params, design.moments, penalties)
    errors = spreads = np.zeros(0)
    if params.choice == "bound":
        penalties, points, chosen = _bounded(params, design.moments, penalties, points)
    elif params.choice == "penalty":
        chosen = int(np.flatnonzero(penalties == params.penalty)[0])
    else:
        errors, spreads = _cross_validate(params, data, penalties, context)
        chosen = _choose(params, errors, spreads)
    coefs = np.array([point.coef for point in points])
    coef, intercept = _told(params, design, coefs[chosen])
    gaps = np.array([point.gap for point in points])
    path = Path(penalties, coefs[:, : data.x.shape[1]], gaps, errors, spreads, chosen)
    converged = bool((gaps <= params.tol).all())
    return Fit(State(coef, np.asarray(intercept), path), converged, sum(point.sweeps for point in points))


def predict(params: Lasso, state: State, x: Matrix) -> Vector:
    return each_row(x, state.coef) + state.intercept


def objective(params: Lasso, state: State, data: Data) -> float:
    square = data.weights @ (data.y - predict(params, state, data.x)) ** 2
    size = np.abs(state.coef).sum() + params.penalise_intercept * np.abs(state.intercept)
    if params.choice == "bound":
        return float(square) if size <= params.bound * (1 + 1e-8) else float("inf")
    return float(square + state.path.penalties[state.path.chosen] * size)


def summary(params: Lasso, state: State) -> JSON:
    path = state.path
    told = {
        "coefficients": state.coef.tolist(),
        "intercept": state.intercept.tolist(),
        "selected": np.flatnonzero(state.coef).tolist(),
        "penalty": float(path.penalties[path.chosen]),
        "bound": float(np.abs(state.coef).sum()),
        "duality_gap": float(path.gaps[path.chosen]),
        "path": {
            "penalties": path.penalties.tolist(),
            "selected": (path.coefs != 0).sum(axis=1).tolist(),
            "sizes": np.abs(path.coefs).sum(axis=1).tolist(),
            "duality_gaps": path.gaps.tolist(),
        },
    }
    if path.errors.size:
        best, modest = (
            _choose(params.model_copy(update={"choice": choice}), path.errors, path.spreads)
            for choice in ("best", "one_standard_error")
        )
        told["cross_validation"] = {
            "errors": path.errors.tolist(),
            "standard_errors": path.spreads.tolist(),
            "best": float(path.penalties[best]),
            "one_standard_error": float(path.penalties[modest]),
        }
    return told


def _design(params: Lasso, data: Data) -> Design:
    d = data.x.shape[1]
    root = np.sqrt(data.weights)
    if params.penalise_intercept:
        x, mean = np.column_stack([data.x, np.ones(len(data.x))]), np.zeros(d)
        y, middle = data.y, 0.0
    else:
        (x, mean), (target, means) = centred(data.x, data.weights), centred(data.targets, data.weights)
        y, middle = target[:, 0], float(means[0])
    a, b = x * root[:, None], y * root
    return Design(Moments(a.T @ a, a.T @ b, float(b @ b)), mean, middle)


def _told(params: Lasso, design: Design, coef: Vector) -> tuple[Vector, float]:
    """Coefficients of the inputs, and the intercept."""
    if params.penalise_intercept:
        return coef[:-1], float(coef[-1])
    return coef, design.middle - float(design.mean @ coef)


def _penalties(params: Lasso, moments: Moments) -> Vector:
    grid = moments.largest * np.geomspace(1, REACH, STEPS) if moments.largest > 0 else np.ones(1)
    if params.choice == "penalty":
        grid = np.append(grid, params.penalty)
    return np.unique(grid)[::-1].copy()


def _follow(params: Lasso, moments: Moments, penalties: Vector) -> list[Point]:
    """From strong to weak, each fit starting from the last."""
    points, start = [], np.zeros(len(moments.product))
    for penalty in penalties:
        points.append(solve_lasso(moments, float(penalty), start, params.tol, params.max_iter))
        start = points[-1].coef
    return points


def _bounded(
    params: Lasso, moments: Moments, penalties: Vector, points: list[Point]
) -> tuple[Vector, list[Point], int]:
    """The path with the penalty whose coefficients have the size of the bound; the weakest if none is so large."""
    within = [np.abs(point.coef).sum() <= params.bound for point in points]
    after = within.index(False) if False in within else len(points)
    start = points[after - 1].coef

    def at(penalty: float) -> Point:
        return solve_lasso(moments, penalty, start, params.tol, params.max_iter)

    def excess(penalty: float) -> float:
        return float(np.abs(at(penalty).coef).sum() - params.bound)

    weak = float(penalties[after]) if after < len(points) else float(penalties[0]) * WEAKEST
    if excess(weak) > 0:
        weak = float(scipy.optimize.brentq(excess, weak, float(penalties[after - 1]), xtol=1e-300, rtol=1e-14))
    places = np.insert(penalties, after, weak)
    return places, [*points[:after], at(weak), *points[after:]], after


def _cross_validate(params: Lasso, data: Data, penalties: Vector, context: Context) -> tuple[Vector, Vector]:
    """Mean squared error of each penalty on rows not fitted, and its standard error over folds.

    A penalty counts against a sum over rows: on part of them it shrinks with their weight.
    """
    n, folds = len(data.x), min(params.folds, len(data.x))
    if folds < 2:
        return np.zeros(len(penalties)), np.zeros(len(penalties))
    fold = context.rng.permutation(n) % folds
    losses = np.empty((folds, len(penalties)))
    for k in range(folds):
        kept, left = data.take(fold != k), data.take(fold == k)
        design = _design(params, kept)
        points = _follow(params, design.moments, penalties * kept.weights.sum() / data.weights.sum())
        for place, point in enumerate(points):
            coef, intercept = _told(params, design, point.coef)
            losses[k, place] = np.average((left.y - left.x @ coef - intercept) ** 2, weights=left.weights)
        context.progress((k + 1) / folds)
    return losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(folds)


def _choose(params: Lasso, errors: Vector, spreads: Vector) -> int:
    best = int(errors.argmin())
    if params.choice == "best":
        return best
    return int((errors <= errors[best] + spreads[best]).argmax())


ALGORITHM = Algorithm(
    tasks={Task.REGRESSION},
    params=Lasso,
    state=State,
    fit=fit,
    predict=predict,
    rowwise=True,
    objective=objective,
    summary=summary,
    breaks={Symmetry.SCALE: "the penalty counts coefficients in the units of their columns"},
)
