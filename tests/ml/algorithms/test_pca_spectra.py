"""Principal components of tables whose spectrum is known: how many digits of it are found."""

import numpy as np
import pytest

from app.ml.algorithms import pca
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.linear_algebra.covariance import covariance


def known(n, values, seed=0, far=0.0):
    """A table (n, d) with these singular values about its means, and its directions; columns lie `far` from zero."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, len(values)))
    frame, _ = np.linalg.qr(rows - rows.mean(axis=0))
    turn, _ = np.linalg.qr(rng.normal(size=(len(values), len(values))))
    return frame * values @ turn.T + far, turn.T


def fitted(x, **params):
    return pca.fit(pca.PCA(**params), Data.of(Task.PROJECTION, x), Context.of(0)).state


@pytest.mark.parametrize("n", [20, 3000])
@pytest.mark.parametrize("condition", [1e2, 1e5, 1e8])
def test_a_condition_costs_no_more_digits_than_rounding_of_the_table(n, condition):
    """A table holds each singular value to a rounding of the largest: eps times the condition is the relative error.

    By products of columns it is eps times the square of the condition, which is taken up to a condition of 1e4.
    """
    values = np.geomspace(1, 1 / condition, 5)
    x, directions = known(n, values)
    state = fitted(x, n_components=5)
    np.testing.assert_allclose(np.sqrt(state.variance * n), values, rtol=1e-14 * max(condition, 1e4))
    cosines = np.abs((state.loadings * directions).sum(axis=1))
    np.testing.assert_allclose(cosines, 1, atol=1e-10)


def test_the_largest_components_are_found_beside_those_that_are_lost():
    """Only what is needed has to be known: two components of a table of condition 1e12 have all their digits."""
    x, _ = known(3000, np.array([1.0, 0.5, 1e-9, 1e-12]))
    np.testing.assert_allclose(np.sqrt(fitted(x).variance * 3000), [1, 0.5], rtol=1e-13)


def test_columns_far_from_zero_lose_only_the_digits_that_the_table_lost():
    x, _ = known(3000, np.array([1.0, 0.1, 0.01]), far=1e4)
    np.testing.assert_allclose(np.sqrt(fitted(x, n_components=3).variance * 3000), [1, 0.1, 0.01], rtol=1e-8)


@pytest.mark.parametrize("far", [0.0, 0.5, 10.0, 1e6])
@pytest.mark.parametrize("even", [True, False])
def test_covariances_agree_with_long_arithmetic(far, even):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2500, 4)) * [1, 1e-3, 1e3, 1] + far
    weights = np.ones(len(x)) if even else rng.uniform(0.1, 2, len(x))
    matrix, mean = covariance(x, weights)
    long, share = x.astype(np.longdouble), weights.astype(np.longdouble)
    middle = share @ long / share.sum()
    exact = (share[:, None] * (long - middle)).T @ (long - middle) / share.sum()
    scale = np.sqrt(np.outer(exact.diagonal(), exact.diagonal())).astype(float)
    np.testing.assert_allclose(mean, middle.astype(float), rtol=1e-13, atol=1e-13)
    assert np.abs((matrix - exact) / scale).max() < 1e-13 * max(1.0, far * 10)
    np.testing.assert_array_equal(matrix, matrix.T)


def test_a_sample_that_misleads_is_found_out():
    """The rows that show where the columns lie are all near zero, the others are not: the sums are taken again."""
    x = np.random.default_rng(1).normal(size=(2560, 2)) * 1e-3
    x[np.arange(len(x)) % 10 != 0] += 1e5
    matrix, mean = covariance(x, np.ones(len(x)))
    np.testing.assert_allclose(mean, x.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(matrix, np.cov(x.T, ddof=0), rtol=1e-12)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9 / 3])
def test_a_constant_column_has_no_covariance(constant):
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.normal(size=3000), np.full(3000, constant)])
    matrix, mean = covariance(x, rng.uniform(1, 2, 3000))
    assert not matrix[1].any()
    assert not matrix[:, 1].any()
    assert mean[1] == pytest.approx(constant, rel=1e-14)


def test_one_row_that_differs_is_no_constant():
    x = np.ones((100_000, 2))
    x[77, 0] += 1e-10
    matrix, _ = covariance(x, np.ones(len(x)))
    assert matrix[0, 0] == pytest.approx(1e-25, rel=1e-4)
    assert matrix[1, 1] == 0
