"""The posterior of a Gaussian process in the units of the table: columns and targets as they are measured."""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.gaussian_processes.function_posterior import FunctionPosterior
from app.ml.numerics.kernel_functions.kernel_function import KernelFunction


class MeasuredFunction(NamedTuple):
    """A `RandomFunction` of a posterior in standard units."""

    kernel: KernelFunction
    posterior: FunctionPosterior
    centre: Vector
    """(d,)."""
    scale: Vector
    """(d,) factors of the columns; 0 of one that plays no part."""
    middle: float
    unit: float
    """A value is middle + unit times that of the posterior."""
    noise: float
    """Variance of a measurement of weight 1."""

    @property
    def rows(self) -> Matrix:
        width = np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)
        return self.centre + self.posterior.points * width

    @property
    def prior_variance(self) -> float:
        """The largest at a row of the posterior, before any value is known."""
        return self.unit**2 * float(self.kernel.diagonal(self.posterior.points).max())

    def mean(self, x: Matrix) -> Vector:
        return self.middle + self.unit * self.posterior.mean(self.kernel, self._standard(x))

    def variance(self, x: Matrix) -> Vector:
        return self.unit**2 * self.posterior.variance(self.kernel, self._standard(x))

    def covariance(self, x: Matrix, y: Matrix) -> Matrix:
        return self.unit**2 * self.posterior.covariance(self.kernel, self._standard(x), self._standard(y))

    def _standard(self, x: Matrix) -> Matrix:
        return (x - self.centre) * self.scale
