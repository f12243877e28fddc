"""Least squares against certified results, derived numbers, simulation and statsmodels."""

import csv
import warnings
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn import datasets
from sklearn.linear_model import LinearRegression

from app.ml.algorithms import linear, ridge
from app.ml.contract.algorithm import Context, Data, Task

NIST = Path(__file__).parents[1] / "data" / "nist"
CORNERS = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
XOR = np.array([0.0, 1, 1, 0])
X = np.arange(5.0)
Y = np.array([1.1, 1.9, 5.2, 9.8, 17.1])
SIGMA = np.array([0.1, 0.1, 0.2, 0.2, 0.4])


def fitted(x, y, task=Task.REGRESSION, weights=None, **params):
    return linear.fit(linear.Linear(**params), Data.of(task, x, y, weights=weights), Context.of(0))


def summary(x, y, weights=None, **params):
    return linear.summary(linear.Linear(**params), fitted(x, y, weights=weights, **params).state)


def powers(x, degree):
    return np.ravel(x)[:, None] ** np.arange(1, degree + 1)


def vector(result, key):
    """Of the intercept and then the coefficients."""
    first = {"coefficients": "intercept", "standard_errors": "intercept_standard_error"}[key]
    return np.array([result[first], *result[key]])


def nist(name, degree):
    """Inputs (powers of the only one, or as they are), target, certified values, errors and residual deviation."""
    table, certified = (
        list(csv.reader((NIST / file).read_text().splitlines()))[1:]
        for file in (f"{name}.csv", f"{name}.certified.csv")
    )
    rows = np.array(table, float)
    terms = np.array([row[1:] for row in certified if row[0].startswith("b")], float)
    (deviation,) = [float(row[1]) for row in certified if row[0] == "residual_standard_deviation"]
    return powers(rows[:, 1], degree) if degree else rows[:, 1:], rows[:, 0], *terms.T, deviation


def digits(found, certified):
    """Significant decimal digits in common, at worst."""
    return -np.log10(np.abs(np.asarray(found) / certified - 1).max() + 1e-16)


@pytest.mark.parametrize(
    ("name", "degree", "least"),
    [
        ("norris", 1, 11),
        ("longley", 0, 9),
        ("wampler1", 5, 9),
        ("wampler2", 5, 9),
        ("wampler3", 5, 8),
        ("wampler4", 5, 7),
        ("wampler5", 5, 6),
    ],
)
@pytest.mark.parametrize("standardised", [False, True])
def test_certified_results(name, degree, least, standardised):
    """NIST StRD linear regression: coefficients, their errors, residual deviation."""
    x, y, coef, errors, deviation = nist(name, degree)
    middle, spread = (x.mean(axis=0), x.std(axis=0)) if standardised else (np.zeros(x.shape[1]), np.ones(x.shape[1]))
    result = summary((x - middle) / spread, y)
    slopes = np.array(result["coefficients"]) / spread
    assert digits(np.append(result["intercept"] - slopes @ middle, slopes), coef) > least
    if deviation == 0:
        assert result["residual_standard_deviation"] < 1e-13 * np.abs(y).max()
        return
    assert digits(result["residual_standard_deviation"], deviation) > least
    assert digits(np.array(result["standard_errors"]) / spread, errors[1:]) > least
    if not standardised:
        assert digits(result["intercept_standard_error"], errors[0]) > least


ORACLES = {
    2: ((0.1021692, 3.02277657), (0.08537273, 0.05964465), 432.451735, 2.0664e-93),
    3: ((1.08085452, -0.15346133, 1.0348026), (0.09756361, 0.16445988, 0.04993235), 2.9637642, 0.22720965),
    4: ((1.08921162, -0.25484094, 1.12717842, -0.01839557), None, 2.8049793, 0.09397207),
}


@pytest.mark.parametrize("parameters", ORACLES)
def test_polynomials_with_measured_errors(parameters):
    """B5.1. M parameters are degree + 1 (erratum E2), so that ν = N − M."""
    coef, errors, chi2, q = ORACLES[parameters]
    result = summary(powers(X, parameters - 1), Y, weights=1 / SIGMA**2, sigma=1)
    np.testing.assert_allclose(vector(result, "coefficients"), coef, atol=6e-9)
    if errors is not None:
        np.testing.assert_allclose(vector(result, "standard_errors"), errors, atol=6e-9)
    assert result["chi2"] == pytest.approx(chi2, rel=2e-8)
    assert result["q"] == pytest.approx(q, rel=2e-5 if parameters == 2 else 2e-7)
    assert result["degrees_of_freedom"] == 5 - parameters
    assert result["reduced_chi2"] == pytest.approx(result["chi2"] / (5 - parameters))


