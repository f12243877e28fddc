"""Tests of normality: equal to scipy's and statsmodels', right under the null, and not as misprinted (LION 11.2)."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr
from statsmodels.stats.diagnostic import lilliefors, normal_ad

from app.ml.statistics.normality import (
    anderson_darling,
    dagostino,
    kolmogorov_smirnov,
    squared_distance,
    standardised,
)

EXAMPLE = np.array([-1.2, -0.7, -0.3, -0.25, -0.1, 0.05, 0.2, 0.4, 0.8, 1.1])
SAMPLES = 1000
TESTS = [anderson_darling, dagostino, kolmogorov_smirnov]


def rng(seed=0):
    return np.random.default_rng(seed)


def laws(n):
    draw = rng(n)
    return [draw.normal(3, 2, n), draw.exponential(size=n), draw.uniform(size=n), draw.standard_t(3, n)]


def test_the_example():
    """B5.10: root mean square 0.6438167, sum −101.36836, A² of it 0.1368364; of standardised residuals 0.1293204."""
    rms = np.sqrt((EXAMPLE**2).mean())
    assert rms == pytest.approx(0.6438167, abs=5e-8)
    assert squared_distance(EXAMPLE / rms) == pytest.approx(0.1368364, abs=5e-8)
    assert -10 * (squared_distance(EXAMPLE / rms) + 10) == pytest.approx(-101.36836, abs=1e-5)
    assert anderson_darling(EXAMPLE).statistic == pytest.approx(0.1293204, abs=5e-8)


@pytest.mark.parametrize("n", [20, 21, 60, 300])
@pytest.mark.parametrize("law", range(4))
def test_equal_to_scipy_and_statsmodels(n, law):
    values = laws(n)[law]
    np.testing.assert_allclose(anderson_darling(values), normal_ad(values), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dagostino(values), stats.normaltest(values), rtol=1e-9)
    ours, (distance, p) = kolmogorov_smirnov(values), lilliefors(values, pvalmethod="approx")
    assert ours.statistic == pytest.approx(distance, rel=1e-12)
    assert ours.p == pytest.approx(p, rel=1e-9 if p < 0.1 else 0, abs=0 if p < 0.1 else 0.09)


@pytest.mark.parametrize("n", [8, 13])
def test_few_values(n):
    values = rng(n).normal(size=n)
    np.testing.assert_allclose(anderson_darling(values), normal_ad(values), rtol=1e-9)
    assert dagostino(values) is None
    assert kolmogorov_smirnov(values).statistic == pytest.approx(lilliefors(values)[0], rel=1e-12)


def residuals(n):
    """Of straight lines through normal targets: the input of the tests."""
    design = np.column_stack([np.ones(n), np.linspace(0, 1, n)])
    y = rng(n).normal(size=(n, SAMPLES))
    return (y - design @ np.linalg.lstsq(design, y)[0]).T


@pytest.mark.parametrize("n", [20, 50, 200])
@pytest.mark.parametrize("test", TESTS)
def test_rejects_five_in_a_hundred_normal_samples(test, n):
    """99.9 % of 1,000 trials at 0.05 are between 29 and 74."""
    low, high = stats.binom.interval(0.999, SAMPLES, 0.05)
    assert low <= sum(test(e).p < 0.05 for e in residuals(n)) <= high


@pytest.mark.parametrize("n", [10, 50, 300])
def test_lilliefors_p_is_uniform(n):
    """Beyond 0.1 statsmodels interpolates a coarse table; the p of normal samples says who is right."""
    p = np.sort([kolmogorov_smirnov(e).p for e in rng(n).normal(size=(SAMPLES, n))])
    assert np.abs(p - (np.arange(SAMPLES) + 0.5) / SAMPLES).max() < 1.95 / np.sqrt(SAMPLES)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("law", ["exponential", "uniform"])
def test_rejects_what_is_not_normal(test, law):
    samples = getattr(rng(), law)(size=(100, 200))
    assert sum(test(sample).p < 0.05 for sample in samples) > 70


@pytest.mark.parametrize("n", [20, 50, 200])
def test_misprinted_statistics_reject_normal_samples(n):
    """Erratum E6: the sum without 1/n and under a root, the root with 1/n, and a mean that is not removed."""
    z = np.array([standardised(e) for e in residuals(n)])
    squares = np.array([squared_distance(e) for e in z])
    order = 2 * np.arange(n) + 1
    literal = np.sqrt(-n - (order * (log_ndtr(z) + log_ndtr(-z[:, ::-1]))).sum(axis=1))
    assert (literal > 0.787).all()
    for threshold, right in ((0.656, 0.085), (0.787, 0.04), (1.092, 0.006)):
        assert (squares > threshold).mean() == pytest.approx(right, abs=0.025)
    assert (np.sqrt(squares) > 0.656).mean() > 0.2
    raw = rng(n).normal(size=(SAMPLES, n))
    kept = np.array([squared_distance(np.sort(e / np.sqrt((e**2).mean()))) for e in raw])
    for threshold, rooted, squared in ((0.656, 0.72, 0.48), (0.787, 0.51, 0.38), (1.092, 0.21, 0.24)):
        assert (np.sqrt(kept) > threshold).mean() == pytest.approx(rooted, abs=0.06)
        assert (kept > threshold).mean() == pytest.approx(squared, abs=0.06)


def test_location_and_scale_do_not_count():
    values = rng().normal(size=40)
    for test in TESTS:
        np.testing.assert_allclose(test(1e6 + 1e-3 * values), test(values), rtol=1e-5)
        np.testing.assert_allclose(test(1e200 * values), test(values), rtol=1e-9)


def test_outliers_cannot_overflow():
    values = np.append(rng().normal(size=50), 1e8)
    assert all(np.isfinite(test(values)).all() and test(values).p < 1e-10 for test in TESTS)


@pytest.mark.parametrize("values", [[], [1.0], [0.1] * 30, [1e6 + 1e-11 * (i % 3) for i in range(30)]])
def test_nothing_is_reported_of_nothing(values):
    assert [test(np.array(values)) for test in TESTS] == [None] * 3
