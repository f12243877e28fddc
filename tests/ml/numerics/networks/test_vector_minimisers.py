"""Ways downhill on quadratics, whose minimum and lines are known (LION 9.2)."""

import itertools

import numpy as np
import pytest

from app.ml.numerics.networks.vector_minimisers import (
    BoldPace,
    Limits,
    along_lines,
    bold_driver,
    conjugate,
    gradient_descent,
    one_step_secant,
    steepest,
)

RNG = np.random.default_rng(0)


def quadratic(n, condition):
    q, _ = np.linalg.qr(RNG.normal(size=(n, n)))
    matrix, b = q @ np.diag(np.geomspace(1, condition, n)) @ q.T, RNG.normal(size=n)
    lowest = 0.5 * b @ np.linalg.solve(matrix, b) + 1
    return lambda x: (0.5 * x @ matrix @ x - b @ x + lowest, matrix @ x - b), np.linalg.solve(matrix, b)


def watched(points):
    def watch(x, value):
        points.append((x.copy(), value))
        return False

    return watch


@pytest.mark.parametrize("direction", [conjugate, one_step_secant])
def test_conjugate_directions_need_as_many_steps_as_numbers(direction):
    function, minimum = quadratic(6, 100)
    found = along_lines(function, np.ones(6), direction, 1e-10, Limits(1e-8, 50))
    assert found.converged
    assert found.iterations <= 6
    np.testing.assert_allclose(found.point, minimum, atol=1e-7)


def test_one_step_secants_go_where_conjugate_gradients_go():
    function, _ = quadratic(6, 100)
    paths = [[], []]
    for path, direction in zip(paths, (conjugate, one_step_secant), strict=True):
        along_lines(function, np.ones(6), direction, 1e-10, Limits(1e-6, 50, watched(path)))
    for one, other in zip(*paths, strict=True):
        np.testing.assert_allclose(one[0], other[0], atol=1e-6)


def test_they_need_far_fewer_steps_than_steepest_descent():
    function, _ = quadratic(20, 1e4)
    steps = {
        direction: along_lines(function, np.ones(20), direction, 1e-6, Limits(1e-4, 2000)).iterations
        for direction in (conjugate, one_step_secant, steepest)
    }
    assert 5 * max(steps[conjugate], steps[one_step_secant]) < steps[steepest]


def test_consecutive_gradients_of_steepest_descent_are_orthogonal():
    function, _ = quadratic(5, 50)
    path = []
    along_lines(function, np.ones(5), steepest, 1e-9, Limits(1e-12, 8, watched(path)))
    gradients = [function(point)[1] for point, _ in path]
    for one, other in itertools.pairwise(gradients):
        assert abs(one @ other) < 1e-7 * np.linalg.norm(one) * np.linalg.norm(other)


def test_gradient_descent_falls_steadily_and_reports_a_rate_that_is_too_large():
    function, minimum = quadratic(4, 10)
    path = []
    found = gradient_descent(function, np.ones(4), 0.1, Limits(1e-9, 1000, watched(path)))
    assert found.converged
    assert (np.diff([value for _, value in path]) <= 1e-15).all()
    np.testing.assert_allclose(found.point, minimum, atol=1e-7)
    with np.errstate(over="ignore", invalid="ignore"):
        wild = gradient_descent(function, np.ones(4), 1e6, Limits(1e-9, 1000))
    assert wild.diverged
    assert np.isfinite(wild.point).all()


def test_the_bold_driver_grows_by_its_factor_and_shrinks_by_halves():
    """Steps over gradients are the rates: 1.1ᵏ times the first after k successes, a power of ½ at an accident."""
    function, minimum = quadratic(4, 30)
    path = []
    found = bold_driver(function, np.ones(4), BoldPace(1e-3), Limits(1e-6, 3000, watched(path)))
    assert found.converged
    np.testing.assert_allclose(found.point, minimum, atol=1e-5)
    points = [np.ones(4), *(point for point, _ in path)]
    pairs = itertools.pairwise(points)
    rates = np.array([np.linalg.norm(b - a) / np.linalg.norm(function(a)[1]) for a, b in pairs])
    assert (np.diff([value for _, value in path]) < 0).all()
    ratios = rates[1:80] / rates[:79]
    grown = np.abs(ratios - 1.1) < 1e-6
    first = int(np.argmin(grown))
    np.testing.assert_allclose(rates[: first + 1], 1e-3 * 1.1 ** np.arange(first + 1), rtol=1e-8)
    halvings = np.log2(ratios[ratios < 0.99] / 1.1)
    assert halvings.size
    np.testing.assert_allclose(halvings, np.round(halvings), atol=1e-6)


def test_the_bold_driver_ends_at_a_stationary_point():
    found = bold_driver(lambda x: (float(x @ x) + 1.0, 2 * x), np.zeros(3), BoldPace(0.1), Limits(1e-9, 100))
    assert (found.converged, found.iterations) == (True, 0)
    kink = bold_driver(
        lambda x: (float(np.abs(x).sum()) + 1.0, np.ones(1)), np.zeros(1), BoldPace(0.1), Limits(1e-9, 9)
    )
    assert not kink.converged
