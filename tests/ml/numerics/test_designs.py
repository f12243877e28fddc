"""Points of design spaces: even coverage under limits, searches for maxima, and the climb to them."""

import numpy as np
import pytest
import scipy

from app.ml.numerics.designs.climb import climb, slopes
from app.ml.numerics.designs.design_points import drawn_points, moved_points
from app.ml.numerics.designs.design_search import Effort, Scores, best_points
from app.ml.numerics.designs.design_space import DesignSpace, Limits


def rng(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def space(box, limits=None, whole=(), category=()):
    lower, upper = np.array(box, float).T
    places = np.arange(len(lower))
    limits = limits or Limits.none(len(lower))
    return DesignSpace(lower, upper, np.isin(places, whole), np.isin(places, category), limits)


def limits(weights, least, greatest):
    return Limits(np.array(weights, float), np.array(least, float), np.array(greatest, float))


def maximum(of, own, effort=None):
    start = own.inner_point()[None]
    return best_points(own, lambda x: Scores(of(x), np.zeros(len(x))), start, effort or Effort(), rng())


def test_points_of_a_simplex_are_uniform():
    """Shares of a mixture: each coordinate of a uniform point of the simplex has a beta distribution."""
    own = space([(0, 1)] * 3, limits([[1, 1, 1]], [1], [1]))
    points = drawn_points(own, own.inner_point(), 9, rng())
    np.testing.assert_allclose(points.sum(axis=1), 1, atol=1e-9)
    for column in points.T:
        assert scipy.stats.kstest(column, scipy.stats.beta(1, 2).cdf).pvalue > 0.01


def test_whole_numbers_under_a_limit_are_drawn_as_often_as_they_have_room():
    """2 a + b ≤ 3 with a of 0 to 3 and b in [0, 3]: all of a = 0 and a = 1 fit, and b has a third of the room there."""
    own = space([(0, 3), (0, 3)], limits([[2, 1]], [-np.inf], [3]), whole=(0,))
    points = drawn_points(own, own.inner_point(), 11, rng())
    assert own.misses(points).max() <= 1
    assert set(points[:, 0]) == {0, 1}
    assert np.mean(points[:, 0] == 1) == pytest.approx(0.25, abs=0.05)


def test_without_limits_categories_and_whole_numbers_are_even():
    own = space([(-1, 1), (3, 6), (0, 2)], whole=(1,), category=(2,))
    points = drawn_points(own, own.inner_point(), 10, rng())
    assert {*np.unique(points[:, 1])} == {3, 4, 5, 6}
    assert np.bincount(points[:, 2].astype(int)).min() > 300


@pytest.mark.parametrize("unit", [1e-8, 1, 1e8])
def test_moves_stay_within_all_limits_whatever_the_unit(unit):
    own = space(
        [(0, unit), (0, unit), (0, 5), (0, 2)],
        limits([[1, 2, 0, 0], [1 / unit, 0, 1, 0]], [unit, -np.inf], [unit, 4]),
        whole=(2,), category=(3,),
    )  # fmt: skip
    points = drawn_points(own, own.inner_point(), 6, rng())
    moved = moved_points(own, points, np.full(len(points), 0.3), rng(1))
    assert own.misses(moved).max() <= 1
    assert (moved != points).any(axis=1).mean() > 0.5


def test_limits_that_no_point_satisfies():
    assert space([(0, 1)] * 2, limits([[1, 1]], [3], [np.inf])).inner_point() is None
    assert space([(0, 5)], limits([[2]], [2.5], [3.5]), whole=(0,)).inner_point() is None


def test_no_variable_at_all():
    own = space([(2, 2), (0, 0)], category=(1,))
    found = maximum(lambda x: x[:, 0], own)
    np.testing.assert_array_equal(found.points[0], [2, 0])


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_of_a_linear_programme(seed):
    """The same vertex as the simplex method finds."""
    draw = np.random.default_rng(seed)
    weights, goal = draw.random((3, 4)), draw.normal(size=4)
    own = space([(0, 1)] * 4, limits(weights, [-np.inf] * 3, weights.sum(axis=1) / 2))
    peer = scipy.optimize.linprog(-goal, A_ub=weights, b_ub=weights.sum(axis=1) / 2, bounds=[(0, 1)] * 4)
    found = maximum(lambda x: x @ goal, own)
    reached = climb(own, lambda x: (x @ goal)[:, None], found.points[0])
    np.testing.assert_allclose(reached, peer.x, atol=1e-6)


def test_a_curved_valley_is_followed_to_its_end():
    def rosenbrock(x):
        return -np.sum(100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2, axis=1)

    own = space([(-5, 5)] * 4)
    found = maximum(rosenbrock, own)
    reached = climb(own, lambda x: rosenbrock(x)[:, None], found.points[0], 200)
    np.testing.assert_allclose(reached, 1, atol=1e-3)


def test_numbers_whole_numbers_and_categories_together():
    own = space([(0, 1), (0, 20), (0, 4)], whole=(1,), category=(2,))

    def value(x):
        return -((x[:, 0] - 0.3) ** 2) - (x[:, 1] - 13.4) ** 2 + 10 * (x[:, 2] == 3)

    found = maximum(value, own).points[0]
    assert found[1:].tolist() == [13, 3]
    assert climb(own, lambda x: value(x)[:, None], found)[0] == pytest.approx(0.3, abs=1e-6)


def test_a_point_that_meets_its_demands_beats_one_that_does_not():
    own = space([(0, 1)] * 2)
    found = best_points(
        own,
        lambda x: Scores(x.sum(axis=1), np.maximum(np.sum(x**2, axis=1) - 0.5, 0.0)),
        own.inner_point()[None], Effort(rounds=60), rng(),
    )  # fmt: skip
    assert found.scores.missed[0] == 0
    np.testing.assert_allclose(found.points[0], 0.5, atol=0.05)


def test_the_climb_meets_demands_to_their_limit():
    """LION 8.3.1: max x + y on x² + y² ≤ 1 is at x = y = 0.7071068."""
    own = space([(-2, 2)] * 2)
    reached = climb(own, lambda x: np.column_stack([x.sum(axis=1), 1 - np.sum(x**2, axis=1)]), np.array([0.3, 0.1]))
    np.testing.assert_allclose(reached, np.sqrt(0.5), atol=1e-6)


def test_slopes_are_per_width_and_one_sided_at_bounds():
    own = space([(0, 10), (0, 1), (0, 3)], category=(2,))
    found = slopes(own, lambda x: (3 * x[:, 0] + x[:, 1] ** 2)[:, None], np.array([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(found.gradients, [[30, 2, 0]], atol=1e-3)
    assert found.values.tolist() == [1]


def test_the_same_seed_gives_the_same_bytes():
    own = space([(0, 1)] * 3, limits([[1, 1, 1]], [1], [1]))
    first, second = (maximum(lambda x: -np.sum((x - 0.3) ** 2, axis=1), own).points for _ in range(2))
    assert first.tobytes() == second.tobytes()
