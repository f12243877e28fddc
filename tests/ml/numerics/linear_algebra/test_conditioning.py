"""Condition numbers and variance inflation against numpy, statsmodels and cases counted by hand."""

import numpy as np
import pytest
from statsmodels.stats.outliers_influence import variance_inflation_factor

from app.ml.numerics.linear_algebra.conditioning import conditioning
from app.ml.numerics.linear_algebra.normal_equations import BLOCK


def table(n=60, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 4)) * [1, 10, 1e3, 1]
    x[:, 3] = x[:, 0] + 0.1 * x[:, 3]
    return x + np.array([0, 5, 1e4, -1])


@pytest.mark.parametrize("n", [60, 2 * BLOCK + 7])
def test_equals_numpy_and_statsmodels(n):
    x = table(n)
    result = conditioning(x, np.ones(n))
    rest = x - x.mean(axis=0)
    assert result.condition == pytest.approx(np.linalg.cond(rest), rel=1e-10)
    assert result.scaled == pytest.approx(np.linalg.cond(rest / np.linalg.norm(rest, axis=0)), rel=1e-10)
    design = np.column_stack([np.ones(n), x])
    np.testing.assert_allclose(result.inflation, [variance_inflation_factor(design, j) for j in range(1, 5)], rtol=1e-9)
    assert result.rank == 4


def test_two_columns_by_hand():
    """Correlation r: eigenvalues 1 ± r, inflation 1/(1 − r²)."""
    x = np.array([[1.0, 1], [-1, -1], [2, 1], [-2, -1]])
    r = 6 / np.sqrt(10 * 4)
    result = conditioning(x, np.ones(4))
    assert result.scaled == pytest.approx(np.sqrt((1 + r) / (1 - r)), rel=1e-12)
    np.testing.assert_allclose(result.inflation, 1 / (1 - r**2), rtol=1e-12)


def test_units_do_not_count():
    x = table()
    one, other = (conditioning(part, np.ones(60)) for part in (x, x * [1e-6, 1, 1e3, 1e6]))
    assert other.scaled == pytest.approx(one.scaled, rel=1e-10)
    np.testing.assert_allclose(other.inflation, one.inflation, rtol=1e-8)
    assert other.condition > 10 * one.condition


def test_a_weight_is_a_row_given_more_often():
    x, weights = table(), np.tile([1.0, 3.0], 30)
    one, other = conditioning(x, weights), conditioning(np.repeat(x, weights.astype(int), axis=0), np.ones(120))
    np.testing.assert_allclose(one.inflation, other.inflation, rtol=1e-10)


def test_dependent_and_constant_columns():
    x = table()
    x = np.column_stack([x, 2 * x[:, 1] + x[:, 2], np.full(60, 0.1)])
    result = conditioning(x, np.ones(60))
    assert (result.condition, result.scaled, result.rank) == (np.inf, np.inf, 4)
    assert np.isinf(result.inflation).tolist() == [False, True, True, False, True, False]
    np.testing.assert_allclose(
        result.inflation[[0, 3]], conditioning(table(), np.ones(60)).inflation[[0, 3]], rtol=1e-1
    )
    assert np.isnan(result.inflation[5])


def test_fewer_rows_than_columns():
    result = conditioning(np.random.default_rng(1).normal(size=(3, 5)), np.ones(3))
    assert result.rank == 2
    assert np.isinf(result.inflation).all()
    assert conditioning(np.ones((3, 2)), np.ones(3)).rank == 0
    assert conditioning(np.ones((1, 1)), np.ones(1)).rank == 0
