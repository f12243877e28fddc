"""The log marginal likelihood of a Gaussian process, its derivatives, and leave-one-out predictions.

Targets y have mean 0 and covariance K + N, with the kernel's matrix K and the noise N = diag(σ²/w) of rows of weight w:

    log p(y) = −½ yᵀ(K + N)⁻¹y − ½ log |K + N| − ½ n log 2π.

One factor serves value, derivatives and leave-one-out. The derivative by a parameter θ is
½ tr((ααᵀ − (K + N)⁻¹) ∂K/∂θ) with α = (K + N)⁻¹y. Without row i its prediction is yᵢ − αᵢ/cᵢ with variance 1/cᵢ, c the
diagonal of (K + N)⁻¹.

Source: Rasmussen & Williams, Gaussian Processes for Machine Learning, equations 2.30, 5.9 and 5.12.
"""

import math
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.gaussian_processes.compiled.likelihood_weights import likelihood_weights
from app.ml.numerics.gaussian_processes.covariance_cholesky import Cholesky, covariance_cholesky
from app.ml.numerics.kernel_functions.kernel_function import CovarianceFunction


class Observations(NamedTuple):
    """Rows with targets about 0, and the form of their covariance."""

    kernel: CovarianceFunction
    """Its parameters are replaced by those that a call gives."""
    rows: Matrix
    """(n, d)."""
    targets: Vector
    """(n,)."""
    weights: Vector
    """(n,): the noise of a row has the variance σ²/weight."""

    def drawn(self, most: int, rng: np.random.Generator) -> "Observations":
        """At most so many of the rows, in their order."""
        n = len(self.targets)
        places = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
        return Observations(self.kernel, *(part[places] for part in self[1:]))

    def fitted(self, logarithms: Vector) -> tuple[CovarianceFunction, Vector]:
        """The kernel, and the variance of the noise of each row (n,).

        logarithms: (p + 1,) of the parameters of the kernel, then of σ².
        """
        return self.kernel.with_logarithms(logarithms[:-1]), np.exp(logarithms[-1]) / self.weights


class LeftOut(NamedTuple):
    """Predictions of each row by all the others, with the same parameters."""

    mean: Vector
    """(n,)."""
    variance: Vector
    """(n,) of the target of the row, its noise included."""


def log_likelihood(targets: Vector, factor: Cholesky, alpha: Vector) -> float:
    """Log likelihood of targets (n,), with the factor of their covariance and alpha (n,) = (K + N)⁻¹ targets."""
    return -0.5 * float(targets @ alpha + factor.log_determinant + len(targets) * math.log(2 * math.pi))


def negative_likelihood(observations: Observations, logarithms: Vector) -> tuple[float, Vector]:
    """−log p(y) and its derivatives (p + 1,) by the logarithms, which are those of `Observations.fitted`."""
    kernel, noise = observations.fitted(logarithms)
    factor = covariance_cholesky(kernel, observations.rows, noise)
    alpha = factor.solve(observations.targets)
    value = -log_likelihood(observations.targets, factor, alpha)
    weights = factor.inverse()
    likelihood_weights(weights, alpha)
    by_kernel = kernel.weighted_sum(observations.rows, weights)
    return value, 0.5 * np.append(by_kernel.gradient, weights.diagonal() @ noise)


def left_out(targets: Vector, factor: Cholesky, alpha: Vector) -> LeftOut:
    """Closed form of leave-one-out. The factor is used up."""
    precision = factor.inverse().diagonal()
    return LeftOut(targets - alpha / precision, 1 / precision)
