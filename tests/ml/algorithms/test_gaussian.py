"""Gaussian densities beside scipy and scikit-learn."""

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn import datasets
from sklearn.covariance import ledoit_wolf

from app.base.errors import InvalidData
from app.ml.algorithms import gaussian
from app.ml.algorithms.gaussian import Gaussian
from app.ml.contract.algorithm import ColumnUnits, Context, Data, Task

IRIS = datasets.load_iris().data
FORMS = ["full", "diagonal", "spherical"]


def fitted(x, params, **change):
    return gaussian.fit(params, Data.of(Task.DENSITY, x, **change), Context.of(0))


def likeliest(x, form):
    """Covariance of the greatest likelihood."""
    variances = x.var(axis=0)
    return {
        "full": np.cov(x.T, ddof=0),
        "diagonal": np.diag(variances),
        "spherical": np.eye(x.shape[1]) * variances.mean(),
    }[form]


@pytest.mark.parametrize("form", FORMS)
def test_log_densities_are_those_of_scipy(form):
    params = Gaussian(covariance=form, shrinkage=0)
    state = fitted(IRIS, params).state
    expected = stats.multivariate_normal(IRIS.mean(axis=0), likeliest(IRIS, form))
    np.testing.assert_allclose(gaussian.predict(params, state, IRIS), expected.logpdf(IRIS), rtol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_a_density_integrates_to_one(form):
    params = Gaussian(covariance=form)
    state = fitted(IRIS[:, [0, 2]], params).state

    def density(b, a):
        return np.exp(gaussian.predict(params, state, np.array([[a, b]]))[0])

    total, _ = integrate.dblquad(density, -5, 16, -20, 28, epsabs=1e-4)
    assert total == pytest.approx(1, abs=1e-3)


def test_no_other_mean_or_covariance_is_likelier():
    params, rng = Gaussian(shrinkage=0), np.random.default_rng(0)
    state = fitted(IRIS, params).state
    best = gaussian.predict(params, state, IRIS).sum()
    for _ in range(20):
        other = state._replace(
            mean=state.mean + 0.02 * rng.normal(size=4), factor=state.factor + 0.02 * np.tril(rng.normal(size=(4, 4)))
        )
        assert gaussian.predict(params, other, IRIS).sum() < best


@pytest.mark.parametrize("rows", [150, 20, 5])
def test_the_estimated_shrinkage_is_that_of_ledoit_and_wolf(rows):
    x = IRIS[:rows]
    state = fitted(x, Gaussian()).state
    expected, shrinkage = ledoit_wolf(x)
    assert state.shrinkage == pytest.approx(shrinkage, rel=1e-9)
    np.testing.assert_allclose(state.factor @ state.factor.T, expected, rtol=1e-9, atol=1e-12)


def test_more_columns_than_rows_have_a_density():
    x = np.random.default_rng(0).normal(size=(10, 30))
    for form in FORMS:
        params = Gaussian(covariance=form)
        assert np.isfinite(gaussian.predict(params, fitted(x, params).state, x)).all()
    with pytest.raises(InvalidData, match="Columns determine each other"):
        fitted(x, Gaussian(shrinkage=0))


def test_a_column_that_does_not_vary_is_named():
    x = np.column_stack([IRIS[:, 0], np.full(150, 7.3)])
    with pytest.raises(InvalidData, match="do not vary: 'height'"):
        fitted(x, Gaussian(shrinkage=0), names=["width", "height"])
    assert fitted(x, Gaussian()).state.shrinkage > 0
    still = fitted(x[:, 1:], Gaussian())
    assert still.warnings == ["No column varies: the variance of each is taken for 1."]
    np.testing.assert_allclose(gaussian.predict(Gaussian(), still.state, [[7.3]]), stats.norm.logpdf(0))


def test_units_of_columns_do_not_matter_to_the_likeliest_density():
    units, params = np.array([1e9, 1e-9, 1.0, 1e3]), Gaussian(shrinkage=0)
    one, other = (fitted(x, params).state for x in (IRIS, IRIS * units))
    found = gaussian.predict(params, other, IRIS * units)
    np.testing.assert_allclose(found + np.log(units).sum(), gaussian.predict(params, one, IRIS), rtol=1e-8)


@pytest.mark.parametrize("contamination", [0, 0.02, 0.1, 0.5])
def test_a_share_of_the_training_rows_are_anomalies(contamination):
    x = np.random.default_rng(0).normal(size=(1000, 3))
    params = Gaussian(contamination=contamination)
    state = fitted(x, params).state
    found = gaussian.anomaly(params, state, x)
    assert found.mean() == pytest.approx(contamination, abs=0.002)
    logs = gaussian.predict(params, state, x)
    assert logs[found].max(initial=-np.inf) < logs[~found].min()
    far = np.full((1, 3), 9.0)
    assert gaussian.anomaly(params, state, far).tolist() == [contamination > 0]


def test_the_distance_is_in_standard_deviations():
    params = Gaussian(shrinkage=0)
    x = np.array([[-1.0], [1.0], [3.0], [5.0]])
    state = fitted(x, params).state
    np.testing.assert_allclose(gaussian.distance(params, state, x), np.abs(x[:, 0] - 2) / np.sqrt(5))


def test_weights_count_as_shares_of_the_moments():
    times = np.arange(150) % 3 + 1
    params = Gaussian(shrinkage=0.1)
    one = fitted(IRIS, params, weights=times).state
    other = fitted(np.repeat(IRIS, times, axis=0), params).state
    np.testing.assert_allclose(one.factor, other.factor, rtol=1e-10)


def test_the_summary_has_correlations():
    summary = gaussian.summary(Gaussian(), fitted(IRIS, Gaussian(shrinkage=0)).state)
    np.testing.assert_allclose(summary["correlations"], np.corrcoef(IRIS.T), rtol=1e-9)
    np.testing.assert_allclose(summary["standard_deviations"], IRIS.std(axis=0), rtol=1e-10)


def test_the_summary_has_the_covariance_in_the_units_of_the_table():
    state, units = fitted(IRIS, Gaussian(shrinkage=0)).state, ColumnUnits(np.ones(4), np.array([0.5, 2.0, 3.0, 10.0]))
    for summary, x in (
        (gaussian.summary(Gaussian(), state), IRIS),
        (gaussian.in_units(Gaussian(), state, units), units.values(IRIS)),
    ):
        np.testing.assert_allclose(summary["covariance"], np.cov(x.T, bias=True), rtol=1e-9)