def test_q_chooses_the_degree_that_chi2_would_not():
    """B5.9."""
    result = {m: summary(powers(X, m - 1), Y, weights=1 / SIGMA**2, sigma=1) for m in ORACLES}
    assert max(result, key=lambda m: result[m]["q"]) == 3
    assert min(result, key=lambda m: result[m]["chi2"]) == 4


def test_reduced_chi2_is_one_on_average_and_chi2_is_not():
    """Erratum LION 11.1, and the errors are those of a simulation (LION 5.1)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 2))
    sigma = rng.uniform(0.5, 2, 12)
    result = [
        summary(x, 1 + x @ [2, -1] + sigma * rng.normal(size=12), weights=1 / sigma**2, sigma=1) for _ in range(2000)
    ]
    assert np.mean([one["reduced_chi2"] for one in result]) == pytest.approx(1, abs=0.04)
    assert np.mean([one["chi2"] for one in result]) == pytest.approx(9, abs=0.4)
    coefs = np.array([vector(one, "coefficients") for one in result])
    np.testing.assert_allclose(
        np.cov(coefs.T), result[0]["covariance"], atol=0.1 * np.abs(result[0]["covariance"]).max()
    )
    np.testing.assert_allclose(coefs.std(axis=0), vector(result[0], "standard_errors"), rtol=0.08)


@pytest.mark.parametrize("sigma", [None, 1.5])
def test_intervals_cover_the_mean_as_often_as_they_say(sigma):
    rng = np.random.default_rng(1)
    x, query = rng.normal(size=(10, 2)), np.array([[0.5, -2.0]])
    params, truth, inside = linear.Linear(sigma=sigma, interval_of="mean"), 1 + query[0] @ [2, -1], 0
    for _ in range(1000):
        state = fitted(x, 1 + x @ [2, -1] + 1.5 * rng.normal(size=10), sigma=sigma).state
        lower, upper = linear.interval(params, state, query, 0.95)[0]
        inside += lower <= truth <= upper
    assert 930 <= inside <= 970


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_every_number_agrees_with_the_peer(intercept, weighted):
    x, y = datasets.load_diabetes(return_X_y=True)
    x = 20 * x + 3
    weights = np.random.default_rng(0).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    peer = sm.WLS(y, sm.add_constant(x) if intercept else x, weights=weights).fit()
    result = summary(x, y, weights=weights, fit_intercept=intercept)
    first = slice(1, None) if intercept else slice(None)
    np.testing.assert_allclose(result["coefficients"], peer.params[first], rtol=1e-8)
    np.testing.assert_allclose(result["standard_errors"], peer.bse[first], rtol=1e-8)
    np.testing.assert_allclose(result["t_values"], peer.tvalues[first], rtol=1e-8)
    np.testing.assert_allclose(result["p_values"], peer.pvalues[first], rtol=1e-7, atol=1e-300)
    np.testing.assert_allclose(result["covariance"], peer.cov_params(), rtol=1e-7, atol=1e-7)
    assert result["log_likelihood"] == pytest.approx(peer.llf, rel=1e-10)
    assert result["degrees_of_freedom"] == peer.df_resid
    if intercept:
        assert result["intercept_p_value"] == pytest.approx(peer.pvalues[0], rel=1e-7)
    params = linear.Linear(fit_intercept=intercept, interval_of="mean")
    bounds = linear.interval(params, fitted(x, y, weights=weights, fit_intercept=intercept).state, x[:9], 0.9)
    rows = sm.add_constant(x)[:9] if intercept else x[:9]
    np.testing.assert_allclose(bounds, peer.get_prediction(rows).conf_int(alpha=0.1), rtol=1e-8)
    params = linear.Linear(fit_intercept=intercept)
    bounds = linear.interval(params, fitted(x, y, weights=weights, fit_intercept=intercept).state, x[:9], 0.9)
    np.testing.assert_allclose(bounds, peer.get_prediction(rows).conf_int(alpha=0.1, obs=True), rtol=1e-8)


@pytest.mark.parametrize("seed", range(50))
def test_as_low_as_the_peer_on_drawn_problems(seed):
    """Dependent columns, more columns than rows, uneven weights and units among them."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 40), rng.integers(1, 12)
    rank = rng.integers(1, d + 1)
    x = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) * 10.0 ** rng.integers(-3, 4, d)
    y, weights = rng.normal(size=n), rng.uniform(0.01, 10, n)
    params, data = linear.Linear(), Data.of(Task.REGRESSION, x, y, weights=weights)
    found = linear.objective(params, linear.fit(params, data, Context.of(0)).state, data)
    units = np.abs(x).max(axis=0)
    peer = LinearRegression().fit(x / units, y, sample_weight=weights)
    theirs = weights @ (y - peer.predict(x / units)) ** 2
    assert found <= theirs * (1 + 1e-8) + 1e-18 * (weights @ y**2)


