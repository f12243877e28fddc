"""Proposals in single precision: never sure of what is not so, sure where rows are apart; kernels beside numpy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from app.ml.numerics.neighbours.nearest import neighbours
from app.ml.numerics.neighbours.screening import GROUP, SPARE, Screen, merge_lowest, minkowski


def test_lowest_as_by_sorting():
    rng = np.random.default_rng(0)
    low, places = np.full((7, 5), np.inf, np.float32), np.zeros((7, 5), np.int64)
    tiles = [rng.integers(0, 500, size=(7, 4 * GROUP)).astype(np.float32) for _ in range(3)]
    tiles[1][:, :] = np.inf
    tiles[2][3, 10] = np.nan
    for t, tile in enumerate(tiles):
        merge_lowest(tile, t * 4 * GROUP, low, places)
    everything = np.hstack(tiles)
    order = np.argsort(everything, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(low, np.take_along_axis(everything, order, axis=1))
    np.testing.assert_array_equal(places, order)  # of equal scores the first stays in front


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, np.inf])
def test_distances_as_by_numpy(p):
    rng = np.random.default_rng(1)
    x, rows = rng.normal(size=(6, 4)), rng.normal(size=(9, 4))
    rows[0] = x[0]
    places, far = np.tile(np.arange(9), (6, 1)), np.empty((6, 9))
    minkowski(x, rows, places, p, far)
    np.testing.assert_allclose(far, cdist(x, rows, "chebyshev") if np.isinf(p) else cdist(x, rows, "minkowski", p=p))
    assert far[0, 0] == 0


def holding(x, rows, k, scale=1.0):
    """Of queries reported as certain, whether the k nearest by the definition are proposed; and how many these are."""
    places, certain = Screen.of(rows * scale).propose(x * scale, k)
    nearest = np.argsort(cdist(x, rows), axis=1, kind="stable")[:, :k]
    return [set(n) <= set(p) for n, p in zip(nearest[certain], places[certain], strict=True)], certain.mean()


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("d", [2, 20])
def test_certain_where_rows_are_apart(scale, d):
    rng = np.random.default_rng(2)
    held, share = holding(rng.normal(size=(50, d)), rng.normal(size=(3000, d)), 4, scale)
    assert all(held)
    assert share > 0.9 if d == 20 else share > 0.5


def test_a_far_row_spoils_nothing():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(2000, 8))
    rows[7] = 1e4
    held, share = holding(rng.normal(size=(40, 8)), rows, 3)
    assert all(held)
    assert share == 1


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7, 1e-9, 1e-12])
def test_not_certain_beyond_its_digits(gap):
    """Shells of rows about the query, closer and closer to each other."""
    rng = np.random.default_rng(4)
    ways = rng.normal(size=(600, 6))
    ways /= np.sqrt((ways**2).sum(axis=1, keepdims=True))
    rows = 5 + ways * (1 + gap * rng.permutation(600))[:, None]
    requested = np.full((1, 6), 5.0)
    held, share = holding(requested, rows, 3)
    assert all(held)
    if gap <= 1e-9:
        assert share == 0
    places, _ = neighbours(requested, rows, 3, index="brute")
    np.testing.assert_array_equal(places, neighbours(requested, rows, 3, index="kdtree")[0])


def test_what_is_too_large_or_too_few_is_left_to_others():
    few = Screen.of(np.eye(4)).propose(np.eye(4), 2)
    assert few[0].shape == (4, 2 + SPARE)
    assert not few[1].any()
    huge = Screen.of(np.random.default_rng(0).choice([-1.7e308, 1.7e308], size=(50, 2)))
    assert not huge.propose(np.zeros((3, 2)), 1)[1].any()
    rows = np.random.default_rng(0).normal(size=(50, 2))
    assert not Screen.of(rows).propose(np.array([[1e300, 0], [np.inf, 0]]), 1)[1].any()
    assert not Screen.of(np.ones((50, 2))).propose(np.ones((1, 2)), 1)[1].any()


def test_a_tree_of_rows_ever_closer_together():
    """Splits in the middle of ranges make it as deep as there are rows."""
    rows = np.column_stack([2.0 ** -np.arange(1000.0), np.zeros(1000)])
    places, far = neighbours(np.array([[0.0, 0.0], [0.3, 0]]), rows, 2, index="kdtree")
    assert places.tolist() == [[999, 998], [2, 3]]
    np.testing.assert_allclose(far[1], [0.05, 0.175])
