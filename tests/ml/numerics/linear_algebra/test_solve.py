"""Least squares, against scipy and pseudo-inverses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ml.numerics.linear_algebra import solve


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    n=st.integers(2, 30),
    d=st.integers(1, 12),
    rank=st.integers(1, 12),
    penalty=st.sampled_from([0.0, 1e-6, 1.0, 1e6]),
    seed=st.integers(0, 10**6),
)
def test_solves_the_augmented_system(n, d, rank, penalty, seed):
    """Ridge is least squares on the rows [A; √λ I], whatever the shape and the rank of A."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, min(rank, d))) @ rng.normal(size=(min(rank, d), d))
    y, weights = rng.normal(size=(n, 2)), rng.uniform(0.1, 3, n)
    found = solve.weighted_ridge(x, y, weights, penalty)
    root = np.sqrt(weights)[:, None]
    mean_x, mean_y = weights @ x / weights.sum(), weights @ y / weights.sum()
    rows = np.vstack([(x - mean_x) * root, np.sqrt(penalty) * np.eye(d)])
    right = np.vstack([(y - mean_y) * root, np.zeros((d, 2))])
    expected, *_ = np.linalg.lstsq(rows, right, rcond=1e-11)
    np.testing.assert_allclose(found.coef, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.intercept, mean_y - mean_x @ found.coef, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weight", [0.1, 0.7, 3.0])
def test_one_row_gives_no_coefficients(weight):
    """Its distance from its own mean is rounding, which determines nothing: the prediction is the row's target."""
    x, y = np.array([[0.1, 1 / 3, 1e6]]), np.array([[2.5]])
    found = solve.weighted_ridge(x, y, np.array([weight]), 0.0)
    np.testing.assert_array_equal(found.coef, np.zeros((3, 1)))
    np.testing.assert_allclose(found.intercept, [2.5], rtol=1e-15)


def test_units_of_columns_do_not_matter_without_a_penalty():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 4)), rng.normal(size=(40, 1))
    units = np.array([1e-140, 1.0, 1e12, 1e130])
    plain, scaled = (solve.weighted_ridge(rows, y, np.ones(40), 0.0) for rows in (x, x * units))
    np.testing.assert_allclose(scaled.coef * units[:, None], plain.coef, rtol=1e-12)
    assert scaled.rank == plain.rank == 4
    assert scaled.condition == pytest.approx(plain.condition, rel=1e-10)


def test_a_constant_column_is_nothing_after_centring():
    x = np.full((1000, 1), 0.1)
    assert (solve.centred(x, np.random.default_rng(0).uniform(0.1, 1, 1000)).x == 0).all()


def test_a_small_spread_around_a_large_mean_is_kept():
    x = 1e8 + np.arange(10.0)[:, None]
    np.testing.assert_allclose(solve.centred(x, np.ones(10)).x[:, 0], np.arange(10) - 4.5)


def test_solve_positive():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(9, 6))
    units = 10.0 ** np.arange(-60, 60, 20)
    matrix, right = a.T @ a * units * units[:, None], rng.normal(size=6) * units
    np.testing.assert_allclose(matrix @ solve.positive_solver(matrix)(right) / units, right / units, rtol=1e-9)


def test_solve_positive_where_rounding_has_made_it_indefinite():
    v = np.array([1.0, 2.0, 3.0])
    matrix = np.outer(v, v) - 1e-17 * np.eye(3)
    np.testing.assert_allclose(matrix @ solve.positive_solver(matrix)(v), v, rtol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 7, 30, 129])
@pytest.mark.parametrize("scores", [(), (1,), (3,)])
def test_the_product_of_a_row_has_the_same_bits_in_any_company(d, scores):
    rng = np.random.default_rng(d)
    x = rng.normal(size=(40, d))
    for coef in (rng.normal(size=(d, *scores)), np.full((d, *scores), -0.0)):
        alone = np.concatenate([solve.each_row(x[i : i + 1], coef) for i in range(len(x))])
        assert alone.tobytes() == solve.each_row(x, coef).tobytes()
        np.testing.assert_allclose(alone, x @ coef, atol=1e-13)
