"""Errors and tests of a least squares fit against published and derived numbers."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from app.ml.numerics.linear_models.coefficient_errors import Inference, as_json, chi_square_q


@pytest.mark.parametrize(
    ("chi2", "freedom", "expected"), [(5, 5, 0.4158802), (10, 5, 0.0752352), (8, 2, 0.0183156), (20, 10, 0.0292527)]
)
def test_q(chi2, freedom, expected):
    """B5.8."""
    assert chi_square_q(chi2, freedom) == pytest.approx(expected, abs=6e-8)
    assert chi_square_q(chi2, freedom) == pytest.approx(stats.chi2.sf(chi2, freedom), rel=1e-12)


def test_q_is_the_integral_divided_by_its_normalisation():
    """Erratum E5: the factor before the integral is 1/(2^(ν/2) Γ(ν/2)); multiplying by it gives no probability."""
    norm = 2**2.5 * special.gamma(2.5)
    integral, _ = integrate.quad(lambda t: t**1.5 * np.exp(-t / 2), 10, np.inf)
    assert chi_square_q(10, 5) == pytest.approx(integral / norm, rel=1e-9)
    assert integral * norm > 1


def one_mean(values, sigma):
    """The fit of a constant: no inputs."""
    square = float(((values - values.mean()) ** 2).sum())
    none = np.zeros(0)
    return Inference(none, float(values.mean()), np.zeros((0, 0)), none, 4.0, 0.0, square, 4, sigma)


def test_a_mean_has_the_errors_of_a_mean():
    values = np.array([1.0, 2, 4, 9])
    summary = one_mean(values, None).summary()
    assert summary["standard_errors"] == []
    assert summary["intercept_standard_error"] == pytest.approx(stats.sem(values), rel=1e-14)
    reach = one_mean(values, None).reach(np.zeros((1, 0)), 0.9)[0]
    assert 4 + reach == pytest.approx(stats.t.interval(0.9, 3, 4, stats.sem(values))[1], rel=1e-12)
    known = one_mean(values, 3.0)
    assert known.summary()["intercept_standard_error"] == pytest.approx(1.5)
    assert known.reach(np.zeros((1, 0)), 0.95)[0] == pytest.approx(1.5 * stats.norm.ppf(0.975), rel=1e-12)


@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_log_likelihood_is_minus_half_chi2_and_a_constant(sigma):
    """Erratum E4: not χ² itself."""
    values = np.array([1.0, 2, 4, 9])
    expected = stats.norm.logpdf(values, values.mean(), sigma).sum()
    assert one_mean(values, sigma).log_likelihood() == pytest.approx(expected, rel=1e-14)
    assert expected != pytest.approx(one_mean(values, sigma).summary()["chi2"])


def test_what_is_not_a_number_is_null():
    assert as_json([1.0, np.nan, np.inf]) == [1.0, None, None]
    assert as_json(np.nan) is None
    assert as_json(2.0) == 2.0
