"""Bisecting k-means: the tree of splits, scikit-learn as the rival, the best of all bisections."""

from itertools import pairwise, product

import numpy as np
import pytest
from sklearn import cluster, datasets

from app.ml.algorithms.bisecting_kmeans import BisectingKMeans, distance, fit, predict, summary
from app.ml.contract.algorithm import Context, Data, Task


def of(x, **more):
    return Data.of(Task.CLUSTERING, np.asarray(x, float), **more)


def fitted(x, seed=0, weights=None, **params):
    chosen = BisectingKMeans(**params)
    return chosen, fit(chosen, of(x, weights=weights), Context.of(seed))


def blobs(seed=0, rows=120):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 2)) + 5 * rng.integers(0, 2, size=(rows, 2))


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
@pytest.mark.parametrize("strategy", ["biggest_inertia", "largest_cluster"])
def test_no_worse_than_scikit_learn(name, strategy):
    x = getattr(datasets, f"load_{name}")().data
    _, ours = fitted(x, n_clusters=6, n_init=5, bisecting_strategy=strategy)
    theirs = cluster.BisectingKMeans(6, n_init=5, random_state=0, tol=0, bisecting_strategy=strategy).fit(x)
    assert ours.curves["inertia"][-1] <= theirs.inertia_ * 1.001
    assert ours.converged


@pytest.mark.parametrize("seed", range(5))
def test_nodes_are_what_their_rows_make_them(seed):
    x, weights = blobs(seed), np.random.default_rng(seed).uniform(0.5, 2, 120)
    params, found = fitted(x, seed, weights, n_clusters=7)
    state, labels = found.state, predict(params, found.state, x)
    curve = found.curves["inertia"]
    assert all(after < before for before, after in pairwise(curve))
    assert len(curve) == 7
    leaves = np.flatnonzero(state.labels >= 0)
    np.testing.assert_array_equal(state.labels[leaves], np.arange(7))
    np.testing.assert_array_equal(state.sizes[leaves], np.bincount(labels))
    for j, node in enumerate(leaves):
        rows, mass = x[labels == j], weights[labels == j]
        np.testing.assert_allclose(state.centres[node], np.average(rows, axis=0, weights=mass))
        assert state.inertias[node] == pytest.approx(mass @ ((rows - state.centres[node]) ** 2).sum(axis=1))
    for node in np.flatnonzero(state.children):
        left = state.children[node]
        assert state.sizes[node] == state.sizes[left] + state.sizes[left + 1]
    assert curve[-1] == pytest.approx(state.inertias[leaves].sum())
    np.testing.assert_allclose(distance(params, state, x), np.linalg.norm(x - state.centres[leaves][labels], axis=1))


def test_fewer_clusters_contain_more():
    x = blobs()
    several = [fitted(x, n_clusters=k) for k in (2, 3, 5, 8)]
    labels = [predict(params, found.state, x) for params, found in several]
    for coarse, fine in pairwise(labels):
        assert all(len(set(coarse[fine == j])) == 1 for j in set(fine))


@pytest.mark.parametrize("seed", range(4))
def test_one_split_is_the_best_bisection(seed):
    """C5: all bisections of ten rows are tried."""
    x = np.random.default_rng(seed).normal(size=(10, 2))
    sides = np.array(list(product((False, True), repeat=9)))[1:]
    sides = np.column_stack([np.zeros(len(sides), bool), sides])

    def inertia(inside):
        return sum(((x[side] - x[side].mean(axis=0)) ** 2).sum() for side in (inside, ~inside))

    _, found = fitted(x, seed, n_clusters=2, n_init=20)
    assert found.curves["inertia"][-1] == pytest.approx(min(map(inertia, sides)))


def test_depth_bounds_the_tree():
    _, found = fitted(blobs(), n_clusters=100, max_depth=3)
    assert len(found.curves["inertia"]) == 8
    assert found.warnings == ["Only 8 clusters could be made by splits."]


def test_equal_rows_are_not_split():
    x = np.repeat([[0.1, 0.7], [0.3, 0.3], [9.1, 0.0]], [4, 2, 3], axis=0)
    params, found = fitted(x, n_clusters=8)
    labels = predict(params, found.state, x)
    assert sorted(found.state.sizes[found.state.labels >= 0]) == [2, 3, 4]
    np.testing.assert_array_equal(labels, np.repeat(labels[[0, 4, 6]], [4, 2, 3]))


def test_row_order_changes_nothing():
    x, order = blobs(4), np.random.default_rng(4).permutation(120)
    one, other = (fitted(rows, n_clusters=5)[1].state for rows in (x, x[order]))
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


def test_summary_has_the_tree():
    params, found = fitted([[0.0], [1], [10], [11], [100]], n_clusters=3)
    nodes = summary(params, found.state)["nodes"]
    assert [node["parent"] for node in nodes] == [None, 0, 0, *[nodes[3]["parent"]] * 2]
    assert [node["cluster"] for node in nodes if node["cluster"] is not None] == [0, 1, 2]
    assert nodes[0]["size"] == 5
    assert summary(params, found.state)["inertia"] == 1.0
