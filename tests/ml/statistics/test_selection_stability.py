"""Stability of selections: ends of the scale, Kuncheva's index for equal sizes, the error by leaving samples out."""

from itertools import combinations

import numpy as np
import pytest

from app.ml.statistics.selection_stability import selection_stability


def test_equal_selections_are_stable_and_random_ones_are_not():
    assert selection_stability(np.tile([True, True, False, False], (5, 1))).value == pytest.approx(1)
    rng = np.random.default_rng(0)
    drawn = rng.random((2000, 20)).argsort(axis=1) < 5
    found = selection_stability(drawn)
    assert found.value == pytest.approx(0, abs=0.01)
    assert found.lower < 0.005 < found.upper + 0.01


def test_of_equal_sizes_it_is_the_mean_of_kunchevas_index_over_pairs():
    rng = np.random.default_rng(1)
    z = np.array([np.argsort(rng.normal(size=9) + np.arange(9) / 3) < 4 for _ in range(7)])
    pairs = [((a & b).sum() - 16 / 9) / (4 - 16 / 9) for a, b in combinations(z, 2)]
    assert selection_stability(z).value == pytest.approx(np.mean(pairs))


def test_the_error_is_about_that_of_leaving_samples_out():
    rng = np.random.default_rng(2)
    z = rng.random((200, 12)) < np.linspace(0.1, 0.9, 12)
    found = selection_stability(z)
    left = np.array([selection_stability(np.delete(z, place, axis=0)).value for place in range(200)])
    jackknife = np.sqrt(199 / 200 * ((left - left.mean()) ** 2).sum())
    assert (found.upper - found.lower) / 2 / 1.96 == pytest.approx(jackknife, rel=0.05)


def test_all_or_nothing_has_no_stability():
    assert selection_stability(np.ones((4, 3), bool)).value is None
    assert selection_stability(np.zeros((4, 3), bool)).value is None
    assert selection_stability(np.ones((1, 3), bool)).value is None
