"""Correlation ratio and Fisher's index: numbers of LION 7.3, tests of scipy, coverage of the intervals."""

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_selection import f_classif

from app.ml.numerics.dependence.class_contrast import correlation_ratio, fisher_index
from app.ml.numerics.dependence.correlation import pearson

GROUPS = [[45, 70, 29, 15, 21], [40, 20, 30, 42], [65, 95, 80, 70, 85, 73]]
VALUES, CODES = np.concatenate(GROUPS).astype(float), np.repeat([0, 1, 2], [5, 4, 6])


def test_the_ratio_of_three_groups():
    found = correlation_ratio(VALUES, CODES)
    assert found.value == pytest.approx(0.8386415, abs=5e-8)
    assert found.value**2 == pytest.approx(6780 / 9640)
    assert found.lower < found.value < found.upper < 1


def test_of_two_classes_the_squared_ratio_is_the_squared_correlation():
    x, codes = np.arange(1.0, 7.0), np.repeat([0, 1], 3)
    assert correlation_ratio(x, codes).value ** 2 == pytest.approx(0.7714286, abs=5e-8)
    assert correlation_ratio(x, codes).value == pytest.approx(pearson(x, codes.astype(float)).value)
    assert correlation_ratio(x, codes).p_value == pytest.approx(pearson(x, codes.astype(float)).p_value)


def test_the_test_is_the_analysis_of_variance():
    expected = stats.f_oneway(*GROUPS)
    found = correlation_ratio(VALUES, CODES)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-10)
    f, p = f_classif(VALUES[:, None], CODES)
    share = found.value**2
    assert (share / 2 / ((1 - share) / 12), found.p_value) == pytest.approx((f[0], p[0]), rel=1e-10)


def test_fisher_index_of_two_classes():
    one, other = (np.array(group, float) for group in (GROUPS[0], GROUPS[2]))
    found = fisher_index(np.concatenate([one, other]), np.repeat([0, 1], [5, 6]))
    assert found.value == pytest.approx((one.mean() - other.mean()) ** 2 / (one.var(ddof=1) + other.var(ddof=1)))
    assert found.p_value == pytest.approx(stats.ttest_ind(one, other, equal_var=False).pvalue, rel=1e-10)


def test_fisher_index_of_more_classes_is_the_mean_over_pairs():
    pairs = []
    for left_out in range(3):
        kept = left_out != CODES
        pairs.append(fisher_index(VALUES[kept], CODES[kept]))
    found = fisher_index(VALUES, CODES)
    assert found.value == pytest.approx(np.mean([pair.value for pair in pairs]))
    assert 0 < found.p_value < 0.01
    assert 0 < found.lower < found.value < found.upper


def test_welch_of_three_classes():
    """Welch (1951) in plain sums; R has the same as oneway.test."""
    groups = [np.array(group, float) for group in GROUPS]
    w = np.array([g.size / g.var(ddof=1) for g in groups])
    means = np.array([g.mean() for g in groups])
    centre = w @ means / w.sum()
    doubt = sum((1 - wi / w.sum()) ** 2 / (g.size - 1) for wi, g in zip(w, groups, strict=True))
    f = (w @ (means - centre) ** 2 / 2) / (1 + 2 * 1 / 8 * doubt)
    assert fisher_index(VALUES, CODES).p_value == pytest.approx(stats.f.sf(f, 2, 8 / (3 * doubt)), rel=1e-10)


@pytest.mark.parametrize("measure", [correlation_ratio, fisher_index])
def test_units_play_no_part_and_degenerate_columns_have_no_value(measure):
    assert measure(1e200 * VALUES, CODES) == pytest.approx(measure(VALUES, CODES), rel=1e-9)
    assert measure(1e-200 * VALUES, 7 * CODES) == pytest.approx(measure(VALUES, CODES), rel=1e-9)
    assert np.isnan(measure(np.ones(4), np.array([0, 0, 1, 1]))).all()
    assert np.isnan(measure(np.arange(4.0), np.zeros(4, int))).all()
    assert np.isnan(measure(np.ones(1), np.zeros(1, int))).all()


def test_classes_without_spread():
    x, codes = np.array([1.0, 1, 2, 2]), np.array([0, 0, 1, 1])
    found = correlation_ratio(x, codes)
    assert (found.value, found.p_value) == (1, 0)
    assert np.isnan(fisher_index(x, codes).value)
    assert np.isnan(fisher_index(np.arange(3.0), np.array([0, 0, 1])).value)  # a class of one row has no variance


def test_the_intervals_cover():
    rng, inside = np.random.default_rng(1), np.zeros(2)
    for _ in range(400):
        codes = rng.integers(0, 2, 200)
        x = rng.normal(size=200) + 1.5 * codes
        ratio, index = correlation_ratio(x, codes), fisher_index(x, codes)
        inside += ratio.lower <= (0.5625 / 1.5625) ** 0.5 <= ratio.upper, index.lower <= 1.125 <= index.upper
    assert (inside / 400 > 0.91).all()
    assert (inside / 400 < 0.99).all()


@pytest.mark.parametrize("measure", [correlation_ratio, fisher_index])
@pytest.mark.parametrize("k", [2, 5])
def test_intervals_hold_no_contrast_where_there_is_none(measure, k):
    """As often as the test is not significant: 0.975, of 300 draws within three standard deviations."""
    rng = np.random.default_rng(8)
    results = [measure(rng.exponential(size=100), rng.integers(0, k, 100)) for _ in range(300)]
    assert all((result.lower == 0) >= (result.p_value >= 0.025) for result in results)
    assert np.mean([result.lower == 0 for result in results]) == pytest.approx(0.975, abs=0.027)


@pytest.mark.parametrize("k", [2, 5])
def test_the_interval_of_normal_classes_holds_the_contrast(k):
    """Means from 0 to 1.5: η² is the variance of the means over that and 1."""
    rng, means = np.random.default_rng(9), np.linspace(0, 1.5, k)
    truth, held = np.sqrt(means.var() / (1 + means.var())), 0
    for _ in range(300):
        codes = rng.integers(0, k, 60)
        result = correlation_ratio(rng.normal(size=60) + means[codes], codes)
        held += result.lower <= truth <= result.upper
    assert held / 300 >= 0.93
