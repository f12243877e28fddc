"""Bins of about equally many rows."""

import numpy as np
import pytest

from app.ml.numerics.dependence.quantile_bins import bins_for, quantile_bins


def test_bins_have_equally_many_rows():
    x = np.random.default_rng(0).permutation(1000).astype(float)
    codes = quantile_bins(x, 8)
    assert np.bincount(codes).tolist() == [125] * 8
    assert (np.diff(codes[np.argsort(x)]) >= 0).all()


def test_equal_values_share_a_bin():
    x = np.concatenate([np.zeros(700), np.arange(1.0, 301.0)])
    codes = quantile_bins(x, 10)
    assert np.unique(codes[:700]).size == 1
    assert codes.max() < 10


@pytest.mark.parametrize("count", [2, 5, 16])
def test_few_different_values_have_a_bin_each(count):
    x = np.repeat(np.arange(float(count)), [1, 90] * (count // 2) + [5] * (count % 2))
    np.testing.assert_array_equal(quantile_bins(x, count), x)


def test_a_constant_column_has_one_bin():
    assert quantile_bins(np.ones(7), 4).tolist() == [0] * 7


def test_the_number_of_bins_follows_the_rows():
    assert [bins_for(n) for n in (2, 45, 150, 2000, 10**6)] == [2, 3, 5, 16, 16]
