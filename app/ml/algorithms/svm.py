r"""Support vector machine: the boundary between two classes with the widest margin, in the space of a kernel.

Minimises  ½‖w‖² + Σ Cᵢ max(0, 1 − yᵢ f(xᵢ))  with  f(x) = w·φ(x) + b, y = ±1 and Cᵢ = `C` times the weight of the row,
where φ maps rows to a space in which the kernel is the inner product. A class weight multiplies `C` for its rows. By
the dual, w is a weighted sum of the support vectors: the rows on the margin, within it or on the wrong side. The margin
is 2/‖w‖ wide. Without `C` it is hard: no training row may violate it, and classes that no boundary separates are an
error. Two coefficients at a time are changed (sequential minimal optimisation) until the conditions of the minimum hold
to `tol` and the duality gap proves it; rows of the kernel are computed as needed, and never all held. A linear machine
of many rows is found in the weights of its columns, one of texts by coordinate descent over their terms.

Of more than two classes, each pair has a machine (`one_vs_one`), or each class has one against all others
(`one_vs_rest`). Probabilities follow from a sigmoid of the decision value, fitted to rows that each machine has not
seen (`cv` folds), and of pairs by coupling. With `cv` null, shares are (1 ± f)/2 cut off at 0 and 1, and of pairs the
mean of the shares: no probabilities, but the fit takes a fifth of the time.

The report bounds the capacity of planes with this margin, h ≤ min(⌈R²‖w‖²⌉, d) + 1 with R the longest row in the space
of the kernel, and the risk by the share of training errors and a term that grows with h.

In short: The boundary between classes is as far as possible from the rows of both; rows near it, the support vectors,
determine it alone. A kernel makes it curved.

Use when: tables have up to some ten thousand rows, the boundary is curved, and columns are scaled alike. Choose `C` and
`gamma` by a search.

Two points, between which the margin is 2√2, and XOR, which a polynomial of degree 2 separates with coefficients of 1/8:

>>> import numpy as np
>>> hard = {"C": None, "tol": 1e-9, "cv": None}
>>> two = Data.of(Task.CLASSIFICATION, [[1.0, 1.0], [-1.0, -1.0]], [1, 0])
>>> fitted = fit(SVM(kernel="linear", **hard), two, Context.of(0)).state
>>> fitted.machine.weights.round(9).tolist(), round(float(fitted.margins[0] ** 2), 9)
([[0.5, 0.5]], 8.0)
>>> xor = Data.of(Task.CLASSIFICATION, [[-1.0, -1], [-1, 1], [1, -1], [1, 1]], [0, 1, 1, 0])
>>> params = SVM(kernel="poly", degree=2, gamma=1, coef0=1, **hard)
>>> machine = fit(params, xor, Context.of(0)).state.machine
>>> machine.coef.round(9).tolist()
[[-0.125, 0.125, 0.125, -0.125]]
>>> decisions(params, machine, xor.x)[:, 0].round(9).tolist()
[-1.0, 1.0, 1.0, -1.0]

References: Cortes & Vapnik (1995), Mach. Learn. 20:273; Platt (1999), in: Advances in Large Margin Classifiers: 61;
Chang & Lin (2011), ACM Trans. Intell. Syst. Technol. 2:27; Battiti & Brunato, The LION Way, ch. 10.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy
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
    Form,
    Inputs,
    Labels,
    Matrix,
    Meaning,
    Output,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.capacity import Capacity, WeightNorm
from app.ml.numerics.support_vectors import machine as machines
from app.ml.numerics.support_vectors.class_machines import Multiclass, class_shares, of_pair, pairs_of, towards_classes
from app.ml.numerics.support_vectors.machine import Kept, Machine, decisions
from app.ml.numerics.support_vectors.machine_capacity import machine_capacity, trace
from app.ml.numerics.support_vectors.machine_params import MachineParams
from app.ml.numerics.support_vectors.smo import Solution
from app.ml.numerics.support_vectors.two_classes import TwoClasses, cross_fitted, length, separated, sigmoid_of
from app.ml.numerics.support_vectors.vc_bounds import FAILURE, confidence_term, margin_dimension
from app.ml.numerics.tensor_graphs.machine_tensors import machine_probabilities


class SVM(MachineParams):
    """Support vector machine for classes."""

    C: float | None = Field(
        1.0,
        gt=0,
        le=1e12,
        description="Cost of a row beyond its margin, beside ½‖w‖²: larger fits the training rows more closely. Null: "
        "infinite, a hard margin.",
    )
    multiclass: Multiclass = Field(
        "one_vs_one",
        description="Machines for more than two classes: `one_vs_one` has one for each pair, `one_vs_rest` one for "
        "each class.",
    )
    cv: int | None = Field(
        5,
        ge=2,
        le=100,
        description="Number of folds of the cross-fitting that turns decision values into probabilities; null: shares "
        "that follow from the decision values alone, in a fifth of the time.",
    )


class State(NamedTuple):
    machine: Machine
    sigmoids: Matrix
    """(p, 2) slope and intercept for each decision function; (0, 2) for shares."""
    seen: NDArray[np.bool_]
    """(k,) classes with training rows."""
    bounded: Labels
    """(p,) coefficients at C."""
    margins: Vector
    """(p,) widths 2/‖w‖; infinite where w is 0."""
    gaps: Vector
    """(p,) duality gaps, as shares of the objective."""
    objectives: Vector
    """(p,) of the dual, to be minimised."""
    errors: Vector
    """(p,) shares of wrong training rows of each function."""
    sizes: Labels
    """(p,) training rows of each function."""
    radius: float
    """Length of the longest row in the space of the kernel; with a linear one of dense rows, less the mean."""
    dimensions: float
    """Dimension of that space."""


def fit(params: SVM, data: Data, context: Context) -> Fit[State]:
    table, (data, order) = data, machines.ordered(data)
    stored = Kept.of(params, data)
    seen = data.targets.any(axis=0)
    pairs = pairs_of(params.multiclass, np.flatnonzero(seen))
    costs = data.weights * (math.inf if params.C is None else params.C)
    solved = list[tuple[Labels, TwoClasses, Solution, Vector]]()
    for done, (first, second) in enumerate(pairs, 1):
        places = np.flatnonzero(of_pair(data.codes, first, second))
        signs = np.where(data.codes[places] == second, 1.0, -1.0)
        kernel_rows = stored.rows if places.size == len(data.x) else stored.rows.take(places)
        rows = TwoClasses(kernel_rows, signs, costs[places])
        slope = np.zeros(2)
        solution = separated(rows, params.settings())
        if params.cv is not None:
            values = cross_fitted(rows, params.settings(), params.cv, context.rng)
            slope = sigmoid_of(values, rows, data.weights[places])
        solved.append((places, rows, solution, slope))
        context.progress(done / len(pairs), duality_gap=solution.gap)
    state = _state(params, data, stored, solved)
    state = state._replace(machine=state.machine.placed(table, order))
    iterations = sum(solution.iterations for _, _, solution, _ in solved)
    return Fit(state, all(solution.converged for _, _, solution, _ in solved), iterations)


def _state(params: SVM, data: Data, stored: Kept, solved: list[tuple[Labels, TwoClasses, Solution, Vector]]) -> State:
    coef = np.zeros((len(solved), len(data.x)))
    for machine_coef, (places, _, solution, _) in zip(coef, solved, strict=True):
        machine_coef[places] = solution.coef
    solutions = [(rows, solution) for _, rows, solution, _ in solved]
    intercept = np.array([solution.intercept for _, solution in solutions])
    lengths = np.array([length(rows.signs, solution) for rows, solution in solutions])
    objectives = np.array([solution.objective for _, solution in solutions])
    wide = np.divide(2.0, lengths, out=np.full(len(lengths), np.inf), where=lengths > 0)
    gaps = np.array([solution.gap for _, solution in solutions])
    return State(
        machine=Machine.of(params, data, stored, coef, intercept),
        sigmoids=np.array([slope for *_, slope in solved]).reshape(-1, 2)[: None if params.cv else 0],
        seen=np.asarray(data.targets.any(axis=0)),
        bounded=np.array([(np.abs(s.coef) >= rows.costs).sum() for rows, s in solutions], np.intp),
        margins=wide,
        gaps=np.divide(gaps, np.abs(objectives), out=np.zeros(len(gaps)), where=objectives != 0),
        objectives=objectives,
        errors=np.array([np.mean(rows.signs * (rows.signs - s.residual + s.intercept) <= 0) for rows, s in solutions]),
        sizes=np.array([len(rows.signs) for rows, _ in solutions], np.intp),
        radius=math.sqrt(max(float(stored.rows.diagonal.max()), 0.0)),
        dimensions=math.inf if data.square is not None else params.dimensions(data.x.shape[1]),
    )


def predict(params: SVM, state: State, x: Matrix) -> Matrix:
    classes = int(np.count_nonzero(state.seen))
    shares = class_shares(params.multiclass, _positive(params, state, x), classes, fitted=params.cv is not None)
    return shares if classes == state.seen.size else shares @ np.eye(state.seen.size)[state.seen]


def _positive(params: SVM, state: State, x: Matrix) -> Matrix:
    """(n, p) shares of the second class of each decision function."""
    values = decisions(params, state.machine, x)
    if params.cv is None:
        return np.minimum(np.maximum((1 + values) / 2, 0.0), 1.0)
    return np.asarray(scipy.special.expit(values * state.sigmoids[:, 0] + state.sigmoids[:, 1]))


def decision(params: SVM, state: State, x: Matrix) -> Matrix:
    return decisions(params, state.machine, x)


def terms(params: SVM, state: State) -> Matrix | None:
    """(d, k) mean over the machines of a class of the weights towards it; of two classes, those of the second.

    None where no machine is linear.
    """
    weights, seen = state.machine.weights, np.flatnonzero(state.seen)
    return towards_classes(params.multiclass, weights, seen) if len(weights) else None


def faults(params: SVM, inputs: Inputs) -> Iterator[Fault]:
    if not inputs.texts:
        return
    if params.kernel != "linear":
        yield Fault("/kernel", "Texts are learned with the linear kernel: set kernel to linear.", "wrong_kind")
    if params.C is None:
        yield Fault("/C", "Texts are learned with a soft margin: give C a number.", "wrong_kind")


def summary(params: SVM, state: State, units: Affine | None = None) -> JSON:
    """`classes` of a machine: those with negative and positive decision values; of one against all others, that one.
    `duality_gap`: share of the objective by which no solution is better. `vc_dimension`: bound of the capacity,
    `risk_bound`: of the share of errors on new rows, with probability 0.95, at most 1.
    """
    return machines.vectors_summary(state.machine, units) | {
        "machines": list(_machines(params, state)),
        "radius": state.radius,
        "duality_gap": float(state.gaps.max(initial=0.0)),
    }


def _machines(params: SVM, state: State) -> Iterator[JSON]:
    pairs = pairs_of(params.multiclass, np.flatnonzero(state.seen))
    counts = np.count_nonzero(state.machine.coef, axis=1)
    for place, (pair, margin) in enumerate(zip(pairs, state.margins.tolist(), strict=True)):
        dimension = _dimension(state, margin)
        rows, errors = int(state.sizes[place]), float(state.errors[place])
        yield {
            "classes": [code for code in pair if code >= 0],
            "support_vectors": int(counts[place]),
            "bounded": int(state.bounded[place]),
            "margin": margin if math.isfinite(margin) else None,
            "objective": float(state.objectives[place]),
            "duality_gap": float(state.gaps[place]),
            "training_errors": errors,
            "vc_dimension": dimension,
            "risk_bound": min(1.0, errors + confidence_term(rows, dimension, FAILURE)),
        }


def _dimension(state: State, margin: float) -> float:
    """Bound of the capacity of planes with this margin; 1 for a constant."""
    return margin_dimension(state.radius, 2 / margin, state.dimensions) if math.isfinite(margin) else 1.0


def capacity(params: SVM, state: State, data: Data) -> Capacity:
    """Weights as the probabilities have them; support vectors alone give the same ones where no sigmoid is fitted."""
    wrong = None if params.cv else predict(params, state, data.x).argmax(axis=1) != data.codes
    weights = None
    if state.seen.size == 2 and state.seen.all():
        slope, shift = state.sigmoids[0] if params.cv else (1.0, 0.0)
        values = slope * decision(params, state, data.x)[:, 0] + shift
        length = 0.0 if math.isinf(state.margins[0]) else 2 / state.margins[0]
        norm = math.hypot(slope * length, slope * state.machine.intercept[0] + shift)
        weights = WeightNorm(norm, trace(params, state.machine, data), np.where(data.codes == 1, values, -values))
    bound = machine_capacity(params, state.machine, state.dimensions, Capacity(weights=weights), wrong)
    return bound._replace(margin_dimension=max(_dimension(state, margin) for margin in state.margins.tolist()))


def _seconds(params: SVM, size: Size) -> float:
    several = params.multiclass == "one_vs_rest" or size.classes <= 2
    machine = size._replace(rows=size.rows if several else 2 * size.rows / size.classes)
    count = max(1, size.classes if size.classes > 2 else 1) if several else size.classes * (size.classes - 1) / 2
    folds = 1.0 if params.cv is None else 1 + params.cv * (1 - 1 / params.cv) ** 2
    return count * folds * machines.seconds(params, machine, bounded=params.C is not None)


def _squared_weights(state: State) -> Vector:
    return np.asarray((state.machine.weights**2).sum(axis=0))


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=SVM,
    state=State,
    fit=fit,
    predict=predict,
    graph=machine_probabilities,
    degrees=lambda params: params.cv is None,
    memory=lambda params, size: machines.memory(params, size, bounded=params.C is not None),
    seconds=_seconds,
    rowwise=True,
    accepts={Accepts.SPARSE},
    projects_kernels=lambda params: params.indefinite == "project",
    faults=faults,
    terms=terms,
    relations={Form.SQUARE: {Meaning.KERNEL}},
    outputs={
        "decision": Output(
            "Decision value of each machine, in half widths of its margin: positive for the second of its classes.",
            decision,
            width=lambda _, state: max(1, len(state.margins)),
        )
    },
    explain=lambda params, state, x: machines.explained_by_class(
        params, state.machine, pairs_of(params.multiclass, np.flatnonzero(state.seen)), x
    ),
    summary=summary,
    unscaled=machines.of_planes(summary),
    importances=lambda params: _squared_weights if params.kernel == "linear" else None,
    capacity=capacity,
    breaks={
        Symmetry.COLUMN_ORDER: "The minimum is found to `tol`: rounding of sums over columns changes the steps to it.",
        Symmetry.SCALE: "A kernel gives a column the weight of its unit; scale the columns alike first.",
        Symmetry.LABEL_NAMES: "The minimum is found to `tol`, and folds are drawn class by class.",
        Symmetry.WEIGHTS: "Copies of a row may be in other folds than the row itself.",
    },
)
