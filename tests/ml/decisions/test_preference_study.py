"""Preferences of a simulated person: weights are found within their errors, and in fewer pairs than by chance."""

import numpy as np
import pytest
from scipy.special import expit

from app.ml.decisions.preference_study import Candidate, PairComparison, PreferenceGoal, PreferenceStudy

GOALS = [PreferenceGoal(name="gain"), PreferenceGoal(name="cost", aim="minimise"),
         PreferenceGoal(name="heat", aim="target", value=20.0)]  # fmt: skip


def candidates(rng, count=20):
    numbers = rng.normal(size=(count, 3)) * [100.0, 1e-3, 5.0] + [0.0, 1.0, 20.0]
    return [Candidate(values=dict(zip(("gain", "cost", "heat"), row, strict=True))) for row in numbers.tolist()]


def study(found, comparisons=(), l2=0.1):
    return PreferenceStudy(
        GOALS, found, [PairComparison(first=a, second=b, preferred=p) for a, b, p in comparisons], l2
    )


def gains(found):
    return np.array([[one.values["gain"], -one.values["cost"], -abs(one.values["heat"] - 20)] for one in found])


def test_units_of_goals_do_not_matter():
    rng = np.random.default_rng(1)
    found = candidates(rng)
    comparisons = [(0, 1, "first"), (2, 3, "second"), (4, 5, "equal")]
    learned = study(found, comparisons).learned()
    larger = [Candidate(values=one.values | {"gain": 1e6 * one.values["gain"]}) for one in found]
    other = study(larger, comparisons).learned()
    assert other.utilities == pytest.approx(learned.utilities)
    assert other.mean * [1e6, 1, 1] == pytest.approx(learned.mean)
    assert other.next_pair() == pytest.approx(learned.next_pair())


def test_utilities_are_weights_times_goals():
    rng = np.random.default_rng(2)
    found = candidates(rng)
    learned = study(found, [(0, 1, "first"), (2, 3, "second"), (4, 5, "first")]).learned()
    sums = gains(found) @ learned.mean
    assert learned.utilities == pytest.approx(sums - sums.mean())
    assert learned.best.sum() == pytest.approx(1)
    assert learned.shares.sum() == pytest.approx(1)


def test_a_goal_that_is_the_same_everywhere_has_no_weight():
    found = [Candidate(values={"gain": gain, "cost": 1e60, "heat": 0.1 + 0.2 if gain else 0.3}) for gain in (0, 1, 2)]
    learned = study(found, [(0, 1, "second")]).learned()
    assert learned.mean[0] > 0
    assert learned.mean[1:].tolist() == [0, 0]
    assert learned.positive[1:].tolist() == [0.5, 0.5]


def test_all_pairs_compared_leave_none():
    found = [Candidate(values={"gain": gain, "cost": 1.0, "heat": 1.0}) for gain in (0.0, 1.0, 1.0)]
    pair = study(found, [(0, 1, "second")]).learned().next_pair()
    assert (pair.first, pair.second) == (0, 2)
    assert study(found, [(0, 1, "second"), (2, 0, "first")]).learned().next_pair() is None  # the last two are alike


def person(rng, found, weights, scale):
    """Comparisons by the logistic rule."""
    worth = gains(found) / scale @ weights

    def compare(first, second):
        return (first, second, "first" if rng.random() < expit(worth[first] - worth[second]) else "second")

    return compare


def test_intervals_cover_the_weights_of_a_person():
    """Weights from the prior, 40 pairs each: intervals of 95 % hold the weight in 93 to 97.5 % of 600 cases."""
    rng, inside = np.random.default_rng(3), []
    for _ in range(200):
        found = candidates(rng)
        scale = gains(found).std(axis=0)
        weights = rng.normal(size=3)
        compare = person(rng, found, weights, scale)
        learned = study(found, [compare(*rng.choice(20, 2, replace=False).tolist()) for _ in range(40)], 1.0).learned()
        inside.append(np.abs(learned.mean - weights / scale) <= 1.96 * learned.errors)
    assert 0.93 <= np.mean(inside) <= 0.975


def test_pairs_by_information_teach_more_than_pairs_by_chance():
    """What the best candidate by the weights lacks to the best one, after 8 pairs, over 40 persons."""
    lacking = {"information": [], "chance": []}
    for seed in range(40):
        for choice, kept in lacking.items():
            rng = np.random.default_rng(seed)
            found = candidates(rng)
            scale = gains(found).std(axis=0)
            weights = 2 * rng.normal(size=3)
            compare, comparisons = person(rng, found, weights, scale), []
            for _ in range(8):
                if choice == "information":
                    first, second = study(found, comparisons).learned().next_pair()[:2]
                else:
                    first, second = rng.choice(20, 2, replace=False).tolist()
                comparisons.append(compare(first, second))
            worth = gains(found) / scale @ weights
            kept.append(worth.max() - worth[study(found, comparisons).learned().utilities.argmax()])
    assert np.mean(lacking["information"]) < 0.7 * np.mean(lacking["chance"])
