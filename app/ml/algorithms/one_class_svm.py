r"""One-class support vector machine: a boundary around most rows; those outside are anomalies.

Minimises  ½‖w‖² + C Σ ξᵢ − ρ  with  w·φ(xᵢ) ≥ ρ − ξᵢ  and ξᵢ ≥ 0, where φ maps rows to a space in which the kernel is
the inner product: a plane that separates the rows from the origin there. The dual is to minimise ½ αᵀKα with 0 ≤ αᵢ ≤
Cᵢ and Σ αᵢ = 1. With C = 1/(ν n), at most a share ν of the rows lies outside, and at least this share are support
vectors. Row weights, of mean 1, multiply C. ρ is the decision value of the rows on the boundary, and

    f(x) = Σ αᵢ k(xᵢ, x) − ρ

is the prediction: above zero inside, below zero outside. It takes the place of a log density, but is none: its values
have no unit, and only their order and sign mean anything. Two coefficients at a time are changed (sequential minimal
optimisation) until the conditions of the minimum hold to `tol` and the duality gap proves it; the programme is solved
in units in which Σ αᵢ = ν n, as libsvm does, so that `tol` means the same for any number of rows.

In short: A boundary is drawn around the training rows that leaves about a share `nu` of them outside. A new row
outside is an anomaly.

Use when: nearly all training rows are usual, anomalies are unlike them, the usual rows form no single cloud, and
columns are scaled alike.

Rows outside are at most, and support vectors at least, the share `nu`:

>>> import numpy as np
>>> rows = Data.of(Task.DENSITY, np.random.default_rng(0).normal(size=(200, 2)))
>>> params = OneClassSVM(nu=0.5, gamma=5.0, tol=1e-6)
>>> state = fit(params, rows, Context.of(0)).state
>>> float(anomaly(params, state, rows.x).mean()) <= 0.5 <= len(state.machine.places) / 200
True

References: Schölkopf et al. (2001), Neural Comput. 13:1443; Chang & Lin (2011), ACM Trans. Intell. Syst. Technol. 2:27.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
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
    Output,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.support_vectors import machine as machines
from app.ml.numerics.support_vectors.kernel_rows import KernelRows
from app.ml.numerics.support_vectors.machine import Kept, Machine, decisions
from app.ml.numerics.support_vectors.machine_params import MachineParams
from app.ml.numerics.support_vectors.smo import Problem, solve
from app.ml.numerics.tensor_graphs.machine_tensors import machine_decisions

SAMPLE = 256
"""Rows that the first coefficients are chosen by."""


class OneClassSVM(MachineParams):
    """Support vector machine for rows without a target."""

    nu: float = Field(
        0.1,
        gt=0,
        le=1,
        description="Largest share of the training rows outside of the boundary, and smallest share of support "
        "vectors. Unused where `C` is given.",
    )
    C: float | None = Field(
        None,
        gt=0,
        le=1e12,
        description="Cost of a row outside of the boundary, beside ½‖w‖² - ρ: 1/(nu · rows), at least 1/rows. Null: "
        "that of `nu`.",
    )


class State(NamedTuple):
    machine: Machine
    rho: float
    """Offset of the plane, with Σ α = 1."""
    bounded: int
    """Coefficients at C."""
    gap: float
    """Duality gap, as a share of the objective."""
    objective: float
    """½ αᵀKα, with Σ α = 1."""
    nu: float
    rows: int


def fit(params: OneClassSVM, data: Data, context: Context) -> Fit[State]:
    table, (data, order) = data, machines.ordered(data)
    n = len(data.x)
    stored, nu = Kept.of(params, data, movable=False), _share(params, n)
    bounds = data.weights * (n / data.weights.sum())
    # Below the least bound no coefficient reaches its own, and the solution is the same up to its scale.
    total = max(nu * n, 0.5 * float(bounds[bounds > 0].min()))
    start = _start(stored.rows, bounds, total)
    problem = Problem(
        np.zeros(n), np.zeros(n), bounds, start, negligible=_scattered(stored.rows.diagonal, bounds, total)
    )
    solution = solve(stored.rows, problem, params.settings())
    machine = Machine.of(params, data, stored, solution.coef[None] / total, np.array([solution.intercept / total]))
    state = State(
        machine=machine.placed(table, order),
        rho=-solution.intercept / total,
        bounded=int((solution.coef >= bounds).sum()),
        gap=problem.share(solution.gap, solution.objective),
        objective=solution.objective / total**2,
        nu=nu,
        rows=n,
    )
    return Fit(state, solution.converged, solution.iterations)


def _share(params: OneClassSVM, rows: int) -> float:
    """ν. Raises InvalidData for a C below 1/n, with which Σ α = 1 cannot be."""
    if params.C is None:
        return params.nu
    if params.C * rows < 1:
        raise InvalidData(f"`C` is {params.C:g}, but must be at least 1/rows = {1 / rows:.4g} for {rows:,} rows.")
    return 1.0 / (params.C * rows)


def _start(rows: KernelRows, bounds: Vector, total: float) -> Vector:
    """The rows farthest from a sample at their bounds, and the next one with the rest of the sum.

    Rows outside of the boundary have coefficients at their bounds, and most of them lie far from the others.
    """
    n = bounds.size
    sample = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.intp))
    order = np.argsort(rows.products(np.arange(n), sample, bounds[sample]), kind="stable")
    before = np.cumsum(bounds[order]) - bounds[order]
    start = np.empty(n)
    start[order] = np.clip(total - before, 0.0, bounds[order])
    return start


def _scattered(diagonal: Vector, bounds: Vector, total: float) -> float:
    """About the objective of coefficients that are spread over rows in all directions from the origin.

    Where the origin lies among the rows, no plane parts them from it, the least objective is 0, and ρ too.
    """
    return float(0.5 * total * (bounds @ diagonal) / len(bounds))


def predict(params: OneClassSVM, state: State, x: Matrix) -> Vector:
    return np.ascontiguousarray(decisions(params, state.machine, x)[:, 0])


def anomaly(params: OneClassSVM, state: State, x: Matrix) -> NDArray[np.bool_]:
    return predict(params, state, x) < 0


def summary(params: OneClassSVM, state: State, units: Affine | None = None) -> JSON:
    """`duality_gap`: share of the objective by which no solution is better. `bounded`: training rows outside of the
    boundary, but for rounding. `margin`: distance of the plane from the origin, ρ/‖w‖.
    """
    norm = math.sqrt(max(2 * state.objective, 0.0))
    return machines.vectors_summary(state.machine, units) | {
        "bounded": state.bounded,
        "nu": state.nu,
        "support_vector_share": len(state.machine.places) / state.rows,
        "outside_share": state.bounded / state.rows,
        "rho": state.rho,
        "margin": state.rho / norm if norm > 0 else None,
        "objective": state.objective,
        "duality_gap": state.gap,
    }


def _seconds(params: OneClassSVM, size: Size) -> float:
    nu = params.nu if params.C is None else min(1.0, 1 / (params.C * max(size.rows, 1.0)))
    return min(1.0, 0.02 + 1.3 * nu) * machines.seconds(params, size, bounded=False)


def to_tensor(params: OneClassSVM, state: State, x: Tensor) -> Tensor:
    return machine_decisions(params, state.machine, x)[[0]]


ALGORITHM = Algorithm(
    tasks={Task.DENSITY},
    params=OneClassSVM,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    memory=lambda params, size: machines.memory(params, size, bounded=False),
    seconds=_seconds,
    rowwise=True,
    projects_kernels=lambda params: params.indefinite == "project",
    relations={Form.SQUARE: {Meaning.KERNEL}},
    outputs={
        "decision": Output("Decision value: above zero within the boundary, below zero outside.", predict),
        "anomaly": Output("True where the decision value is below zero: outside of the boundary.", anomaly),
    },
    summary=summary,
    unscaled=machines.of_planes(summary),
    breaks={
        Symmetry.SCALE: "A kernel gives a column the weight of its unit; scale the columns alike first.",
        Symmetry.WEIGHTS: "The minimum is found to `tol`, by other steps where rows are repeated.",
    },
)
