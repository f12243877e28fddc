"""Contrasts of a column between a cluster and all other rows, beside those of scipy."""

import numpy as np
import pytest
from scipy import stats

from app.ml.statistics.cluster_contrasts import category_contrast, rank_contrast

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 90)


@pytest.mark.parametrize("digits", [0, 8])
def test_ranks_are_compared_as_mann_and_whitney_did(digits):
    values = (RNG.normal(size=90) + LABELS).round(digits)
    values[::11] = np.nan
    found = rank_contrast(values, LABELS, 4)
    for j in range(3):
        inside, outside = (values[side & ~np.isnan(values)] for side in (j == LABELS, j != LABELS))
        test = stats.mannwhitneyu(inside, outside, method="asymptotic")
        assert found.p_values[j] == pytest.approx(test.pvalue, rel=1e-9)
        assert found.effects[j] == pytest.approx(2 * test.statistic / inside.size / outside.size - 1)
        assert (found.inside[j], found.outside[j]) == pytest.approx((inside.mean(), outside.mean()))
    assert np.isnan([found.effects[3], found.p_values[3], found.inside[3]]).all()


def test_shares_of_categories_are_compared_by_chi_squared():
    codes = np.where(LABELS == 1, RNG.integers(0, 2, 90), RNG.integers(0, 4, 90))
    codes[::13] = -1
    found = category_contrast(codes, LABELS, 3, 5)
    for j in range(3):
        table = [np.bincount(codes[(codes >= 0) & side], minlength=4) for side in (j == LABELS, j != LABELS)]
        test = stats.chi2_contingency(np.array(table), correction=False)
        assert found.p_values[j] == pytest.approx(test.pvalue, rel=1e-9)
        assert found.effects[j] == pytest.approx(np.sqrt(test.statistic / np.sum(table)))
        shares = [counts / counts.sum() for counts in table]
        assert found.codes[j] == (shares[0] - shares[1]).argmax()
        assert found.inside[j] - found.outside[j] == pytest.approx((shares[0] - shares[1]).max())


def test_a_column_without_variation_tells_nothing():
    same = rank_contrast(np.full(90, 7.0), LABELS, 3)
    assert same.p_values.tolist() == [1, 1, 1]
    np.testing.assert_allclose(same.effects, 0, atol=1e-12)
    category = category_contrast(np.zeros(90, int), LABELS, 3, 1)
    assert (category.p_values.tolist(), category.effects.tolist()) == ([1, 1, 1], [0, 0, 0])


def test_one_cluster_of_all_rows_has_nothing_to_be_compared_with():
    labels = np.zeros(9, int)
    for found in (rank_contrast(np.arange(9.0), labels, 1), category_contrast(np.arange(9), labels, 1, 9)):
        assert np.isnan(found.effects).all()
        assert np.isnan(found.p_values).all()
