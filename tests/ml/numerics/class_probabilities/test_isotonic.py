"""Isotonic regression against scikit-learn's, and against the minimum by its definition."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from app.ml.numerics.class_probabilities.isotonic import isotonic, pooled

GRID = np.linspace(-0.2, 1.2, 501)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [1, 2, 16])
@pytest.mark.parametrize("rows", [1, 2, 30, 2000])
def test_the_function_is_that_of_scikit_learn(rows, decimals, weighted):
    rng = np.random.default_rng(rows)
    x = rng.random(rows).round(decimals)
    y = (rng.random(rows) < x**2) * 1.0
    weights = rng.uniform(0.1, 3, rows) if weighted else np.ones(rows)
    peer = IsotonicRegression(out_of_bounds="clip").fit(x, y, sample_weight=weights)
    knots = isotonic(x, y, weights)
    np.testing.assert_allclose(np.interp(GRID, *knots.T), peer.predict(GRID), atol=1e-12)
    assert (np.diff(knots, axis=0) >= [np.finfo(float).tiny, 0]).all()


def test_numbers_of_any_kind_are_fitted_as_scikit_learn_fits_them():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=300), rng.normal(size=300)
    knots = isotonic(x, y, np.ones(300))
    peer = IsotonicRegression(out_of_bounds="clip").fit(x, y)
    np.testing.assert_allclose(np.interp(GRID, *knots.T), peer.predict(GRID), atol=1e-12)


def test_blocks_are_the_pooled_means_of_a_small_example():
    blocks = pooled(np.array([1.0, 3.0, 2.0, 4.0, 3.0, 5.0]), np.ones(6))
    np.testing.assert_array_equal(blocks.values, [1.0, 2.5, 3.5, 5.0])
    np.testing.assert_array_equal(blocks.ends, [1, 3, 5, 6])


def test_rows_in_the_wrong_order_have_one_value():
    knots = isotonic(np.arange(50.0), np.arange(50.0)[::-1], np.ones(50))
    np.testing.assert_allclose(knots, [[0, 24.5], [49, 24.5]])
