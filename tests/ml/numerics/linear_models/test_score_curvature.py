"""Rough inverse Hessians of a softmax against the Hessian itself."""

import numpy as np
import pytest

from app.ml.numerics.linear_models.cross_entropy import CrossEntropy
from app.ml.numerics.linear_models.score_curvature import at_the_start, score_by_score
from app.ml.numerics.optimise.newton import newton, quasi_newton


def problem(unit=1.0, s=4):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6)) * [1, 2, 3, 1, 1, 1]
    codes = (x @ rng.normal(size=(6, s)) + rng.gumbel(size=(300, s))).argmax(axis=1)
    return CrossEntropy.of(x * [1, 1, 1, 1, 1, unit], np.eye(s)[codes], rng.uniform(0.5, 2, 300), 0.5)


def test_the_blocks_are_those_of_the_hessian():
    loss = problem()
    point = np.random.default_rng(1).normal(size=loss.start.size)
    hessian = loss.hessian(point).reshape(7, 4, 7, 4)
    added = np.einsum("isis->", hessian)
    blocks = loss.each_score(point) + np.diag(loss.penalty)
    for i in range(4):
        rest = hessian[:, i, :, i] - blocks[i]
        np.testing.assert_allclose(rest, np.eye(7) * rest[0, 0], atol=1e-14)  # the curvature of the common constant
    assert 0 < rest[0, 0] < added


@pytest.mark.parametrize("curvature", [at_the_start, score_by_score])
def test_an_inverse_is_symmetric_and_leaves_the_common_part_alone(curvature):
    loss = problem()
    rng = np.random.default_rng(2)
    solve = curvature(loss, rng.normal(size=loss.start.size))
    a, b = (rng.normal(size=(7, 4)) for _ in range(2))
    a, b = (part - part.mean(axis=1, keepdims=True) for part in (a, b))
    assert solve(a.ravel()) @ b.ravel() == pytest.approx(solve(b.ravel()) @ a.ravel(), rel=1e-9)
    assert solve(a.ravel()) @ a.ravel() > 0
    np.testing.assert_allclose(solve(a.ravel()).reshape(7, 4).sum(axis=1), 0, atol=1e-9)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_steps_end_where_newton_does(unit):
    loss = problem(unit)

    def watch(_point, _value):
        return False

    exact = newton(loss, loss.hessian, loss.start, tol=1e-10, max_iter=50, watch=watch)
    found = quasi_newton(loss, score_by_score(loss, loss.start), loss.start, tol=1e-10, max_iter=200, watch=watch)
    assert found.converged
    assert found.iterations < 100
    np.testing.assert_allclose(found.x, exact.x, rtol=1e-6, atol=1e-7)
    assert loss(found.x)[0] == pytest.approx(loss(exact.x)[0], rel=1e-13)


def test_a_constant_column_does_no_harm():
    loss = problem(0.0)
    step = score_by_score(loss, loss.start)(loss(loss.start)[1])
    assert np.isfinite(step).all()
    assert loss(loss.start - step)[0] < loss(loss.start)[0]
