"""Prices of limits at a maximum: duals of linear programmes, published multipliers, and points that have none."""

import numpy as np
import pytest
import scipy

from app.ml.numerics.designs.climb import climb
from app.ml.numerics.designs.design_space import DesignSpace, Limits
from app.ml.numerics.designs.shadow_prices import shadow_prices


def box(lower, upper, limits=None):
    lower, upper = np.array(lower, float), np.array(upper, float)
    zeros = np.zeros(len(lower), np.bool_)
    return DesignSpace(lower, upper, zeros, zeros, limits or Limits.none(len(lower)))


def test_the_multiplier_of_lagrange():
    """LION 8.3.1: max x + y on x² + y² = 1, whose multiplier is 0.7071068."""

    def functions(x):
        return np.column_stack([x.sum(axis=1), 1 - (x**2).sum(axis=1)])

    space = box([-2, -2], [2, 2])
    point = climb(space, functions, np.array([0.2, 0.1]))
    np.testing.assert_allclose(point, np.sqrt(0.5), rtol=1e-6)
    (price,) = shadow_prices(space, functions, point, 1.0).found
    assert (price.limit.kind, price.limit.place) == ("demand", 0)
    assert price.value == pytest.approx(0.7071068, rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_duals_of_a_linear_programme(seed):
    rng = np.random.default_rng(seed)
    weights, worth = rng.uniform(0.1, 1, (3, 4)), rng.uniform(0.5, 2, 4)
    greatest, upper = weights.sum(axis=1) * 0.5, np.array([1.0, 2.0, 5.0, 10.0])
    peer = scipy.optimize.linprog(-worth, weights, greatest, bounds=np.column_stack([np.zeros(4), upper]))
    space = box(np.zeros(4), upper, Limits(weights, np.full(3, -np.inf), greatest))
    prices = shadow_prices(space, lambda x: (x @ worth)[:, None], peer.x, 1.0)
    found = {(one.limit.kind, one.limit.place, one.limit.upper): one.value for one in prices.found}
    for i in range(3):
        assert found.get(("constraint", i, True), 0.0) == pytest.approx(-peer.ineqlin.marginals[i], abs=1e-6)
    for i in range(4):
        assert found.get(("bound", i, True), 0.0) == pytest.approx(-peer.upper.marginals[i], abs=1e-6)
        assert found.get(("bound", i, False), 0.0) == pytest.approx(-peer.lower.marginals[i], abs=1e-6)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_prices_follow_the_unit_of_an_input(unit):
    space = box([0], [2 * unit])
    (price,) = shadow_prices(space, lambda x: 3 * x / unit, np.array([2 * unit]), 6.0).found
    assert price.value * unit == pytest.approx(3)


def test_a_maximum_inside_has_no_prices():
    prices = shadow_prices(box([0, 0], [1, 1]), lambda x: -((x - 0.5) ** 2).sum(axis=1)[:, None], np.full(2, 0.5), 1.0)
    assert prices.found == ()


@pytest.mark.parametrize(
    ("function", "at", "reason"),
    [
        (lambda x: np.floor(4 * x), 0.9, "step_function"),
        (lambda x: np.floor(4 * x), 0.7499, "step_function"),
        (lambda x: np.maximum(x - 0.5, 0) - 0.3 * np.abs(x - 0.5003), 0.5, "not_smooth"),
        (lambda x: x, 0.5, "not_a_maximum"),
    ],
)
def test_a_point_without_prices_has_a_reason(function, at, reason):
    prices = shadow_prices(box([0], [1]), function, np.array([at]), 1.0)
    assert (prices.found, prices.reason) == (None, reason)
