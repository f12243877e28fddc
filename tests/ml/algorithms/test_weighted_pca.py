"""Weighted principal components against the sum over pairs that they maximise."""

import itertools

import numpy as np
import pytest
from sklearn import datasets

from app.ml.algorithms import pca, weighted_pca
from app.ml.contract.algorithm import Context, Data, Meaning, Task
from app.ml.contract.relations import Edges, Relations
from app.ml.numerics.linear_algebra.pair_scatter import by_inverse_distance, of_all_pairs

IRIS = datasets.load_iris()


def fitted(x, weights=None, edges=None, **params):
    relations = None if edges is None else Relations(Meaning.DISSIMILARITY, edges=edges)
    data = Data.of(Task.PROJECTION, x, weights=weights, relations=relations)
    return weighted_pca.fit(weighted_pca.WeightedPCA(**params), data, Context.of(0))


def scatter(x, weight):
    """The sum over pairs, pair by pair."""
    gaps = {(i, j): x[i] - x[j] for i, j in itertools.combinations(range(len(x)), 2)}
    return sum(weight(i, j, gap) * np.outer(gap, gap) for (i, j), gap in gaps.items())


def leading(matrix, p=2):
    return np.linalg.eigh(matrix)[1].T[::-1][:p]


def same_directions(one, other):
    np.testing.assert_allclose(np.abs((one * other).sum(axis=1)), 1, rtol=1e-9)


def edges_of(first, second, values):
    return Edges(np.array(first, np.intp), np.array(second, np.intp), np.array(values, float))


def test_equal_weights_give_principal_components():
    state = fitted(IRIS.data, n_components=4, pair_weights="uniform").state
    other = pca.fit(pca.PCA(n_components=4), Data.of(Task.PROJECTION, IRIS.data), Context.of(0)).state
    np.testing.assert_allclose(state.loadings, other.loadings, atol=1e-10)
    np.testing.assert_allclose(state.variance, other.variance, rtol=1e-10)
    np.testing.assert_allclose(state.share, other.variance / other.total, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_sums_over_pairs(seed):
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(40, 3)) * [3, 2, 1], rng.uniform(0.5, 2, 40)
    x -= weights @ x / weights.sum()

    def product(i, j, _gap):
        return weights[i] * weights[j]

    def inverse(i, j, gap):
        return weights[i] * weights[j] / np.linalg.norm(gap)

    np.testing.assert_allclose(of_all_pairs(x, weights), scatter(x, product), rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(by_inverse_distance(x, weights), scatter(x, inverse), rtol=1e-11, atol=1e-9)
    same_directions(fitted(x, weights).state.loadings, leading(scatter(x, inverse)))


def test_blocks_of_rows_add_up():
    """More rows than one block holds, each of some rows given many times: weights say the same."""
    x = np.random.default_rng(0).normal(size=(60, 3)) * [3, 2, 1]
    many, once = fitted(np.repeat(x, 20, axis=0)).state, fitted(x).state
    np.testing.assert_allclose(many.loadings, once.loadings, atol=1e-10)
    np.testing.assert_allclose(many.share, once.share, rtol=1e-10)


def test_an_outlier_does_not_choose_the_direction():
    rng = np.random.default_rng(0)
    x = np.vstack([rng.normal(size=(100, 2)) * [3, 0.3], [[0, 40]]])
    assert abs(fitted(x, n_components=1, pair_weights="uniform").state.loadings[0, 1]) > 0.99
    assert abs(fitted(x, n_components=1).state.loadings[0, 0]) > 0.99


def test_edges_are_the_weights_of_their_pairs():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 4))
    pairs = list(itertools.combinations(range(30), 2))[::3]
    values = dict(zip(pairs, rng.uniform(0, 5, len(pairs)), strict=True))
    state = fitted(x, edges=edges_of(*zip(*pairs, strict=True), list(values.values()))).state
    expected = scatter(x, lambda i, j, _gap: values.get((i, j), 0.0))
    same_directions(state.loadings, leading(expected))
    shares = np.linalg.eigvalsh(expected)[::-1] / np.trace(expected)
    np.testing.assert_allclose(state.share, shares[:2], rtol=1e-10)


def test_edges_between_classes_separate_them_better_than_principal_components():
    """X1: with no weight for pairs of one class, Fisher's ratio of the first coordinate is higher."""
    rng = np.random.default_rng(2)
    y = np.arange(60) % 2
    x = rng.normal(size=(60, 2)) * [3, 1] + np.outer(y, [0, 5.0])
    pairs = [(i, j) for i, j in itertools.combinations(range(60), 2) if y[i] != y[j]]

    def ratio(state):
        z = (x @ state.loadings[0]).ravel()
        one, other = z[y == 0], z[y == 1]
        return (one.mean() - other.mean()) ** 2 / (one.var() + other.var())

    apart = fitted(x, edges=edges_of(*zip(*pairs, strict=True), np.ones(len(pairs))))
    assert ratio(apart.state) > 2 * ratio(fitted(x, pair_weights="uniform").state)


def test_no_orthonormal_pair_keeps_more():
    data, params = Data.of(Task.PROJECTION, IRIS.data), weighted_pca.WeightedPCA()
    state = fitted(IRIS.data).state
    found = weighted_pca.objective(params, state, data)
    assert found == pytest.approx(1 - state.share.sum(), rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        pair, _ = np.linalg.qr(rng.normal(size=(4, 2)))
        assert weighted_pca.objective(params, state._replace(loadings=pair.T), data) > found


def test_rows_come_back_from_all_coordinates():
    params = weighted_pca.WeightedPCA(n_components=4)
    state = fitted(IRIS.data, n_components=4).state
    z = weighted_pca.predict(params, state, IRIS.data)
    np.testing.assert_allclose(weighted_pca.inverse(params, state, z), IRIS.data, atol=1e-12)
    np.testing.assert_allclose(weighted_pca.lost(params, state, IRIS.data), 0, atol=1e-7)
    np.testing.assert_allclose(state.loadings @ state.loadings.T, np.eye(4), atol=1e-12)


def test_pairs_without_a_difference_are_reported():
    fit = fitted(np.ones((5, 2)), n_components=3)
    assert [warning.split(":")[0].split(",")[0] for warning in fit.warnings] == [
        "There are only 2 directions",
        "No pair of rows with a weight differs",
    ]
