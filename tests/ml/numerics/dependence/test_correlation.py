"""Pearson's and Spearman's correlation: published values, scipy as an oracle, coverage of the intervals."""

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_selection import r_regression

from app.ml.numerics.dependence.correlation import pearson, ranks, spearman

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4)) * [1, 1e150, 1e-150, 3]
Y = X @ [1, 1e-150, 0, 0] + RNG.normal(size=80)


def test_lines_of_any_slope_have_correlation_1_and_a_parabola_0():
    x = np.arange(-2.0, 3.0)
    assert [pearson(x, slope * x + 7).value for slope in (0.01, 5, -3)] == pytest.approx([1, 1, -1])
    assert pearson(x, x**2).value == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("column", range(4))
def test_values_and_tests_are_those_of_scipy(column):
    x = X[:, column]
    for ours, theirs in ((pearson, stats.pearsonr), (spearman, stats.spearmanr)):
        expected, found = theirs(X[:, 0] if column == 1 else x, Y), ours(X[:, 0] if column == 1 else x, Y)
        assert (found.value, found.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-10)
        assert -1 <= found.lower < found.value < found.upper <= 1


def test_values_are_those_of_scikit_learn():
    found = [pearson(column, Y).value for column in X[:, [0, 3]].T]
    np.testing.assert_allclose(found, r_regression(X[:, [0, 3]], Y), rtol=1e-10)


def test_units_play_no_part():
    x = X[:, 0]
    for scale in (1e150, 1e-150):
        assert pearson(scale * x, Y) == pytest.approx(pearson(x, Y), rel=1e-9)


def test_equal_values_share_the_mean_of_their_ranks():
    x = np.array([3.0, 1.0, 3.0, 2.0, 3.0])
    np.testing.assert_array_equal(ranks(x), stats.rankdata(x))
    y = np.array([1.0, 1.0, 2.0, 2.0, 3.0])
    assert spearman(x, y).value == pytest.approx(stats.spearmanr(x, y).statistic, rel=1e-12)


@pytest.mark.parametrize("measure", [pearson, spearman])
def test_degenerate_columns(measure):
    constant = measure(np.ones(5), np.arange(5.0))
    assert np.isnan(constant).all()
    assert np.isnan(measure(np.ones(1), np.ones(1)).value)
    two = measure(np.array([0.0, 1.0]), np.array([5.0, 3.0]))
    assert (two.value, two.p_value) == (-1, 1)
    assert np.isnan(two.lower)


@pytest.mark.parametrize("tails", ["normal", "student"])
def test_the_interval_covers_the_correlation(tails):
    rng, inside = np.random.default_rng(1), 0
    for _ in range(400):
        x = rng.normal(size=(200, 2))
        x[:, 1] = 0.6 * x[:, 0] + 0.8 * x[:, 1]
        if tails == "student":
            x /= np.sqrt(rng.chisquare(5, (200, 1)))
        found = pearson(*x.T)
        inside += found.lower <= 0.6 <= found.upper
    assert 0.9 <= inside / 400 <= 0.98


@pytest.mark.parametrize("measure", [pearson, spearman])
@pytest.mark.parametrize("law", ["normal", "t3", "heteroscedastic"])
def test_interval_and_p_value_agree_about_zero(measure, law):
    rng = np.random.default_rng(7)
    for _ in range(300):
        x, y = (rng.standard_t(3, 40) if law == "t3" else rng.normal(size=40) for _ in range(2))
        result = measure(x, y * np.abs(x) ** 1.5 if law == "heteroscedastic" else y)
        assert (result.lower <= 0 <= result.upper) == (result.p_value >= 0.05)
