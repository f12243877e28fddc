"""The parameters of two kernels as one: those of the first, then of the second."""

from typing import TypeAlias

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.numerics.kernel_functions.kernel_function import CovarianceFunction

Pair: TypeAlias = tuple[CovarianceFunction, CovarianceFunction]


def joint_logarithms(pair: Pair) -> Vector:
    """(p,) logarithms of the parameters of both."""
    return np.concatenate([kernel.logarithms() for kernel in pair])


def with_joint_logarithms(pair: Pair, values: Vector) -> Pair:
    """Both with parameters of these logarithms (p,)."""
    first, second = pair
    first_values, other = np.split(values, [len(first.logarithms())])
    return first.with_logarithms(first_values), second.with_logarithms(other)
