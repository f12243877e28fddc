"""The marginal likelihood: derivatives as differences have them, compiled weights as numpy has them, sparse bounds."""

import numpy as np
import pytest
import scipy

from app.ml.numerics.gaussian_processes.compiled.likelihood_weights import likelihood_weights
from app.ml.numerics.gaussian_processes.covariance_cholesky import covariance_cholesky
from app.ml.numerics.gaussian_processes.marginal_likelihood import Observations, negative_likelihood
from app.ml.numerics.gaussian_processes.process_kernel import ProcessKernel
from app.ml.numerics.gaussian_processes.sparse_posterior import inducing_points, sparse_posterior
from app.ml.numerics.kernel_functions.compiled.squared_differences import squared_differences

RNG = np.random.default_rng(2)
ROWS, TARGETS, WEIGHTS = RNG.normal(size=(150, 3)), RNG.normal(size=150), RNG.uniform(0.5, 2, 150)
NAMES = ["rbf", "matern52", "matern32", "matern12", "periodic", "locally_periodic"]


def observations(name, *, trend=False, scales=3):
    kernel = ProcessKernel.of(name, np.linspace(1, 2, scales), np.array([2.3]), 1.3, trend=trend).kernel
    return Observations(kernel, ROWS, TARGETS, WEIGHTS)


@pytest.mark.parametrize("scales", [1, 3])
@pytest.mark.parametrize("trend", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_differences(name, trend, scales):
    observed = observations(name, trend=trend, scales=scales)
    at, step = np.append(observed.kernel.logarithms(), np.log(0.2)), 1e-5
    moves = step * np.eye(len(at))

    def value(logarithms):
        return negative_likelihood(observed, logarithms)[0]

    expected = [(value(at + move) - value(at - move)) / (2 * step) for move in moves]
    np.testing.assert_allclose(negative_likelihood(observed, at)[1], expected, rtol=1e-6, atol=1e-6)


def test_the_likelihood_is_the_density_of_a_normal_distribution():
    observed = observations("matern32")
    covariance = observed.kernel.matrix(ROWS, ROWS) + np.diag(0.2 / WEIGHTS)
    expected = scipy.stats.multivariate_normal(np.zeros(150), covariance).logpdf(TARGETS)
    assert negative_likelihood(observed, np.append(observed.kernel.logarithms(), np.log(0.2)))[0] == pytest.approx(
        -expected, rel=1e-9
    )


def test_compiled_weights_are_those_of_numpy():
    alpha, upper = RNG.normal(size=150), np.triu(RNG.normal(size=(150, 150)))
    expected = upper + np.triu(upper, 1).T - np.outer(alpha, alpha)
    likelihood_weights(upper, alpha)
    np.testing.assert_allclose(upper, expected, rtol=1e-12)


def test_compiled_squares_are_those_of_numpy():
    left, right = RNG.normal(size=(20, 5)), RNG.normal(size=(1500, 5))
    squares = np.empty((20, 1500))
    squared_differences(left, np.ascontiguousarray(right.T), squares)
    np.testing.assert_allclose(squares, ((left[:, None] - right) ** 2).sum(axis=2), rtol=1e-13)


def test_a_singular_covariance_has_a_factor():
    kernel = observations("rbf").kernel
    twice = np.repeat(ROWS[:20], 2, axis=0)
    factor = covariance_cholesky(kernel, twice, np.zeros(40))
    assert 0 < factor.jitter < 1e-10
    lower = np.tril(factor.lower)
    np.testing.assert_allclose(lower @ lower.T, kernel.matrix(twice, twice), atol=1e-10)


def test_with_all_rows_as_inducing_points_the_sparse_posterior_is_the_exact_one():
    observed = observations("matern52")
    kernel, noise = observed.fitted(np.append(observed.kernel.logarithms(), np.log(0.2)))
    found = sparse_posterior(kernel, ROWS, ROWS, TARGETS, noise)
    exact = kernel.matrix(ROWS, ROWS) + np.diag(noise)
    query = RNG.normal(size=(30, 3))
    across = kernel.matrix(query, ROWS)
    np.testing.assert_allclose(
        found.posterior.mean(kernel, query), across @ np.linalg.solve(exact, TARGETS), rtol=1e-6, atol=1e-9
    )
    covariance = kernel.matrix(query, query) - across @ np.linalg.solve(exact, across.T)
    np.testing.assert_allclose(found.posterior.variance(kernel, query), np.diag(covariance), rtol=1e-6)
    np.testing.assert_allclose(found.posterior.covariance(kernel, query, query), covariance, atol=1e-8)
    likelihood = scipy.stats.multivariate_normal(np.zeros(150), exact).logpdf(TARGETS)
    assert found.bound == pytest.approx(likelihood, rel=1e-8)


def test_the_bound_rises_with_the_inducing_points_and_stays_below_the_likelihood():
    observed = observations("rbf")
    kernel, noise = observed.fitted(np.append(observed.kernel.logarithms(), np.log(0.2)))
    likelihood = scipy.stats.multivariate_normal(np.zeros(150), kernel.matrix(ROWS, ROWS) + np.diag(noise)).logpdf(
        TARGETS
    )
    points = [inducing_points(kernel, ROWS, count, np.random.default_rng(0)) for count in (5, 20, 60)]
    bounds = [sparse_posterior(kernel, some, ROWS, TARGETS, noise).bound for some in points]
    assert bounds == sorted(bounds)
    assert bounds[-1] < likelihood
