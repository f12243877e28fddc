"""Gaussian processes beside scikit-learn: predictions, likelihoods, intervals, and rows that leave something open."""

import warnings

import numpy as np
import pytest
from sklearn import datasets
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from app.ml.algorithms import gaussian_process as ours
from app.ml.contract.algorithm import Context, Data, Task

RNG = np.random.default_rng(8)
X = RNG.normal(1, 2, (80, 3))
Y = 5 + np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=80)
FIXED = {"length_scale": 1.7, "amplitude": 1.5, "sigma": 0.2}
PEERS = {
    "rbf": kernels.RBF(1.7),
    "matern12": kernels.Matern(1.7, nu=0.5),
    "matern32": kernels.Matern(1.7, nu=1.5),
    "matern52": kernels.Matern(1.7, nu=2.5),
}


def fitted(x, y, weights=None, seed=0, **params):
    own = ours.GaussianProcess(**params)
    return own, ours.fit(own, Data.of(Task.REGRESSION, x, y, weights=weights), Context.of(seed)).state


def rival(kernel, noise=1e-10, **how):
    return GaussianProcessRegressor(kernel, alpha=noise, **how)


@pytest.mark.parametrize("name", PEERS)
def test_with_given_parameters_it_is_that_of_scikit_learn(name):
    params, state = fitted(X, Y, kernel=name, **FIXED)
    peer = rival(1.5**2 * PEERS[name], 0.2**2, optimizer=None).fit(X, Y - Y.mean())
    query = RNG.normal(1, 2, (40, 3))
    mean, deviation = peer.predict(query, return_std=True)
    np.testing.assert_allclose(ours.predict(params, state, query), mean + Y.mean(), rtol=1e-8)
    np.testing.assert_allclose(np.sqrt(ours.variance(params, state, query)), deviation, rtol=1e-8)
    found = ours.summary(params, state)["log_marginal_likelihood"]
    assert found == pytest.approx(peer.log_marginal_likelihood_value_, rel=1e-8)


def test_rows_of_known_errors_weigh_by_them():
    """A noise for each row, as the weights 1/σ² and `sigma` 1 state it."""
    errors = RNG.uniform(0.1, 1, 80)
    params, state = fitted(X, Y, 1 / errors**2, length_scale=1.7, amplitude=1.5, sigma=1)
    peer = rival(1.5**2 * PEERS["matern52"], errors**2, optimizer=None).fit(X, Y - state.middle)
    np.testing.assert_allclose(ours.predict(params, state, X), peer.predict(X) + state.middle, rtol=1e-8)


def test_leave_one_out_is_that_of_fits_without_each_row():
    params, state = fitted(X, Y, **FIXED)
    peer = rival(1.5**2 * PEERS["matern52"], 0.2**2, optimizer=None)
    errors, inside = [], []
    for i in range(80):
        rest = np.arange(80) != i
        mean, deviation = peer.fit(X[rest], Y[rest] - Y.mean()).predict(X[[i]], return_std=True)
        errors.append(Y[i] - Y.mean() - mean[0])
        inside.append(abs(errors[-1]) <= 1.959964 * np.hypot(deviation[0], 0.2))
    scores = ours.summary(params, state)["leave_one_out"]
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-8)
    assert scores["coverage"] == pytest.approx(np.mean(inside))


def small_tables():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(40 + 10 * seed, 1 + seed % 3))
        y = np.sin(2 * x[:, 0]) + 0.5 * x[:, -1] + rng.normal(size=len(x)) * 10.0 ** -(seed % 3)
        yield x, y
    x, y = datasets.load_diabetes(return_X_y=True)
    yield x[:100, 2:5], y[:100]
    yield x[100:160, [2, 8]], y[100:160]
    x, y = datasets.load_linnerud(return_X_y=True)
    yield x, y[:, 0]
    yield x, y[:, 2]


