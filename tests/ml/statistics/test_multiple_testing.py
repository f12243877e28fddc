"""Holm's and Benjamini & Hochberg's corrections."""

import numpy as np
from scipy import stats

from app.ml.statistics.multiple_testing import benjamini_hochberg, holm

P = np.array([0.01, 0.04, 0.03, 0.005])


def test_holm_of_an_example():
    np.testing.assert_allclose(holm(P), [0.03, 0.06, 0.06, 0.02])  # p.adjust(…, "holm") of R


def test_benjamini_hochberg_is_that_of_scipy():
    np.testing.assert_allclose(benjamini_hochberg(P), stats.false_discovery_control(P))
    drawn = np.random.default_rng(0).random(200) ** 3
    np.testing.assert_allclose(benjamini_hochberg(drawn), stats.false_discovery_control(drawn))


def test_holm_is_at_most_bonferroni_and_at_least_the_other():
    drawn = np.random.default_rng(1).random(100) ** 4
    assert (holm(drawn) <= np.minimum(1, 100 * drawn) + 1e-15).all()
    assert (holm(drawn) >= benjamini_hochberg(drawn) - 1e-15).all()


def test_what_is_no_test_is_left_out():
    found = holm(np.array([np.nan, 0.02, np.nan, 0.5]))
    np.testing.assert_allclose(found, [np.nan, 0.04, np.nan, 0.5])
    assert np.isnan(benjamini_hochberg(np.array([np.nan]))).all()
    assert holm(np.zeros(0)).size == 0
