"""Acquisitions: improvements against integrals, batches against simulation, and the example of Kriging."""

import math

import numpy as np
import pytest
import scipy

from app.ml.algorithms import gaussian_process
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.acquisition.acquisition_value import Acquisition
from app.ml.numerics.acquisition.improvement import log_expected_improvement, log_h, log_probability_of_improvement
from app.ml.numerics.acquisition.pending_measurements import Pending

X = np.array([[0.0], [0.3], [0.5], [1.0]])
Y = np.array([0.0, 1.0, 0.4, -1.0])


def function(sigma=0.0, x=X, y=Y, **given):
    """The posterior of a Gaussian process with given parameters."""
    given = {"kernel": "rbf", "length_scale": 0.3, "amplitude": 1.0} | given
    params = gaussian_process.GaussianProcess(sigma=sigma, **given)
    state = gaussian_process.fit(params, Data.of(Task.REGRESSION, x, y), Context.of(0)).state
    return gaussian_process.function(params, state)


def test_the_surface_of_kriging_passes_through_its_pins():
    """LION 1.2: with k(x, y) = s² exp(−(x − y)²/(2 L²)) the mean is kᵀK⁻¹y, the variance k(x, x) − kᵀK⁻¹k."""
    own, x = function(), np.linspace(-0.5, 1.5, 30)[:, None]
    gram = np.exp(-((X - X.T) ** 2) / (2 * 0.3**2))
    near = np.exp(-((x - X.T) ** 2) / (2 * 0.3**2))
    centred = Y - Y.mean()
    np.testing.assert_allclose(own.mean(x), Y.mean() + near @ np.linalg.solve(gram, centred), atol=1e-9)
    np.testing.assert_allclose(own.variance(x), 1 - np.sum(near * np.linalg.solve(gram, near.T).T, axis=1), atol=1e-9)
    np.testing.assert_allclose(own.mean(X), Y, atol=1e-9)
    np.testing.assert_allclose(own.variance(X), 0, atol=1e-9)
    np.testing.assert_allclose(own.rows[np.argsort(own.rows[:, 0])], X, atol=1e-12)


def test_expected_improvement_is_the_integral_of_the_improvement():
    for mean, deviation, best in [(0.2, 0.5, 0.4), (1.0, 0.1, 0.5), (-2.0, 0.7, 0.0)]:
        integral, _ = scipy.integrate.quad(
            lambda f, b=best, m=mean, s=deviation: (f - b) * scipy.stats.norm.pdf(f, m, s), best, mean + 12 * deviation
        )
        found = log_expected_improvement(np.array(mean), np.array(deviation), np.array(best))
        assert math.exp(found) == pytest.approx(integral, rel=1e-7)
        found = log_probability_of_improvement(np.array(mean), np.array(deviation), np.array(best))
        assert math.exp(found) == pytest.approx(scipy.stats.norm.sf(best, mean, deviation))


def test_far_below_the_best_value_the_logarithm_is_that_of_the_asymptotic_series():
    z = np.array([-12.0, -40.0, -300.0, -999.0, -1001.0, -1e6])
    series = np.log1p(-3 / z**2 + 15 / z**4 - 105 / z**6 + 945 / z**8)
    np.testing.assert_allclose(log_h(z), -0.5 * z**2 - 0.5 * math.log(2 * math.pi) - 2 * np.log(-z) + series, rtol=1e-8)
    assert (np.diff(log_h(np.linspace(-1200, 10, 5000))) > 0).all()


def test_a_known_function_has_no_improvement_but_that_which_is_known():
    mean, best = np.array([1.0, 2.0, 3.0]), np.array(2.0)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(log_expected_improvement(mean, np.zeros(3), best), np.log([0, 0, 1]))
    np.testing.assert_array_equal(log_probability_of_improvement(mean, np.zeros(3), best), [-np.inf, -np.inf, 0])


def test_pending_measurements_change_the_function_as_a_fit_with_them_would():
    """The same mean and variance as the Gaussian process of all rows, the pending ones with the values they take."""
    rows, sigma = np.array([[0.7], [0.15]]), 0.1
    own = function(sigma)
    pending = Pending.believed(own, rows, 0.8)
    values = np.append(Y, [0.8, 0.8])
    x = np.linspace(0, 1, 9)[:, None]
    means, deviation = pending.moments(x)
    all_rows = np.vstack([X, rows])
    gram = np.exp(-((all_rows - all_rows.T) ** 2) / (2 * 0.3**2)) + sigma**2 * np.eye(6)
    near = np.exp(-((x - all_rows.T) ** 2) / (2 * 0.3**2))
    middle = Y.mean()  # of the rows of the fit
    np.testing.assert_allclose(means[0], middle + near @ np.linalg.solve(gram, values - middle), atol=1e-9)
    expected = 1 - np.sum(near * np.linalg.solve(gram, near.T).T, axis=1)
    np.testing.assert_allclose(deviation**2, expected, atol=1e-9)


def test_a_believer_changes_no_mean():
    own, x = function(), np.linspace(0, 1, 7)[:, None]
    means, deviation = Pending.believed(own, np.array([[0.8]]), None).moments(x)
    np.testing.assert_allclose(means[0], own.mean(x), atol=1e-9)
    assert (deviation**2 <= own.variance(x) + 1e-12).all()


def test_the_improvement_of_a_batch_is_that_of_a_simulation():
    """q-EI: E max(f(a), f(b)) − best, as the improvement of a and what b adds to it, given a."""
    own, a, b, best = function(), np.array([[0.75]]), np.array([[0.15]]), 0.5
    normals = scipy.special.ndtri(scipy.stats.qmc.Sobol(1, rng=0).random_base2(12))
    acquisition = Acquisition("expected_improvement", 1.0, best)
    first = math.exp(acquisition.score(Pending.none(own), a)[0])
    second = math.exp(acquisition.score(Pending.drawn(own, a, normals), b)[0])
    both = np.vstack([a, b])
    draws = np.random.default_rng(0).multivariate_normal(own.mean(both), own.covariance(both, both), 400_000)
    simulated = np.maximum(draws.max(axis=1) - best, 0).mean()
    assert first + second == pytest.approx(simulated, rel=0.01)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_to_minimise_is_to_maximise_the_negative(sign):
    x = np.linspace(0, 1, 11)[:, None]
    up, down = function(y=Y), function(y=-Y)
    for name in ("expected_improvement", "probability_of_improvement", "confidence_bound", "uncertainty"):
        one, other = (Acquisition(name, s, 1.0) for s in (1.0, -1.0))
        np.testing.assert_allclose(
            one.score(Pending.none(up), x), other.score(Pending.none(down), x), rtol=1e-6, atol=1e-9
        )
    assert Acquisition("confidence_bound", sign, 1.0).value(2.0) == 2 * sign


def test_a_batch_of_equal_rows_has_a_factor():
    own = function()
    pending = Pending.believed(own, np.array([[0.7], [0.7], [0.7]]), 1.0)
    assert np.isfinite(pending.moments(np.array([[0.6]]))[0]).all()
