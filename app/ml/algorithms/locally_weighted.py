r"""Locally weighted regression: a plane for every predicted row, fitted to the training rows near it.

Minimises, for each query q anew,  Σ ωᵢ sᵢ² (yᵢ − b − (xᵢ − q)β)²  with nearness sᵢ = exp(−‖xᵢ − q‖²/W) and row weights
ω, and predicts b. W is the kernel width, in units of squared distance: a wide kernel is one plane for all, a narrow one
repeats the nearest rows. The book's solution weighs by s², as here; the sum that it prints would weigh by s, as s² does
with 2W, and is selected by `weighting`. Nothing is learned but W: rows are kept, and each prediction fits its plane.

Weights count relative to the nearest row, so that a query far from all of them has a prediction: that of the plane
through the nearest ones. Where these do not determine a plane, it is the flattest of those that fit. Without a width
the one is taken that predicts rows left out best.

A plane without a penalty follows single large errors: on the benchmark table `heavy_tails` the RMSE is 4.32, that of
scikit-learn's KernelRidge with cross-validation 4.11, and 4.14 with `bayesian_locally_weighted`, which shrinks slopes.

In short: Around every predicted row, a plane is fitted to the training rows, the near ones counting more. The plane's
value there is the prediction, and its slopes are the local effects.

Use when: the target bends in a form that no formula is known for, columns are few and scaled alike, and the local
slopes are of interest. For error bars take `bayesian_locally_weighted`.

The parabola 0, 1, 4, 9 about 2.5, by both weightings:

>>> import numpy as np
>>> rows = Data.of(Task.REGRESSION, [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0])
>>> for weighting in "s2", "s":
...     params = LocallyWeighted(width=1, weighting=weighting)
...     print(f"{predict(params, fit(params, rows, Context.of(0)).state, np.array([[2.5]]))[0]:.7f}")
6.5167943
6.5827444

References: Cleveland & Devlin (1988), J. Amer. Statist. Assoc. 83:596; Atkeson, Moore & Schaal (1997), Artif. Intell.
Rev. 11:11; Battiti & Brunato, The LION Way, ch. 8.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.ml.contract.algorithm import JSON, Algorithm, Context, Data, Fit, Matrix, Params, Symmetry, Task, Vector
from app.ml.numerics.effective_rows import effective_rows
from app.ml.numerics.linear_algebra.solve import EPS, centred, weighted_ridge
from app.ml.numerics.linear_models.local_regression import blocks, choose_width, local_fits, relative_weights, seconds

NEGLIGIBLE = 1e-40
"""A share of the largest weight that cannot lift a singular value above rounding."""


class LocallyWeighted(Params):
    """Least squares on the neighbourhood of each query."""

    width: float | None = Field(
        None, gt=0, le=1e300, description="Kernel width W, a squared distance; null: chosen by leave-one-out."
    )
    weighting: Literal["s2", "s"] = Field("s2", description="Weight of a squared error: s² or s.")


class State(NamedTuple):
    rows: Matrix
    """(n, d)."""
    targets: Vector
    """(n,)."""
    weights: Vector
    """(n,)."""
    centre: Vector
    """(d,) weighted means."""
    width: float


class _Planes(NamedTuple):
    block: slice
    squares: Matrix
    intercept: Vector
    """Height at the centre."""
    slopes: Matrix


def fit(params: LocallyWeighted, data: Data, context: Context) -> Fit[State]:
    bare = State(data.x, data.y, data.weights, centred(data.x, data.weights).mean, 0.0)

    def plane_values(x: Matrix, squares: Matrix, counted: Matrix, width: float) -> Vector:
        return _heights(x, bare, *_planes(params, bare, squares, counted, width))

    width = params.width or choose_width(data.x, data.y, data.weights, plane_values)
    return Fit(bare._replace(width=width))


def predict(params: LocallyWeighted, state: State, x: Matrix) -> Vector:
    predicted = np.empty(len(x))
    for planes in _planes_of(params, state, x):
        predicted[planes.block] = _heights(x[planes.block], state, planes.intercept, planes.slopes)
    return predicted


def explain(params: LocallyWeighted, state: State, x: Matrix) -> list[JSON]:
    """For each row its plane, and the effective number of training rows in its fit; `far`: no sᵢ is more than
    rounding, and rows count relative to the nearest one.
    """
    result: list[JSON] = []
    for planes in _planes_of(params, state, x):
        nearness = np.exp(-planes.squares / state.width)
        counted = np.broadcast_to(state.weights, planes.squares.shape)
        rows = effective_rows(_weights(params, planes.squares, counted, state.width))
        intercepts = planes.intercept - planes.slopes @ state.centre
        result += [
            {
                "coefficients": slopes.tolist(),
                "intercept": float(intercept),
                "effective_rows": float(effective),
                "far": bool(near.max() < EPS),
            }
            for slopes, intercept, near, effective in zip(planes.slopes, intercepts, nearness, rows, strict=True)
        ]
    return result


def summary(params: LocallyWeighted, state: State) -> JSON:
    return {"width": state.width, "rows": len(state.rows)}


def _planes_of(params: LocallyWeighted, state: State, x: Matrix) -> Iterator[_Planes]:
    for block, squares in blocks(x, state.rows):
        counted = np.broadcast_to(state.weights, squares.shape)
        yield _Planes(block, squares, *_planes(params, state, squares, counted, state.width))


def _planes(
    params: LocallyWeighted, state: State, squares: Matrix, counted: Matrix, width: float
) -> tuple[Vector, Matrix]:
    """Heights at the centre (q,) and slopes (q, d)."""
    weights = _weights(params, squares, counted, width)
    design = np.column_stack([np.ones(len(state.rows)), state.rows - state.centre])
    fits = local_fits(design, state.targets, weights, np.zeros(design.shape[1]))
    for i in np.flatnonzero(~fits.sound):
        near = weights[i] > NEGLIGIBLE * weights[i].max()
        plane = weighted_ridge(design[near, 1:], state.targets[near, None], weights[i, near], 0.0)
        fits.coef[i] = np.append(plane.intercept, plane.coef)
    return fits.coef[:, 0], fits.coef[:, 1:]


def _weights(params: LocallyWeighted, squares: Matrix, counted: Matrix, width: float) -> Matrix:
    """(q, n) of the training rows in the fit of each plane."""
    return relative_weights(squares, counted, width, 2 if params.weighting == "s2" else 1)


def _heights(x: Matrix, state: State, intercept: Vector, slopes: Matrix) -> Vector:
    return np.asarray(intercept + np.einsum("ij,ij->i", x - state.centre, slopes))


ALGORITHM = Algorithm(
    tasks={Task.REGRESSION},
    params=LocallyWeighted,
    state=State,
    fit=fit,
    predict=predict,
    seconds=lambda _, size: seconds(size),
    explain=explain,
    summary=summary,
    breaks={Symmetry.SCALE: "a distance gives a column the weight of its unit: scale the columns alike first"},
)
