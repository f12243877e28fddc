"""Silhouettes, indices and agreement of clusterings beside scikit-learn."""

import numpy as np
import pytest
from sklearn import datasets, metrics

from app.ml.numerics.clustering import validity
from app.ml.numerics.clustering.rand_index import adjusted_rand, contingency

IRIS = datasets.load_iris().data


def clusters(k, seed=0):
    labels = np.random.default_rng(seed).integers(0, k, len(IRIS))
    near = (IRIS[:, 2] * k / 7).astype(int).clip(0, k - 1)
    return np.where(np.arange(len(IRIS)) % 3, near, labels)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_silhouettes_are_those_of_scikit_learn(k):
    labels = clusters(k)
    expected = metrics.silhouette_samples(IRIS, labels)
    found = validity.silhouettes(IRIS, labels, np.arange(len(IRIS)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    some = np.array([149, 3, 3, 70])
    np.testing.assert_array_equal(validity.silhouettes(IRIS, labels, some), found[some])


def test_blocks_change_nothing(monkeypatch):
    labels, rows = clusters(5), np.arange(len(IRIS))
    whole = validity.silhouettes(IRIS, labels, rows)
    monkeypatch.setattr(validity, "BLOCK", 700)
    np.testing.assert_allclose(validity.silhouettes(IRIS, labels, rows), whole, rtol=1e-12)


def test_silhouettes_of_degenerate_clusters_are_defined():
    x = np.array([[0.0], [0.0], [5.0], [5.0]])
    assert validity.silhouettes(x, np.array([0, 0, 1, 2]), np.arange(4)).tolist() == [1, 1, 0, 0]
    assert validity.silhouettes(x[:2], np.array([0, 1]), np.arange(2)).tolist() == [0, 0]
    assert np.isnan(validity.silhouettes(x, np.zeros(4, int), np.arange(4))).all()
    assert validity.silhouettes(x, np.array([3, 3, 9, 9]), np.arange(4)).tolist() == [1, 1, 1, 1]


def test_a_sample_of_many_rows_is_spread_over_them():
    assert validity.sampled(4000).tolist() == list(range(4000))
    rows = validity.sampled(1_000_000)
    assert (rows.size, rows[0], rows[-1]) == (validity.MIN_SAMPLE_ROWS, 0, 999_999)
    assert np.diff(rows).min() > 4000


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_index_of_davies_and_bouldin_is_that_of_scikit_learn(k):
    labels = clusters(k)
    centres = np.stack([IRIS[labels == j].mean(axis=0) for j in range(k)])
    spread = np.array([np.linalg.norm(IRIS[labels == j] - centres[j], axis=1).mean() for j in range(k)])
    found = validity.davies_bouldin(np.stack([spread, 2 * spread]), centres)
    expected = metrics.davies_bouldin_score(IRIS, labels)
    np.testing.assert_allclose(found, [expected, 2 * expected], rtol=1e-12)


def test_a_cluster_without_rows_does_not_count():
    centres = np.array([[0.0], [10.0], [3.0]])
    spread = np.array([[1.0, 2.0, np.nan], [1.0, np.nan, np.nan]])
    np.testing.assert_array_equal(validity.davies_bouldin(spread, centres), [0.3, np.nan])


def test_scatters_make_the_index_of_calinski_and_harabasz():
    labels = clusters(4)
    centres = np.stack([IRIS[labels == j].mean(axis=0) for j in range(4)])
    within, between = validity.scatters(IRIS, labels, centres)
    n = len(IRIS)
    expected = metrics.calinski_harabasz_score(IRIS, labels)
    assert between.sum() / 3 / (within.sum() / (n - 4)) == pytest.approx(expected, rel=1e-12)


def test_the_adjusted_rand_index_is_that_of_scikit_learn():
    for seed in range(5):
        one, other = clusters(3, seed), clusters(6, seed + 1)
        expected = metrics.adjusted_rand_score(one, other)
        assert adjusted_rand(contingency(one, other)) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert adjusted_rand(contingency(one, 5 - one)) == 1
    assert np.isnan(adjusted_rand(contingency(np.zeros(5, int), np.zeros(5, int))))
    assert np.isnan(adjusted_rand(contingency(np.zeros(1, int), np.zeros(1, int))))
