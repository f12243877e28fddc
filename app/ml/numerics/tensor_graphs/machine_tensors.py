"""Support vector machines as tensors."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.export_errors import ExportUnsupported
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.kernel_functions.kernel_params import Kernel
from app.ml.numerics.support_vectors.class_machines import Multiclass, pairs_of
from app.ml.numerics.support_vectors.machine import Machine
from app.ml.numerics.tensor_graphs.class_tensors import logistic_share, spread_columns, with_first
from app.ml.numerics.tensor_graphs.kernel_tensors import kernel_values


class HasKernel(Protocol):
    def function(self, gamma: float, /) -> Kernel: ...


def machine_decisions(params: HasKernel, machine: Machine, x: Tensor) -> Tensor:
    """(n, p) decision values as `decisions`."""
    if len(machine.weights):
        return x @ machine.weights.T + machine.intercept
    if not machine.places.size:
        return x.repeated(machine.intercept)
    if not machine.points.size:
        return x[machine.places] @ machine.coef.T + machine.intercept
    kernel = params.function(machine.gamma)
    return kernel_values(kernel, np.ascontiguousarray(machine.points.T), x) @ machine.coef.T + machine.intercept


def machine_shares(how: Multiclass, positive: Tensor, classes: int, *, fitted: bool) -> Tensor:
    """(n, k) as `class_shares`. Raises ExportUnsupported for the coupling of pairs, which is an iteration."""
    if classes == 1:
        return positive.repeated(np.ones(1))
    if classes == 2:
        return with_first(positive[[0]])
    if how == "one_vs_rest":
        total = positive.reduce("ReduceSum")
        there = total > 0.0
        return positive.where(there, 1.0) / total.where(there, float(classes))
    if fitted:
        raise ExportUnsupported("Fitted probabilities of three or more classes couple pairs by an iteration: no graph.")
    pairs = pairs_of(how, np.arange(classes))
    towards = np.zeros((len(pairs), classes))
    for place, (first, second) in enumerate(pairs):
        towards[place, first], towards[place, second] = -1, 1
    shift: Vector = (towards < 0).sum(axis=0).astype(np.float64)
    return (positive @ towards + shift) / float(len(pairs))


class MachineState(Protocol):
    @property
    def machine(self) -> Machine: ...
    @property
    def sigmoids(self) -> Matrix: ...
    @property
    def seen(self) -> NDArray[np.bool_]: ...


class ClassMachineParams(Protocol):
    @property
    def multiclass(self) -> Multiclass: ...
    @property
    def cv(self) -> int | None: ...
    def function(self, gamma: float, /) -> Kernel: ...


def machine_probabilities(params: ClassMachineParams, state: MachineState, x: Tensor) -> Tensor:
    """(n, k) probabilities of a support vector classifier."""
    values, classes = machine_decisions(params, state.machine, x), np.flatnonzero(state.seen)
    if params.cv is None:
        positive = ((1.0 + values) / 2.0).combine("Max", 0.0).combine("Min", 1.0)
    else:
        positive = logistic_share(values * state.sigmoids[:, 0] + state.sigmoids[:, 1])
    shares = machine_shares(params.multiclass, positive, classes.size, fitted=params.cv is not None)
    return spread_columns(shares, classes, state.seen.size)
