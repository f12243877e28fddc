"""Fronts of several values: ranks, crowding, hypervolume, and the search against fronts that are known."""

import numpy as np
import pytest

from app.ml.numerics.designs.design_space import DesignSpace, Limits
from app.ml.numerics.designs.pareto_front import crowding, hypervolume, ranks, thinned
from app.ml.numerics.designs.pareto_search import FrontScores, pareto_points


def peeled(values, missed):
    """Ranks by the definition, one front after the other."""
    found, rank = np.full(len(values), -1), 0
    while (found < 0).any():
        left = np.flatnonzero(found < 0)
        front = [i for i in left if not any(dominates(values, missed, j, i) for j in left)]
        found[front] = rank
        rank += 1
    return found


def dominates(values, missed, i, j):
    if missed[i] != missed[j]:
        return missed[i] < missed[j]
    return (values[i] >= values[j]).all() and (values[i] > values[j]).any()


@pytest.mark.parametrize("m", [1, 2, 3])
def test_ranks_follow_the_definition(m):
    rng = np.random.default_rng(m)
    values, missed = rng.integers(0, 5, (40, m)).astype(float), rng.integers(0, 2, 40).astype(float)
    np.testing.assert_array_equal(ranks(values, missed), peeled(values, missed))


def test_crowding_is_infinite_at_the_ends():
    values = np.array([[0.0, 3.0], [1.0, 2.0], [2.5, 1.0], [3.0, 0.0]])
    assert crowding(values).tolist() == [np.inf, pytest.approx(2.5 / 3 + 2 / 3), pytest.approx(2 / 3 + 2 / 3), np.inf]


def test_thinning_keeps_the_ends_and_drops_the_crowded():
    x = np.array([0.0, 0.01, 0.5, 1.0])
    assert thinned(np.column_stack([x, 1 - x]), 3).tolist() == [0, 2, 3]
    assert thinned(np.ones((4, 2)), 3).tolist() == [0]


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_hypervolume_is_the_share_of_random_points_below(m):
    rng = np.random.default_rng(m)
    values, points = rng.random((12, m)), rng.random((200_000, m))
    share = (points[:, None] <= values).all(axis=2).any(axis=1).mean()
    assert hypervolume(values, np.zeros(m)) == pytest.approx(share, abs=0.005)


def test_a_point_at_the_reference_adds_no_volume():
    assert hypervolume(np.array([[0.0, 2.0], [1.0, 1.0], [-1.0, 5.0]]), np.zeros(2)) == 1.0


def space(d, limits=None):
    zeros = np.zeros(d, np.bool_)
    return DesignSpace(np.zeros(d), np.ones(d), zeros, zeros, limits or Limits.none(d))


def test_the_front_of_zdt1():
    """Zitzler, Deb & Thiele (2000): the least values lie on f₂ = 1 − √f₁, where all inputs but the first are 0."""

    def score(x):
        g = 1 + 9 * x[:, 1:].mean(axis=1)
        return FrontScores(-np.column_stack([x[:, 0], g * (1 - np.sqrt(x[:, 0] / g))]), np.zeros(len(x)))

    found = pareto_points(space(5), score, np.full((1, 5), 0.5), 9, 150, np.random.default_rng(1))
    first, second = -found.scores.values.T
    np.testing.assert_allclose(second, 1 - np.sqrt(first), atol=0.03)
    assert first.min() < 0.01
    assert first.max() > 0.95
    # that of the whole front above (1, 1) is ∫ √f₁ = 2/3
    assert hypervolume(found.scores.values, np.array([-1.0, -1.0])) == pytest.approx(2 / 3, abs=0.02)


def test_points_of_a_front_keep_limits_and_demands():
    limits = Limits(np.array([[1.0, 1.0]]), np.array([1.0]), np.array([1.0]))

    def score(x):
        return FrontScores(x.copy(), np.maximum(0.25 - x[:, 0], 0.0))

    found = pareto_points(space(2, limits), score, np.full((1, 2), 0.5), 7, 30, np.random.default_rng(1))
    np.testing.assert_allclose(found.points.sum(axis=1), 1, atol=1e-8)
    assert found.points[:, 0].min() == pytest.approx(0.25, abs=0.01)
    assert (found.scores.missed == 0).all()
