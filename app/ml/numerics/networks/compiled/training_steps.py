"""Compiled steps of a training in 32 bits: each reads and writes its numbers once."""

import math
from typing import Any

from numpy.typing import NDArray

from app.ml.numerics.jit import kernel


@kernel("void(f4[:,::1], f4[::1])", writes=["sums"])
def add_and_rectify(sums: NDArray[Any], bias: NDArray[Any]) -> None:
    """Sums become max(0, sum + bias)."""
    for i in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            value = sums[i, j] + bias[j]
            sums[i, j] = max(0, value)


@kernel(
    "void(f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4, f4, f4, f4, f4)",
    writes=["point", "first", "second"],
    ieee=True,
)
def adam_step(
    point: NDArray[Any],
    gradient: NDArray[Any],
    penalties: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    rate: float,
    first_kept: float,
    second_kept: float,
    second_share: float,
    floor: float,
) -> None:
    """A step of Adam (Kingma & Ba 2015, algorithm 1), the rate corrected for the moments' start at 0.

    penalties: factor of each number in its own gradient. second_share: 1 − second_kept.
    """
    for i in range(point.size):
        slope = gradient[i] + penalties[i] * point[i]
        first[i] = first_kept * first[i] + (1 - first_kept) * slope
        second[i] = second_kept * second[i] + second_share * slope * slope
        point[i] -= rate * first[i] / (math.sqrt(second[i]) + floor)


@kernel("void(f4[::1], f4[::1], f4[::1], f4[::1], f4, f4)", writes=["point", "velocity"])
def momentum_step(
    point: NDArray[Any],
    gradient: NDArray[Any],
    penalties: NDArray[Any],
    velocity: NDArray[Any],
    rate: float,
    momentum: float,
) -> None:
    """A step against the gradient, and the share `momentum` of the step before."""
    for i in range(point.size):
        velocity[i] = momentum * velocity[i] - rate * (gradient[i] + penalties[i] * point[i])
        point[i] += velocity[i]