@pytest.mark.parametrize("table", range(10))
def test_the_likelihood_is_no_lower_than_that_of_scikit_learn(table):
    x, y = list(small_tables())[table]
    z, target = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    kernel = kernels.ConstantKernel(1, (1e-5, 1e5)) * kernels.Matern(np.ones(x.shape[1]), (1e-3, 1e4), nu=2.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lengths at the bounds
        peer = rival(kernel + kernels.WhiteKernel(0.1, (1e-10, 10))).fit(z, target)
    params, state = fitted(x, y)
    theirs = peer.log_marginal_likelihood_value_ - len(y) * np.log(y.std())
    assert ours.summary(params, state)["log_marginal_likelihood"] >= theirs - 1e-3


def test_without_noise_the_surface_passes_through_the_pins():
    """The goodness model of The LION Way: at the samples it is exact, and between them it is not certain."""
    pins = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 0.9], [0.8, 0.8], [0.5, 0.4]])
    goodness = np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    params, state = fitted(pins, goodness, kernel="rbf", sigma=0)
    np.testing.assert_allclose(ours.predict(params, state, pins), goodness, rtol=1e-7)
    assert np.abs(ours.variance(params, state, pins)).max() < 1e-7
    assert ours.variance(params, state, np.array([[0.1, 0.6], [0.9, 0.5]])).min() > 1e-4


def test_columns_that_do_not_matter_have_long_length_scales():
    x = RNG.normal(size=(120, 2))
    params, state = fitted(x, np.sin(2 * x[:, 0]) + 0.05 * RNG.normal(size=120))
    first, second = ours.summary(params, state)["length_scales"]
    assert second > 20 * first


def test_a_given_period_repeats():
    x = np.linspace(0, 4, 60)[:, None]
    params, state = fitted(x, np.sin(2 * np.pi * x[:, 0]) ** 3, kernel="periodic", period=1)
    query = np.linspace(8, 9, 11)[:, None]
    np.testing.assert_allclose(ours.predict(params, state, query), np.sin(2 * np.pi * query[:, 0]) ** 3, atol=0.01)


def test_a_linear_trend_goes_on_beyond_the_rows():
    x = np.linspace(0, 1, 30)[:, None]
    y = 3 * x[:, 0] + 0.1 * np.sin(12 * x[:, 0])
    far = np.array([[3.0]])
    flat, steep = [ours.predict(*fitted(x, y, kernel="rbf", linear_trend=trend), far)[0] for trend in (False, True)]
    assert abs(steep - 9) < 0.25 * abs(flat - 9)


@pytest.mark.parametrize("kernel", ["rbf", "matern52", "locally_periodic"])
def test_equal_rows_with_different_targets_have_a_fit_even_without_noise(kernel):
    x = np.repeat(X[:10], 2, axis=0)
    params, state = fitted(x, np.arange(20.0), kernel=kernel, sigma=0)
    assert np.isfinite(ours.predict(params, state, x)).all()
    assert np.isfinite(ours.variance(params, state, x)).all()


def test_a_column_that_does_not_vary_plays_no_part():
    with_constant = np.column_stack([X, np.full(80, 0.1)])
    params, state = fitted(with_constant, Y)
    query = with_constant + np.array([0, 0, 0, 7.0])
    np.testing.assert_array_equal(ours.predict(params, state, with_constant), ours.predict(params, state, query))


def test_intervals_cover_new_rows_as_often_as_they_state():
    rng, inside = np.random.default_rng(3), []
    for seed in range(20):
        x = rng.normal(size=(90, 2))
        y = np.sin(x[:, 0]) + x[:, 1] + 0.3 * rng.normal(size=90)
        params, state = fitted(x[:30], y[:30], seed=seed, n_init=1)
        low, high = ours.interval(params, state, x[30:], 0.9).T
        inside.append(np.mean((low <= y[30:]) & (y[30:] <= high)))
    assert np.mean(inside) == pytest.approx(0.9, abs=0.04)


def test_a_single_row_leaves_the_interval_open():
    params, state = fitted(X[:1], Y[:1])
    np.testing.assert_array_equal(ours.interval(params, state, X[:2], 0.9), [[-np.inf, np.inf]] * 2)
