"""A Gaussian process of rows: parameters of the largest likelihood, the posterior, and how well it predicts them."""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Context, Vector
from app.ml.numerics.gaussian_processes.covariance_cholesky import covariance_cholesky
from app.ml.numerics.gaussian_processes.function_posterior import FunctionPosterior, exact_posterior
from app.ml.numerics.gaussian_processes.likelihood_maximum import Maximum, Search, likelihood_maximum
from app.ml.numerics.gaussian_processes.marginal_likelihood import LeftOut, Observations, left_out, log_likelihood
from app.ml.numerics.gaussian_processes.sparse_posterior import inducing_points, sparse_posterior

LEARNED = 2000
"""Rows from which the parameters of a sparse posterior are learned."""
CONFIDENCE = 0.95


class LeaveOneOutScores(NamedTuple):
    """Scores of the predictions of each row by all the others, with the same parameters."""

    log_density: float
    """Mean log density of the targets."""
    rmse: float
    coverage: float
    """Share of the targets within their 95 % interval."""


class LearnedProcess(NamedTuple):
    maximum: Maximum
    posterior: FunctionPosterior
    log_likelihood: float
    """A lower bound of it where the posterior is sparse."""
    scores: LeaveOneOutScores | None
    """None: of a sparse posterior."""


def learned_process(
    observations: Observations, search: Search, context: Context, *, inducing: int | None, freedom: float
) -> LearnedProcess:
    """inducing: points of a sparse posterior; None: it is exact. freedom: degrees of freedom of an interval."""
    if inducing is None:
        maximum = likelihood_maximum(observations, search, context)
        kernel, noise = observations.fitted(maximum.logarithms)
        factor = covariance_cholesky(kernel, observations.rows, noise)
        alpha = factor.solve(observations.targets)
        likelihood = log_likelihood(observations.targets, factor, alpha)
        posterior = exact_posterior(observations.rows, alpha, factor)
        scores = _scores(observations.targets, left_out(observations.targets, factor, alpha), freedom)
        return LearnedProcess(maximum, posterior, likelihood, scores)
    maximum = likelihood_maximum(observations.drawn(LEARNED, context.rng), search, context)
    kernel, noise = observations.fitted(maximum.logarithms)
    points = inducing_points(kernel, observations.rows, inducing, context.rng)
    sparse = sparse_posterior(kernel, points, observations.rows, observations.targets, noise)
    return LearnedProcess(maximum, sparse.posterior, sparse.bound, None)


def _scores(targets: Vector, without: LeftOut, freedom: float) -> LeaveOneOutScores:
    errors = targets - without.mean
    reach = scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2) if freedom > 0 else np.inf
    standard = errors / np.sqrt(without.variance)
    densities = -0.5 * (standard**2 + np.log(2 * np.pi * without.variance))
    within = np.abs(standard) <= reach
    return LeaveOneOutScores(float(densities.mean()), float(np.sqrt(np.mean(errors**2))), float(within.mean()))
