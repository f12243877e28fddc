"""Distances and seeding: exact where it matters, and drawn as the law says."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from app.ml.numerics.clustering.seeding import canonical_order, seeds
from app.ml.numerics.neighbours import distances
from app.ml.numerics.neighbours.distances import nearest, squared_distances


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_squared_distances_are_scipys(offset):
    x, centres = rng(1).normal(size=(40, 5)) + offset, rng(2).normal(size=(7, 5)) + offset
    np.testing.assert_allclose(squared_distances(x, centres), cdist(x, centres, "sqeuclidean"), rtol=1e-7)


def test_close_points_far_from_the_rest_keep_their_digits():
    x = np.array([[1e6, 1e6], [1e6 + 1e-3, 1e6], [-1e6, 0.0]])
    squares = squared_distances(x, x)
    np.testing.assert_allclose(squares, cdist(x, x, "sqeuclidean"), rtol=1e-7)
    assert np.diagonal(squares).tolist() == [0, 0, 0]


@pytest.mark.parametrize("block", [1, 50, 2**17])
def test_nearest_in_blocks(monkeypatch, block):
    monkeypatch.setattr(distances, "BLOCK", block)
    x, centres = rng(1).normal(size=(60, 3)), rng(2).normal(size=(9, 3))
    labels, squares = nearest(x, centres)
    full = cdist(x, centres, "sqeuclidean")
    np.testing.assert_array_equal(labels, full.argmin(axis=1))
    np.testing.assert_allclose(squares, full.min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 0.1, 1e6 + 0.3])
def test_ties_go_to_the_lowest(offset):
    x = np.array([[0.0], [1.0], [2.0], [3.0]]) + offset
    centres = np.array([[2.0], [0.0], [2.0]]) + offset
    assert nearest(x[[0, 2, 3]], centres)[0].tolist() == [1, 0, 0]
    if offset == 0:
        assert nearest(x, centres)[0].tolist() == [1, 0, 0, 0]


def test_two_tight_pairs_far_apart():
    centres = np.array([[1e8, 0.0], [1e8 + 1, 0.0], [-1e8, 0.0], [-1e8 - 1, 0.0]])
    labels, squares = nearest(centres + np.array([0.25, 0.0]), centres)
    assert labels.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(squares, 0.25**2)


def test_k_means_plus_plus_draws_by_the_nearest_centre():
    """R9: of {0, 1, 10} with 0 drawn first, 1 and 10 have 1/101 and 100/101; two centres in, the last is certain."""
    x, weights = np.array([[0.0], [1.0], [10.0]]), np.array([1.0, 1e-12, 1e-12])
    second = [seeds(x, weights, 2, rng(seed))[1] for seed in range(4000)]
    share = np.bincount(second, minlength=3) / 4000
    assert share[0] == 0
    assert share[2] == pytest.approx(100 / 101, abs=0.005)  # three standard deviations
    assert all(sorted(seeds(x, weights, 3, rng(seed))) == [0, 1, 2] for seed in range(20))


def test_the_distance_is_to_the_nearest_not_the_newest():
    """Of 0, 10, 11 with 0 and 10 drawn, 0 has no chance; by the newest centre alone it would have 100 of 101."""
    x, weights = np.array([[0.0], [10.0], [11.0], [11.5]]), np.ones(4)
    drawn = [seeds(x, weights, 3, rng(seed)) for seed in range(500)]
    begun = [third for first, second, third in drawn if (first, second) == (0, 1)]
    assert len(begun) > 20
    assert set(begun) == {2, 3}
    assert np.mean(np.array(begun) == 3) == pytest.approx(2.25 / 3.25, abs=0.25)


@pytest.mark.parametrize("spread", [True, False])
def test_a_value_is_drawn_once(spread):
    x = np.repeat([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]], [5, 1, 9], axis=0)
    for seed in range(30):
        drawn = seeds(x, np.ones(15), 10, rng(seed), spread=spread)
        assert len(np.unique(x[drawn], axis=0)) == len(drawn) == 3


def test_random_rows_are_drawn_by_weight():
    x, weights = np.arange(3.0)[:, None], np.array([1.0, 2.0, 5.0])
    first = np.array([seeds(x, weights, 2, rng(seed), spread=False) for seed in range(4000)])
    np.testing.assert_allclose(np.bincount(first[:, 0]) / 4000, weights / 8, atol=0.025)
    after_the_last = first[first[:, 0] == 2, 1]
    assert (after_the_last == 1).mean() == pytest.approx(2 / 3, abs=0.03)


def test_more_candidates_start_better():
    x = rng(0).normal(size=(300, 2)) + 8 * rng(1).integers(0, 4, size=(300, 2))

    def cost(candidates):
        drawn = [seeds(x, np.ones(300), 16, rng(seed), candidates=candidates) for seed in range(30)]
        return np.mean([nearest(x, x[rows])[1].sum() for rows in drawn])

    assert cost(5) < 0.9 * cost(1)


def test_canonical_order_knows_values_only():
    x = np.round(rng(0).normal(size=(50, 3)), 1)
    x = np.concatenate([x, -x, x[:9]])  # rows equally far from the middle, and rows twice
    mixed = rng(1).permutation(len(x))
    np.testing.assert_array_equal(x[canonical_order(x)], x[mixed][canonical_order(x[mixed])])
