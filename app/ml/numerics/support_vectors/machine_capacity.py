"""Capacity of support vector machines: what a kernel and its support vectors allow bounds of the risk."""

import math

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data
from app.ml.contract.capacity import Capacity, Compression
from app.ml.contract.sparse_rows import sparse
from app.ml.numerics.support_vectors.kernel_rows import KernelRows
from app.ml.numerics.support_vectors.machine import Machine
from app.ml.numerics.support_vectors.machine_params import MachineParams


def trace(params: MachineParams, machine: Machine, data: Data) -> float:
    """Sum over the rows of k(x, x) + 1: their squared lengths with a constant of 1. NaN where all pairs were given."""
    if data.square is not None:
        return math.nan
    rows = data.x if sparse(data.x) is not None else np.ascontiguousarray(data.x)
    diagonal = KernelRows(params.function(machine.gamma), rows).diagonal
    return float(diagonal.sum()) + len(diagonal)


def machine_capacity(
    params: MachineParams, machine: Machine, dimensions: float, capacity: Capacity, wrong: NDArray[np.bool_] | None
) -> Capacity:
    """`capacity`, without weights where the kernel was not fixed before the rows, as by a gamma that follows from them.

    dimensions: of the space of the kernel. wrong: (n,) training rows that are predicted wrongly; None: predictions
    depend on more than the support vectors.
    """
    if not machine.points.size and not len(machine.weights):  # all pairs were given
        return Capacity()
    if machine.projected:
        return Capacity()
    dimension = dimensions + 1 if math.isfinite(dimensions) else None
    if params.kernel != "linear" and params.gamma is None:
        return Capacity(dimension=dimension)
    if wrong is None:
        return capacity._replace(dimension=dimension)
    others = np.count_nonzero(wrong) - np.count_nonzero(wrong[machine.places])
    return capacity._replace(dimension=dimension, compression=Compression(machine.places.size, int(others)))
