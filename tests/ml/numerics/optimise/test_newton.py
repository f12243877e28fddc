"""Minimisers on functions whose minimum is known."""

import numpy as np
import pytest

from app.ml.numerics.optimise.newton import lbfgs, newton


def bowl(x):
    """1 + Σ j·(x_j − j)² / 2, lowest at x_j = j."""
    j = np.arange(1.0, 5)
    return 1 + float((j * (x - j) ** 2).sum() / 2), j * (x - j)


def valley(x):
    """log Σ over ± of exp(±aᵀx), plus a little: strictly convex, curved more near its lowest point 0."""
    a = np.array([[3.0, 1], [1, -2]])
    z = a @ x
    return 1 + float(np.logaddexp(z, -z).sum()), a.T @ np.tanh(z)


def valley_hessian(x):
    a = np.array([[3.0, 1], [1, -2]])
    return a.T @ np.diag(1 - np.tanh(a @ x) ** 2 + 1e-9) @ a


def silent(x, value):
    return False


def test_newton_solves_a_quadratic_in_one_step():
    found = newton(bowl, lambda _: np.diag(np.arange(1.0, 5)), np.zeros(4), tol=1e-12, max_iter=9, watch=silent)
    assert found.converged
    assert found.iterations == 1
    np.testing.assert_allclose(found.x, [1, 2, 3, 4])


def test_newton_halves_a_step_that_overshoots():
    """From here the full Newton step flies off to where the valley is almost flat."""
    values = []

    def watch(x, value):
        values.append(value)
        return False

    found = newton(valley, valley_hessian, np.array([2.0, -1.0]), tol=1e-10, max_iter=50, watch=watch)
    assert found.converged
    np.testing.assert_allclose(found.x, 0, atol=1e-9)
    assert (np.diff(values) <= 0).all()


@pytest.mark.parametrize("function", [bowl, valley])
def test_lbfgs(function):
    size = 4 if function is bowl else 2
    found = lbfgs(function, np.full(size, -2.0), tol=1e-8, max_iter=100, watch=silent)
    assert found.converged
    assert np.abs(function(found.x)[1]).max() <= 1e-7


@pytest.mark.parametrize("minimise", [lambda f, **how: newton(f, lambda _: np.eye(4) * 9, **how), lbfgs])
def test_stops_at_the_limit_and_reports_whether_that_was_the_minimum(minimise):
    seen = []

    def watch(x, value):
        seen.append(value)
        return len(seen) == 2

    found = minimise(bowl, start=np.zeros(4), tol=1e-12, max_iter=100, watch=watch)
    assert found.iterations == len(seen) == 2
    assert not found.converged
    assert bowl(found.x)[0] == pytest.approx(seen[-1])


@pytest.mark.parametrize("minimise", [lambda f, **how: newton(f, lambda _: np.eye(4), **how), lbfgs])
def test_starting_at_the_minimum(minimise):
    found = minimise(bowl, start=np.arange(1.0, 5), tol=1e-8, max_iter=100, watch=silent)
    assert found == (pytest.approx(found.x), True, 0)
