"""Penalised splines: the curve itself, the fit for given penalties, and the penalties."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from app.ml.numerics.linear_models import splines
from app.ml.numerics.linear_models.splines import fit_curves


def drawn(seed, n=400, d=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x[:, -1] = x[:, -1] > 0
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + x[:, -1] + 0.5 * rng.normal(size=n)
    weights = rng.uniform(0.5, 2, size=n)
    weights /= weights.mean()
    return x, y - weights @ y / weights.sum(), weights


def test_between_knots_it_is_the_natural_cubic_spline_and_straight_beyond():
    rng = np.random.default_rng(0)
    knots, heights = np.sort(rng.normal(size=8)), rng.normal(size=8)
    oracle, column = CubicSpline(knots, heights, bc_type="natural"), np.linspace(knots[0], knots[-1], 200)
    np.testing.assert_allclose(splines._spline(column, knots, heights), oracle(column), atol=1e-12)
    for end, side in ((0, -1), (-1, 1)):
        found = splines._spline(knots[end] + side * np.array([1.0, 5.0]), knots, heights)
        np.testing.assert_allclose(found, heights[end] + side * np.array([1.0, 5.0]) * oracle(knots[end], 1), rtol=1e-9)


def likelihood(gram, moment, total, size, groups, *, penalties):
    """-2 log of the restricted likelihood, σ² at its best, but for a constant."""
    system = gram + np.diag(penalties[groups])
    left = total - moment @ np.linalg.solve(system, moment)
    return np.linalg.slogdet(system)[1] - np.log(penalties[groups]).sum() + (size - 1) * np.log(left)


@pytest.mark.parametrize("seed", range(4))
def test_no_other_coefficients_and_no_other_smoothness_are_better(seed):
    x, y, weights = drawn(seed)
    found, design = fit_curves(x, y, weights), splines._Design.of(x, weights)
    gram, moment = design.products(x, y, weights)
    u = np.linalg.solve(gram + np.diag(found.penalties[design.groups]), moment)
    rng = np.random.default_rng(seed)

    def objective(u):
        left = y - design.curves(u, np.zeros(20)).of(x).sum(axis=1)
        return weights @ left**2 + found.penalties[design.groups] @ u**2

    assert found.converged
    np.testing.assert_allclose(found.curves.of(x), design.curves(u, np.zeros(20)).of(x), atol=1e-8)
    least = objective(u)
    for step in (1e-2, 1e-4):
        for _ in range(10):
            assert objective(u + step * rng.normal(size=u.size)) > least
    how = gram, moment, weights @ y**2, weights.sum(), design.groups
    best = likelihood(*how, penalties=found.penalties)
    for group in range(found.penalties.size):
        for factor in (1 / 3, 3):
            other = found.penalties * np.where(np.arange(found.penalties.size) == group, factor, 1)
            assert likelihood(*how, penalties=other) > best - 0.05


def test_each_curve_has_mean_zero_and_one_without_influence_is_nil():
    x, y, weights = drawn(0, n=2000)
    found = fit_curves(x, y, weights).curves
    parts = found.of(x)
    np.testing.assert_allclose(weights @ parts / weights.sum(), 0, atol=1e-9)
    assert np.abs(parts[:, 2:4]).max() < 0.15
    assert found.degrees[0] > 5
    assert found.degrees[1] < 1


@pytest.mark.parametrize("x", [np.zeros((9, 2)), np.zeros((9, 0)), np.arange(9.0)[:, None] // 5, 1e9 + np.eye(9)])
def test_tables_of_hardly_anything_are_fitted(x):
    for y in (np.zeros(9), np.arange(9.0) - 4):
        found = fit_curves(x, y, np.ones(9)).curves.of(x)
        assert np.isfinite(found).all()
        assert np.sum((y - found.sum(axis=1)) ** 2) <= y @ y + 1e-9


def test_more_columns_than_rows_have_lines_alone():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 80))
    found = fit_curves(x, x[:, 0] - x[:, 0].mean(), np.ones(60))
    assert found.converged
    assert found.curves.knots.shape == (80, 0)


def test_many_columns_with_common_causes_do_not_interpolate_the_rows():
    rng = np.random.default_rng(0)
    causes = rng.normal(size=(620, 10))
    x = causes @ rng.normal(size=(10, 200)) / 3 + 0.5 * rng.normal(size=(620, 200))
    y = 3 * causes[:, 0] + 1.5 * rng.normal(size=620)
    found = fit_curves(x[:120], y[:120] - y[:120].mean(), np.ones(120)).curves
    error = y[120:] - y[:120].mean() - found.of(x[120:]).sum(axis=1)
    assert np.sqrt(np.mean(error**2)) < 2, "noise alone has 1.5"
