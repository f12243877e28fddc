"""The shape of the inputs decides the method, and the result is that of the singular value decomposition."""

import numpy as np
import pytest

from app.ml.numerics.linear_algebra import solve
from app.ml.numerics.linear_algebra.conditioned_columns import conditioning_of_products, rank_of_products


def by_svd(x, y, weights, penalty, *, intercept):
    root = np.sqrt(weights)[:, None]
    mean_x, mean_y = (weights @ part / weights.sum() if intercept else 0.0 for part in (x, y))
    u, s, vt = np.linalg.svd((x - mean_x) * root, full_matrices=False)
    large = s > 1e-11 * s[0]
    gain = np.where(large, s, 0.0) / np.where(large, s**2 + penalty, 1.0)
    factor = vt[large].T / s[large]
    return vt.T @ (gain[:, None] * (u.T @ ((y - mean_y) * root))), factor, int(large.sum())


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize(
    ("n", "d", "ratio"),
    [(40, 90, 1.0), (40, 90, 1e-4), (40, 90, 0.0), (41, 40, 1.0), (40, 40, 1.0), (200, 160, 1.0), (400, 30, 1e-5)],
)
def test_every_shape_and_condition_agrees_with_the_singular_values(n, d, ratio, penalty, intercept):
    rng = np.random.default_rng(n + d)
    u, s, vt = np.linalg.svd(rng.normal(size=(n, d)), full_matrices=False)
    x = 3.0 + u * np.where(np.arange(len(s)) < len(s) // 2, s, ratio * s) @ vt
    y, weights = rng.normal(size=(n, 2)), rng.uniform(0.5, 2, n)
    found = solve.weighted_ridge(x, y, weights, penalty, intercept=intercept)
    coef, factor, rank = by_svd(x, y, weights, penalty, intercept=intercept)
    loss = 1e-10 if ratio == 1 else 1e-7
    assert np.abs(found.coef - coef).max() <= loss * np.abs(coef).max()
    assert found.rank == rank
    if penalty == 0:
        ours = found.covariance_factor()
        assert np.abs(ours @ ours.T - factor @ factor.T).max() <= loss * np.abs(factor @ factor.T).max()


@pytest.mark.parametrize("penalty", [0.0, 1.0, 1e3])
def test_condition_of_many_columns_is_known_to_two_digits(penalty):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 200)) * rng.uniform(0.5, 2, 200)
    found = solve.weighted_ridge(x, x[:, :1], np.ones(500), penalty)
    centred = x - x.mean(axis=0)
    assert found.condition == pytest.approx(np.linalg.cond(centred / np.linalg.norm(centred, axis=0)), rel=2e-2)
    assert found.rank == 200


@pytest.mark.parametrize("rank", [120, 199, 200])
def test_rank_of_many_columns(rank):
    rng = np.random.default_rng(rank)
    x = rng.normal(size=(300, rank)) @ rng.normal(size=(rank, 200))
    assert rank_of_products(x.T @ x) == rank
    assert conditioning_of_products(x.T @ x)[0] == rank
    assert solve.weighted_ridge(x.T.copy(), x.T[:, :1].copy(), np.ones(200), 1.0).rank == min(rank, 199)
