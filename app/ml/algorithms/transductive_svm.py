r"""Transductive support vector machine: a boundary with a wide margin among rows with a label and rows without one.

Minimises  ½‖w‖² + Σ_L Cᵢ max(0, 1 − yᵢ f(xᵢ)) + Σ_U C*ᵤ max(0, 1 − yᵤ f(xᵤ))  over the boundary f(x) = w·φ(x) + b and
over the labels yᵤ = ±1 of the rows without one, so that each costs max(0, 1 − |f|): the boundary runs where rows are
rare. φ maps rows to a space in which the kernel is the inner product. Cᵢ is `C` times the weight of the row; C* is
`unlabelled_weight` times `C` times the mean weight of the labelled rows with that label. How many rows get each label
is fixed by `priors`, as all would be of one class otherwise.

Labels start in two ways. The machine of the labelled rows labels the others;
their weight grows in `stages` steps; at each, pairs of rows in the wrong order switch labels and the machine is found
again, until the objective falls no more. It falls at every switch, but may end in a minimum that is not the lowest.
Annealing finds lower ones where clusters are curved: each row belongs to both classes in shares that become 0 or 1 as a
temperature falls in `stages` steps, and only then do labels switch. A lower objective need not be the better
classifier: of eight draws of public tables `both` was better on one, by 0.003, and worse by up to 0.12 on five.

Of more than two classes, each has a machine against all others. Shares of classes are 1/(1 + exp(−2f)) over their sum:
they only show how clear a case is. With `unlabelled_weight` 0 it is the support vector machine of the labelled rows.

In short: The boundary has a wide margin to rows with and without a label, so that it runs through regions without rows.
The rows without a label get one on the way.

Use when: few rows have a label and many have none, and regions of few rows part the classes. Where the classes overlap,
rows without a label mislead: compare with `svm`, and the ways to start with each other, on rows that neither has seen.

One row of each class lies at the same height, and one row without a label high on the right, one low on the left. They
turn the boundary until all four are on the margin:

>>> import numpy as np
>>> from app.ml.contract.data import Unlabelled
>>> rest = Unlabelled(np.array([[0.5, 3], [-0.5, -3]]))
>>> rows = Data.of(Task.CLASSIFICATION, [[-1.0, 0], [1, 0]], [0, 1], unlabelled=rest)
>>> for weight in (0, 1):
...     params = TransductiveSVM(kernel="linear", unlabelled_weight=weight, tol=1e-9)
...     print(fit(params, rows, Context.of(0)).state.machine.weights.round(6).tolist())
[[1.0, 0.0]]
[[1.0, 0.166667]]

References: Joachims (1999), Transductive inference for text classification, ICML: 200; Sindhwani, Keerthi & Chapelle
(2006), Deterministic annealing for semi-supervised kernel machines, ICML: 841; Chapelle, Sindhwani & Keerthi (2008), J.
Mach. Learn. Res. 9:203; Battiti & Brunato, The LION Way, ch. 17.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Affine,
    Algorithm,
    Context,
    Data,
    Fit,
    Form,
    Labels,
    Matrix,
    Meaning,
    Output,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.numerics.class_probabilities.class_priors import Share, class_priors, prior_faults
from app.ml.numerics.half_labelled import joined
from app.ml.numerics.support_vectors import machine as machines
from app.ml.numerics.support_vectors.kernel_rows import MEBIBYTE, KernelRows, held
from app.ml.numerics.support_vectors.label_switching import HalfLabelled
from app.ml.numerics.support_vectors.linear_machine import has_weights, in_weights
from app.ml.numerics.support_vectors.machine import Kept, Machine, decisions
from app.ml.numerics.support_vectors.machine_params import MachineParams
from app.ml.numerics.support_vectors.transduction import Init, Transduction, transduced
from app.ml.numerics.support_vectors.two_classes import length

LISTED = 1000
"""Unlabelled rows in the report."""


class TransductiveSVM(MachineParams):
    """Support vector machine for classes, of rows with and without a label."""

    C: float = Field(
        1.0,
        gt=0,
        le=1e12,
        description="Cost of a row beyond its margin, beside ½‖w‖²: larger fits the training rows more closely.",
    )
    unlabelled_weight: float = Field(
        1.0,
        ge=0,
        le=1e6,
        description="Factor of `C` for rows without a label, beside the mean weight of the labelled rows of the class. "
        "0: they are not learned from.",
    )
    priors: Literal["learned", "uniform"] | list[Share] = Field(
        "learned",
        description="Prior probabilities of the classes, which fix how many rows without a label get each. learned: "
        "the shares of the labelled rows; uniform: all alike; or a list of numbers from 0 to 1, one for each class, in "
        "the order of the classes.",
    )
    init: Init = Field(
        "machine",
        description="Starting labels of the rows without one, before labels switch. `machine`: by the machine of the "
        "labelled rows, while the weight of the others grows; `annealing`: by shares of both classes at a falling "
        "temperature, for curved clusters, in about ten times the time; `both`: the one with the lower objective.",
    )
    stages: int = Field(
        10, ge=1, le=100, description="Number of weights from the first to the last, or of temperatures in annealing."
    )


class State(NamedTuple):
    machine: Machine
    seen: NDArray[np.bool_]
    """(k,) classes with labelled rows."""
    numbers: Labels
    """(m,) numbers of the unlabelled rows in the dataset, from 0."""
    codes: Labels
    """(m,) their classes by the final boundary."""
    shares: Vector
    """(m,) of these classes."""
    positives: Labels
    """(p,) unlabelled rows that each machine labels as of its class."""
    crossed: Labels
    """(p,) unlabelled rows on the other side of the boundary than their label."""
    annealed: NDArray[np.bool_]
    """(p,) machines whose first labels were annealed."""
    margins: Vector
    """(p,) widths 2/‖w‖; infinite where w is 0."""
    steps: Labels
    """(t, 2) of each machine on the way: the machine, and the rows that switched labels before."""
    objectives: Matrix
    """(t, 2) share of the last weight of the unlabelled rows, and the objective with this weight."""


def fit(params: TransductiveSVM, data: Data, context: Context) -> Fit[State]:
    every = joined(data)
    stored = Kept.of(params, every)
    rows, shares = _ready(stored.rows, params), class_priors(params.priors, data.targets.sum(axis=0))
    codes, transductions = positive_classes(np.asarray(data.targets.any(axis=0))), list[Transduction]()
    for done, code in enumerate(codes, 1):
        half = _half_labelled(params, data, rows, int(code), float(shares[code]))
        transductions.append(transduced(half, params.init, params.stages, params.settings()))
        context.progress(done / codes.size)
    steps = [step for transduction in transductions for step in transduction.steps]
    return Fit(
        _state(params, data, every, stored, transductions),
        converged=all(step.solution.converged for step in steps),
        iterations=sum(step.solution.iterations for step in steps),
        curves={"objective": [step.objective for step in steps], "switched_rows": [float(s.rows) for s in steps]},
        warnings=[*_warnings(data, transductions)],
    )


def _ready(rows: KernelRows, params: TransductiveSVM) -> KernelRows:
    """The kernel, of which many programmes are made."""
    return rows if has_weights(rows) else held(rows, params.cache_size)


def positive_classes(seen: NDArray[np.bool_]) -> Labels:
    """(p,) the class for which each machine has positive values; two classes have one machine."""
    codes = np.flatnonzero(seen)
    return codes[-1:] if codes.size <= 2 else codes


def _half_labelled(params: TransductiveSVM, data: Data, rows: KernelRows, code: int, share: float) -> HalfLabelled:
    of_class = data.codes == code
    costs = params.C * data.weights
    negative, positive = (
        params.unlabelled_weight * float(costs[those].mean() if those.any() else 0.0) for those in (~of_class, of_class)
    )
    half = HalfLabelled(rows, np.where(of_class, 1.0, -1.0), costs, (negative, positive), 0)
    return half._replace(positives=round(share * half.unlabelled))


def _state(params: TransductiveSVM, data: Data, every: Data, stored: Kept, transductions: list[Transduction]) -> State:
    seen, last = np.asarray(data.targets.any(axis=0)), [transduction.last for transduction in transductions]
    values = np.stack([step.values for step in last], axis=1)
    shares = _shares(values, int(np.count_nonzero(seen)))
    steps = [(place, step) for place, transduction in enumerate(transductions) for step in transduction.steps]
    lengths = np.array([length(step.signs, step.solution) for step in last])
    coef, intercept = (np.array([getattr(step.solution, name) for step in last]) for name in ("coef", "intercept"))
    return State(
        machine=Machine.of(params, every, stored, coef, intercept),
        seen=seen,
        numbers=np.asarray(every.numbers)[len(data.x) :],
        codes=np.flatnonzero(seen)[shares.argmax(axis=1)],
        shares=shares.max(axis=1),
        positives=np.array([(step.labels > 0).sum() for step in last], np.intp),
        crossed=np.array([(step.labels * step.values < 0).sum() for step in last], np.intp),
        annealed=np.array([transduction.annealed for transduction in transductions]),
        margins=np.divide(2.0, lengths, out=np.full(len(lengths), np.inf), where=lengths > 0),
        steps=np.array([(place, step.rows) for place, step in steps], np.intp),
        objectives=np.array([(step.weight, step.objective) for _, step in steps]),
    )


def _warnings(data: Data, transductions: list[Transduction]) -> Iterator[str]:
    if data.unlabelled is None or not len(data.unlabelled.x):
        yield "No row lacks the target: this is the support vector machine of the labelled rows."
    elif not any(step.weight for transduction in transductions for step in transduction.steps):
        yield "`unlabelled_weight` is 0: this is the support vector machine of the labelled rows."


def _shares(values: Matrix, classes: int) -> Matrix:
    """(n, c) of the classes that have labelled rows, from decision values (n, p)."""
    if classes == 1:
        return np.ones((len(values), 1))
    each = scipy.special.expit(2 * (np.column_stack([-values, values]) if classes == 2 else values))
    shares: Matrix = each / each.sum(axis=1, keepdims=True)
    return shares


def predict(params: TransductiveSVM, state: State, x: Matrix) -> Matrix:
    result = np.zeros((len(x), state.seen.size))
    result[:, state.seen] = _shares(decision(params, state, x), int(np.count_nonzero(state.seen)))
    return result


def decision(params: TransductiveSVM, state: State, x: Matrix) -> Matrix:
    return decisions(params, state.machine, x)


def summary(params: TransductiveSVM, state: State, units: Affine | None = None) -> JSON:
    """`machines` have positive decision values for their class. `switched_rows` counts the rows that took the other
    label, each time that they did; `crossed_rows` are unlabelled rows whose label, which `priors` fix in number, is not
    that of their side of the boundary. `steps` are the machines on the way, the first of the labelled rows alone.
    `labels` are of rows without a label, the first of them, by the final boundary.
    """
    return machines.vectors_summary(state.machine, units) | {
        "unlabelled_rows": state.codes.size,
        "machines": list(_machines(state)),
        "labels": [
            {"row": row, "class": code, "share": share}
            for row, code, share in zip(
                *(part[:LISTED].tolist() for part in (state.numbers, state.codes, state.shares)), strict=True
            )
        ],
    }


def _machines(state: State) -> Iterator[JSON]:
    for place, code in enumerate(positive_classes(state.seen)):
        of_machine = state.steps[:, 0] == place
        rows, objectives = state.steps[of_machine, 1], state.objectives[of_machine]
        margin = float(state.margins[place])
        yield {
            "classes": [int(code)],
            "support_vectors": int(np.count_nonzero(state.machine.coef[place])),
            "margin": margin if np.isfinite(margin) else None,
            "labelled_as_class": int(state.positives[place]),
            "crossed_rows": int(state.crossed[place]),
            "annealed": bool(state.annealed[place]),
            "objective": float(objectives[-1, 1]),
            "switches": int(np.count_nonzero(rows)),
            "switched_rows": int(rows.sum()),
            "steps": [
                {"weight": weight, "switched_rows": count, "objective": objective}
                for count, (weight, objective) in zip(rows.tolist(), objectives.tolist(), strict=True)
            ],
        }


def _machine_count(size: Size) -> int:
    return size.classes if size.classes > 2 else 1


def _memory(params: TransductiveSVM, size: Size) -> float:
    """Bytes of a machine, in which each row stands twice while labels are annealed, and of a kernel that is held."""
    machine = machines.memory(params, size._replace(rows=size.rows * (1 if params.init == "machine" else 2)))
    square = 8 * size.rows**2
    return machine + (square if square <= params.cache_size * MEBIBYTE else 0.0)


def _seconds(params: TransductiveSVM, size: Size) -> float:
    """Seconds of machines that start from the one before, where they are found by pairs of rows; of annealed ones."""
    in_columns = params.kernel == "linear" and in_weights(size.rows, size.columns)
    growing = 0.0 if params.init == "annealing" else 3.0 if in_columns else 0.15
    annealing = 0.0 if params.init == "machine" else 7.5 if in_columns else 1.9
    return _machine_count(size) * (growing + annealing) * params.stages * machines.seconds(params, size)


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=TransductiveSVM,
    state=State,
    fit=fit,
    predict=predict,
    degrees=lambda _: True,
    accepts={Accepts.UNLABELLED},
    projects_kernels=lambda params: params.indefinite == "project",
    faults=lambda params, inputs: prior_faults(params.priors, inputs.size.classes),
    memory=_memory,
    seconds=_seconds,
    rowwise=True,
    relations={Form.SQUARE: {Meaning.KERNEL}},
    outputs={
        "decision": Output(
            "Decision value of each machine, in half widths of its margin: positive for its class.",
            decision,
            width=lambda _, state: len(state.margins),
        )
    },
    explain=lambda params, state, x: machines.explained_by_class(
        params, state.machine, [(-1, code) for code in positive_classes(state.seen).tolist()], x
    ),
    summary=summary,
    unscaled=machines.of_planes(summary),
    breaks={
        Symmetry.ROW_ORDER: "The minimum is found to `tol`, and the last digit may decide which rows switch labels.",
        Symmetry.COLUMN_ORDER: "The minimum is found to `tol`: rounding of sums over columns changes the steps to it.",
        Symmetry.SCALE: "A kernel gives a column the weight of its unit; scale the columns alike first.",
        Symmetry.WEIGHTS: "How many rows get each label is counted by rows, so that copies of a row count too.",
    },
)
