"""Nearest rows: the same by every way, against scipy and against the definition, ties and extremes included."""

import gc
import math
import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import datasets
from sklearn.neighbors import NearestNeighbors

from app.ml.numerics.neighbours import nearest as module
from app.ml.numerics.neighbours.nearest import distances, neighbours

POWERS = [1.0, 1.5, 2.0, 3.0, math.inf]


def naive(x, rows, k, p):
    """By the definition: sort all rows by distance, then by place."""
    everyone = np.tile(np.arange(len(rows)), (len(x), 1))
    far = distances(x, rows, everyone, p)
    order = np.argsort(far, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(far, order, axis=1)


DRAWN = {
    "plain": lambda rng: rng.normal(size=(400, 3)),
    "many columns": lambda rng: rng.normal(size=(400, 20)),
    "one column": lambda rng: rng.normal(size=(400, 1)),
    "whole numbers, full of ties": lambda rng: rng.integers(0, 3, size=(400, 3)).astype(float),
    "all the same": lambda _: np.full((400, 2), 0.1),
    "far from zero": lambda rng: 1e8 + rng.normal(size=(400, 3)),
    "tiny": lambda rng: 2.0**-900 * rng.normal(size=(400, 3)),
    "huge": lambda rng: 2.0**900 * rng.normal(size=(400, 3)),
    "close pairs": lambda rng: np.repeat(rng.normal(size=(200, 3)), 2, axis=0) + 1e-14 * rng.normal(size=(400, 3)),
}


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("name", DRAWN)
def test_tree_and_brute_force_agree_to_the_last_bit(name, p):
    x = DRAWN[name](np.random.default_rng(3))
    rows, requested = np.ascontiguousarray(x[:300]), x[280:]  # some of the rows are queries themselves
    for k in (1, 4):
        expected = naive(requested, rows, k, p)
        for index in ("kdtree", "brute", "auto"):
            places, far = neighbours(requested, rows, k, p=p, index=index)
            np.testing.assert_array_equal(places, expected[0])
            assert far.tobytes() == expected[1].tobytes()


@pytest.mark.parametrize("p", POWERS)
def test_distances_are_those_of_scipy(p):
    rng = np.random.default_rng(0)
    x, rows = rng.normal(size=(20, 5)), rng.normal(size=(30, 5))
    everyone = np.tile(np.arange(30), (20, 1))
    theirs = cdist(x, rows, "chebyshev") if math.isinf(p) else cdist(x, rows, "minkowski", p=p)
    np.testing.assert_allclose(distances(x, rows, everyone, p), theirs, rtol=1e-13)


def test_large_powers_neither_overflow_nor_vanish():
    far = distances(np.array([[3e200, 4e200], [3e-200, 4e-200]]), np.zeros((1, 2)), np.zeros((2, 1), int), 2.0)
    np.testing.assert_allclose(far.ravel(), [5e200, 5e-200], rtol=1e-14)


@pytest.mark.parametrize("name", ["breast_cancer", "wine", "iris"])
def test_as_scikit_learn(name):
    x = getattr(datasets, f"load_{name}")().data.astype(float)
    theirs, _ = NearestNeighbors(n_neighbors=7, algorithm="brute").fit(x[::2]).kneighbors(x[1::2])
    for index in ("kdtree", "brute"):
        _, far = neighbours(x[1::2], np.ascontiguousarray(x[::2]), 7, index=index)
        np.testing.assert_allclose(far, theirs, rtol=1e-6, atol=1e-6)  # theirs cancels


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    x, rows = rng.normal(size=(50, 12)), rng.normal(size=(2000, 12))
    whole = neighbours(x, rows, 3, index="brute")
    monkeypatch.setattr(module, "BLOCK", 4000)
    for one, other in zip(whole, neighbours(x, rows, 3, index="brute"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_memory_is_that_of_a_block():
    """2,000 × 20,000 distances would be 320 MB."""
    rng = np.random.default_rng(2)
    x, rows = rng.normal(size=(2000, 12)), rng.normal(size=(20_000, 12))
    for index in ("kdtree", "brute"):
        tracemalloc.start()
        neighbours(x[:500] if index == "kdtree" else x, rows, 5, index=index)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 40e6


def test_a_tree_is_built_once_and_goes_with_its_rows():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    neighbours(rows, rows, 2, index="kdtree")
    key, (_, tree) = id(rows), module._trees.made[id(rows)]
    neighbours(rows, rows, 2, index="kdtree")
    assert module._trees.made[key][1] is tree
    del rows
    gc.collect()
    assert key not in module._trees.made


def test_fewer_rows_than_requested():
    places, far = neighbours(np.array([[0.9]]), np.array([[0.0], [1.0]]), 5)
    assert places.tolist() == [[1, 0]]
    np.testing.assert_allclose(far, [[0.1, 0.9]])


@pytest.mark.parametrize("index", ["kdtree", "brute"])
def test_any_layout_of_memory(index):
    rng = np.random.default_rng(0)
    x, rows = rng.normal(size=(20, 3)), rng.normal(size=(60, 3))
    plain = neighbours(x, rows, 4, index=index)
    for one, other in zip(
        plain, neighbours(np.repeat(x, 2, axis=1)[:, ::2], np.asfortranarray(rows), 4, index=index), strict=True
    ):
        np.testing.assert_array_equal(one, other)
