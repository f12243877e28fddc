r"""Support vector regression: the flattest function within ε of the targets, but for rows that cost what they miss.

Minimises  ½‖w‖² + Σ Cᵢ max(0, |yᵢ − f(xᵢ)| − ε)  with  f(x) = w·φ(x) + b and Cᵢ = `C` times the weight of the row,
where φ maps rows to a space in which the kernel is the inner product. Rows within the tube of half width ε cost nothing
and have no part in the solution; those on its edge or beyond are the support vectors. Without `C` the tube is hard: no
training row may lie beyond it. The dual has a coefficient between −Cᵢ and Cᵢ for each row; two at a time are changed
(sequential minimal optimisation) until the conditions of the minimum hold to `tol` standard deviations of the target
and the duality gap proves it. The target is divided by its standard deviation σ, in which `C` and ε count: its unit
does not matter. With `scale_target` false they count in units of the target, as in libsvm and scikit-learn, which is
the same as `C`/σ and ε/σ here. If all targets lie within ε of one value, the function is constant.

In short: The function is as flat as possible while it passes within ε of the targets. Deviations beyond ε cost in
proportion, so that outliers pull with a constant force.

Use when: the function is smooth but curved, rows are up to some ten thousand, columns are scaled alike, and deviations
below a tolerance do not matter. Choose `C`, `gamma` and `epsilon` by a search.

The flattest line within 0.5 of y = 2x + 1 on 0 … 10 has a slope of (20 − 1)/10:

>>> import numpy as np
>>> x = np.linspace(0, 10, 11)[:, None]
>>> line = Data.of(Task.REGRESSION, x, 2 * x[:, 0] + 1)
>>> params = SVR(kernel="linear", C=1000, epsilon=0.5, tol=1e-9, scale_target=False)
>>> fitted = fit(params, line, Context.of(0)).state
>>> fitted.machine.weights.round(6).tolist(), np.abs(predict(params, fitted, x) - line.y).max().round(6)
([[1.9]], np.float64(0.5))

References: Drucker et al. (1997), Adv. Neural Inf. Process. Syst. 9:155; Smola & Schölkopf (2004), Stat. Comput.
14:199; Chang & Lin (2011), ACM Trans. Intell. Syst. Technol. 2:27; Battiti & Brunato, The LION Way, ch. 10.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData
from app.ml.contract.algorithm import (
    JSON,
    Affine,
    Algorithm,
    Context,
    Data,
    Fit,
    Form,
    Matrix,
    Meaning,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.support_vectors import machine as machines
from app.ml.numerics.support_vectors.linear_machine import minimum
from app.ml.numerics.support_vectors.machine import Kept, Machine, decisions
from app.ml.numerics.support_vectors.machine_params import MachineParams
from app.ml.numerics.support_vectors.smo import Problem, Solution
from app.ml.numerics.tensor_graphs.machine_tensors import machine_decisions

LARGEST_COST = 1e10
"""A hard tube is wide enough for the rows where no coefficient, in units of the target, would be larger."""
FLAT = 0.9
"""Share of rows at the cost `C` from which on the function hardly follows them."""
TOO_NARROW = (
    "No function of this kernel passes within `epsilon` of all targets: a hard tube does not exist. Give `C` a number, "
    "a larger `epsilon`, or choose another kernel."
)


class SVR(MachineParams):
    """Support vector machine for numbers."""

    C: float | None = Field(
        1.0,
        ge=1e-100,
        le=1e12,
        description="Cost of a row beyond the tube, beside ½‖w‖²: larger fits the training rows more closely. Null: "
        "infinite, a hard tube.",
    )
    epsilon: float = Field(
        0.1,
        ge=0,
        le=1e12,
        description="Half width of the tube, in standard deviations of the target: smaller deviations cost nothing.",
    )
    scale_target: bool = Field(
        True,
        description="Divides the target by its standard deviation for the fit; false: `C` and `epsilon` count in units "
        "of the target, as in scikit-learn.",
    )


class State(NamedTuple):
    machine: Machine
    bounded: int
    """Coefficients at C."""
    norm: float
    """‖w‖, in units of the target."""
    gap: float
    """Duality gap, as a share of the objective."""
    objective: float
    """Objective of the dual, to be minimised, in squared units of the target."""
    inside: int
    """Training rows within the tube."""


def fit(params: SVR, data: Data, context: Context) -> Fit[State]:
    table, (data, order) = data, machines.ordered(data)
    stored = Kept.of(params, data)
    middle, unit = _centre(data), _unit(data)
    target = (data.y - middle) / unit
    scale = 1.0 if params.scale_target else unit
    costs = data.weights * (LARGEST_COST if params.C is None else params.C / scale)
    problem = Problem(target, -costs, costs, np.zeros(len(target)), params.epsilon / scale)
    solution = minimum(stored.rows, problem, params.settings())
    if params.C is None and not _within(solution, problem, params):
        raise InvalidData(TOO_NARROW)
    coef = unit * solution.coef
    square = float(solution.coef @ (target - solution.residual))
    machine = Machine.of(params, data, stored, coef[None], np.array([unit * solution.intercept + middle]))
    state = State(
        machine=machine.placed(table, order),
        bounded=int((np.abs(solution.coef) >= costs).sum()),
        norm=unit * math.sqrt(max(square, 0.0)),
        gap=solution.gap / abs(solution.objective) if solution.objective else 0.0,
        objective=unit**2 * solution.objective,
        inside=int((solution.coef == 0).sum()),
    )
    return Fit(state, solution.converged, solution.iterations, warnings=[*_warnings(params, state, data)])


def _warnings(params: SVR, state: State, data: Data) -> Iterator[str]:
    """`C` or `epsilon` that do not suit the unit of the target."""
    spread, beyond = float(np.std(data.y)), state.bounded / len(data.y)
    if params.C is not None and not params.scale_target and spread > params.C and beyond >= FLAT:
        yield (
            f"The function is nearly flat: {beyond:.0%} of the rows lie beyond the tube at a cost of C = {params.C:g}, "
            f"which counts in units of the target. Give `C` about its standard deviation, {spread:.3g}, or more."
        )
    if spread > 0 and state.inside == len(data.y):
        yield (
            f"The function is constant: all targets lie within `epsilon` = {params.epsilon:g} of one value. Give "
            f"`epsilon` about a tenth of their standard deviation, {0.1 if params.scale_target else spread / 10:.3g}."
        )


def _centre(data: Data) -> float:
    """The middle of the range: where all targets are within ε of it, no step is needed."""
    return float(data.y.min() / 2 + data.y.max() / 2)


def _unit(data: Data) -> float:
    """The standard deviation of the target; 1 if it does not vary."""
    spread = float(np.std(data.y))
    return spread if spread > 0 else 1.0


def _within(solution: Solution, problem: Problem, params: SVR) -> bool:
    beyond = np.abs(solution.residual - solution.intercept) - problem.epsilon
    return solution.converged and float(beyond.max()) <= 2 * params.tol


def predict(params: SVR, state: State, x: Matrix) -> Vector:
    return np.ascontiguousarray(decisions(params, state.machine, x)[:, 0])


def explain(params: SVR, state: State, x: Matrix) -> list[JSON]:
    """For each row the parts of support vectors, or of columns, in its prediction."""
    return [machines.explained(params, state.machine, x[i : i + 1], 0) for i in range(len(x))]


def summary(params: SVR, state: State, units: Affine | None = None) -> JSON:
    """`duality_gap`: share of the objective by which no solution is better. `within_tube`: training rows that are no
    support vectors.
    """
    return machines.vectors_summary(state.machine, units) | {
        "bounded": state.bounded,
        "within_tube": state.inside,
        "weights_norm": state.norm,
        "objective": state.objective,
        "duality_gap": state.gap,
    }


def to_tensor(params: SVR, state: State, x: Tensor) -> Tensor:
    return machine_decisions(params, state.machine, x)[[0]]


ALGORITHM = Algorithm(
    tasks={Task.REGRESSION},
    params=SVR,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    memory=machines.memory,
    seconds=machines.seconds,
    rowwise=True,
    projects_kernels=lambda params: params.indefinite == "project",
    relations={Form.SQUARE: {Meaning.KERNEL}},
    explain=explain,
    summary=summary,
    unscaled=machines.of_planes(summary),
    breaks={
        Symmetry.COLUMN_ORDER: "The minimum is found to `tol`: rounding of sums over columns changes the steps to it.",
        Symmetry.SCALE: "A kernel gives a column the weight of its unit; scale the columns alike first.",
        Symmetry.WEIGHTS: "The minimum is found to `tol`, by other steps where rows are repeated.",
    },
)