def test_units_of_weights_do_not_matter_without_sigma():
    one, other = (summary(powers(X, 2), Y, weights=scale / SIGMA**2) for scale in (1, 1e6))
    for key in ("standard_errors", "p_values", "intercept_standard_error", "log_likelihood"):
        np.testing.assert_allclose(other[key], one[key], rtol=1e-8)
    assert one["q"] is None  # estimated noise cannot test the fit


def test_sigma_is_the_noise_of_every_row():
    one, other = (summary(powers(X, 2), Y, **how) for how in ({"sigma": 0.1}, {"sigma": 1, "weights": np.full(5, 100)}))
    np.testing.assert_allclose(one["covariance"], other["covariance"], rtol=1e-9)
    assert [one[key] for key in ("chi2", "q", "log_likelihood")] == pytest.approx(
        [other[key] for key in ("chi2", "q", "log_likelihood")], rel=1e-9
    )


def test_xor_is_beyond_a_plane():
    """B4.4: least squares on ±1 finds nothing at all."""
    fit = fitted(CORNERS, XOR, task=Task.CLASSIFICATION)
    np.testing.assert_allclose(fit.state.coef, 0, atol=1e-15)
    np.testing.assert_allclose(linear.predict(linear.Linear(), fit.state, CORNERS), 0.5)


@pytest.mark.parametrize(("target", "coef"), [(XOR, [0, 1, 1, -2]), (2 * XOR - 1, [-1, 2, 2, -4])])
def test_xor_with_the_product_is_a_plane(target, coef):
    """B4.4: φ = (1, x1, x2, x1x2); the 1 given as a column or not."""
    rows = np.column_stack([np.ones(4), CORNERS, CORNERS.prod(axis=1)])
    np.testing.assert_allclose(fitted(rows, target, fit_intercept=False).state.coef, coef, atol=1e-14)
    state = fitted(rows[:, 1:], target).state
    np.testing.assert_allclose([state.intercept, *state.coef], coef, atol=1e-14)


def test_the_shortest_of_many_exact_fits():
    """B4.4: with six quadratic columns XᵀX is singular; the pseudo-inverse gives (0, ½, ½, −2, ½, ½)."""
    x1, x2 = CORNERS.T
    rows = np.column_stack([np.ones(4), x1, x2, x1 * x2, x1**2, x2**2])
    fit = fitted(rows, XOR, fit_intercept=False)
    np.testing.assert_allclose(fit.state.coef, [0, 0.5, 0.5, -2, 0.5, 0.5], atol=1e-14)
    assert fit.state.rank == 4


def test_without_an_intercept_zero_stays_zero():
    """B4.2, and B5.4: log y = −c x for y = exp(−0.7x)."""
    x = np.array([[1.0], [2], [3]])
    fit = fitted(x, np.log(np.exp(-0.7 * x[:, 0])), fit_intercept=False)
    np.testing.assert_allclose(fit.state.coef, [-0.7], rtol=1e-14)
    assert linear.predict(linear.Linear(fit_intercept=False), fit.state, np.zeros((1, 1))) == [0]


def test_any_fixed_functions_of_the_inputs():
    """B5.3: c0 + c1 cos x + c2 log x + c3 tanh x³, without noise."""
    x = np.linspace(0.5, 3, 30)
    rows = np.column_stack([np.cos(x), np.log(x), np.tanh(x**3)])
    result = summary(rows, 1 + rows @ [2, 3, 4])
    np.testing.assert_allclose(vector(result, "coefficients"), [1, 2, 3, 4], rtol=1e-11)


