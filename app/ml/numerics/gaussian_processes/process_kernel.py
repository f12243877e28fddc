"""Kernels of Gaussian processes by name, with the limits and starts of their parameters in standard units."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.kernel_functions.kernel_function import CovarianceFunction
from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.kernel_functions.matern_kernel import Matern
from app.ml.numerics.kernel_functions.periodic_kernel import Periodic
from app.ml.numerics.kernel_functions.product_kernel import Product
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf
from app.ml.numerics.kernel_functions.scaled_kernel import Scaled
from app.ml.numerics.kernel_functions.sum_kernel import Sum

KernelName = Literal["rbf", "matern52", "matern32", "matern12", "periodic", "locally_periodic"]
Kind = str
"""Meaning of a parameter, a key of BOUNDS: `shape` is the length scale of a repetition, which has no unit."""
VARIANCES = math.log(1e-5), math.log(1e5)
SCALES = math.log(1e-3), math.log(1e4)
BOUNDS: dict[Kind, tuple[float, float]] = {
    "amplitude": VARIANCES,
    "gamma": (math.log(0.5) - 2 * SCALES[1], math.log(0.5) - 2 * SCALES[0]),
    "scale": SCALES,
    "shape": SCALES,
    "period": (math.log(1e-2), math.log(1e2)),
    "trend": VARIANCES,
    "noise": (math.log(1e-10), math.log(10)),
}
"""Logarithms of the smallest and the largest parameter that is learned."""
REACH: dict[Kind, float] = {
    "amplitude": 1.0,
    "gamma": 3.0,
    "scale": 1.5,
    "shape": 1.5,
    "period": 2.0,
    "trend": 2.0,
    "noise": 4.0,
}
"""Largest distance of a drawn start from the first one, in logarithms."""


class ProcessKernel(NamedTuple):
    """A kernel with its first parameters, and what each of them means."""

    kernel: CovarianceFunction
    kinds: tuple[Kind, ...]
    """(p,) in the order of its logarithms."""

    @classmethod
    def of(cls, name: KernelName, scales: Vector, period: Vector, amplitude: float, *, trend: bool) -> Self:
        """scales, period: (1,) or (d,), in standard units; scales of `periodic` have no unit. amplitude: a variance."""
        kind_names: tuple[Kind, ...] = ("scale",) * len(scales)
        times: tuple[Kind, ...] = ("period",) * len(period)
        core: CovarianceFunction
        match name:
            case "rbf":
                core, kind_names = Rbf(0.5 / scales**2), ("gamma",) * len(scales)
            case "periodic":
                core, kind_names = Periodic(scales, period), (*("shape",) * len(scales), *times)
            case "locally_periodic":
                core = Product(Rbf(0.5 / scales**2), Periodic(np.ones(1), period))
                kind_names = (*("gamma",) * len(scales), "shape", *times)
            case "matern52":
                core = Matern(5, scales)
            case "matern32":
                core = Matern(3, scales)
            case "matern12":
                core = Matern(1, scales)
        scaled = Scaled(amplitude, core)
        kinds: tuple[Kind, ...] = ("amplitude", *kind_names)
        return cls(Sum(scaled, Scaled(1.0, Linear())), (*kinds, "trend")) if trend else cls(scaled, kinds)

    def bounds(self) -> Matrix:
        """(p + 1, 2) of the logarithms, those of the noise last."""
        return np.array([BOUNDS[kind] for kind in (*self.kinds, "noise")])

    def starts(self, first: Vector, free: Sequence[bool], count: int, rng: np.random.Generator) -> list[Vector]:
        """Logarithms (p + 1,) where searches begin: the first ones, then drawn ones, alike for all columns."""
        kinds, bounds = (*self.kinds, "noise"), self.bounds()
        starts = [np.where(free, np.clip(first, *bounds.T), first)]
        for _ in range(count - 1):
            moves = dict(zip(REACH, rng.uniform(-1, 1, len(REACH)), strict=True))
            drawn = first + np.array([REACH[kind] * moves[kind] for kind in kinds])
            starts.append(np.where(free, np.clip(drawn, *bounds.T), first))
        return starts

    def named(self, logarithms: Vector) -> dict[Kind, Vector]:
        """Parameters (p,) of these logarithms by kind; `gamma` as the length scales of the same kernel."""
        values_of_kind: dict[Kind, Vector] = {}
        for kind in dict.fromkeys(self.kinds):
            values = np.exp(logarithms[np.array([kind_ == kind for kind_ in self.kinds])])
            values_of_kind["scale" if kind == "gamma" else kind] = (
                1 / np.sqrt(2 * values) if kind == "gamma" else values
            )
        return values_of_kind