def test_damped_springs_come_to_rest_at_the_fit():
    """B4.8: a bar on springs of strength 1/σ², whose energy is the weighted sum of squares."""
    rows, strength = np.column_stack([np.ones(5), X]), 1 / SIGMA**2
    place, speed = np.zeros(2), np.zeros(2)
    for _ in range(6000):
        speed += 0.02 * (rows.T @ (strength * (Y - rows @ place)) / strength.sum() - 0.5 * speed)
        place += 0.02 * speed
    np.testing.assert_allclose(place, ORACLES[2][0], atol=1e-8)


def test_an_interpolation_is_warned_of():
    """B5.2: as many parameters as rows reach every point, and nothing is left to tell the noise."""
    fit = fitted(powers(X, 4), Y)
    np.testing.assert_allclose(linear.predict(linear.Linear(), fit.state, powers(X, 4)), Y, rtol=1e-9)
    assert "5 rows for 5 parameters" in fit.warnings[0]
    assert "ridge" in fit.warnings[0]
    result = linear.summary(linear.Linear(), fit.state)
    assert result["degrees_of_freedom"] == 0
    nothing = (result["reduced_chi2"], result["residual_standard_deviation"], result["intercept_standard_error"])
    assert nothing == (None, None, None)
    assert result["standard_errors"] == result["p_values"] == [None] * 4
    assert np.isinf(linear.interval(linear.Linear(), fit.state, powers(X, 4), 0.9)).all()
    assert fitted(powers(X, 3), Y).warnings == []


def test_dependent_inputs_are_reported_with_the_rank_and_ridge_proposed():
    x = np.random.default_rng(0).normal(size=(30, 2))
    (result,) = fitted(np.column_stack([x, x.sum(axis=1)]), x[:, 0]).warnings
    assert "only 2 of 3" in result
    assert "ridge" in result
    (nearly,) = fitted(np.column_stack([x, x.sum(axis=1) + 1e-8 * x[:, 0] ** 2]), x[:, 0]).warnings
    assert "numerical rank 3" in nearly
    assert "ridge" in nearly


def test_a_high_degree_does_not_collapse_in_silence():
    """The design of NIST's Filip: degree 10 on [−9, −3]."""
    x = powers(np.linspace(-8.8, -3.1, 82), 10)
    fit = fitted(x, np.sin(x[:, 0]))
    assert "numerical rank" in fit.warnings[0] or "span only" in fit.warnings[0]
    np.testing.assert_allclose(linear.predict(linear.Linear(), fit.state, x), np.sin(x[:, 0]), atol=1e-3)


def test_size_of_a_coefficient_is_size_of_effect_only_on_one_scale():
    """Erratum E14: units of an input change its coefficient, not its t value."""
    x = np.random.default_rng(2).normal(size=(40, 2))
    y = x @ [2, 1] + np.sin(9 * x[:, 0])
    plain, other = summary(x, y), summary(x * [1000, 1], y)
    assert abs(plain["coefficients"][0]) > abs(plain["coefficients"][1])
    assert abs(other["coefficients"][0]) < abs(other["coefficients"][1])
    np.testing.assert_allclose(other["t_values"], plain["t_values"], rtol=1e-10)


def test_classes_are_those_of_ridge_without_a_penalty():
    x, y = datasets.load_iris(return_X_y=True)
    ours = fitted(x, y, task=Task.CLASSIFICATION).state
    data = Data.of(Task.CLASSIFICATION, x, y)
    theirs = ridge.fit(ridge.Ridge(l2=0), data, Context.of(0)).state
    np.testing.assert_allclose(
        linear.predict(linear.Linear(), ours, x), ridge.predict(ridge.Ridge(), theirs, x), rtol=1e-10
    )
    described = set(linear.summary(linear.Linear(), ours))
    assert described == {"columns", "classes", "coefficients", "intercept", "rank", "condition_number"}


def test_an_exact_fit_has_no_warning_of_numpy():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = summary(X[:, None], np.zeros(5))
    assert result["t_values"] == [None]
    assert result["log_likelihood"] is None
