"""Normal densities of clusters: identities of Mahalanobis distances, and what stands in for a singular covariance."""

import numpy as np
import pytest
from scipy import stats

from app.ml.numerics.clustering import cluster_normals as module
from app.ml.numerics.clustering.cluster_normals import cluster_normals

RNG = np.random.default_rng(0)
LABELS = np.repeat([0, 1, 3], [30, 20, 1])
ROWS = RNG.normal(size=(51, 3)) @ RNG.normal(size=(3, 3)) + 5 * LABELS[:, None]
PROTOTYPES = np.arange(12.0).reshape(4, 3)
WEIGHTS = np.ones(51)


@pytest.fixture(scope="module")
def found():
    return cluster_normals(ROWS, WEIGHTS, LABELS, PROTOTYPES)


def test_the_mean_squared_distance_of_a_cluster_is_the_number_of_columns(found):
    squares = found.squares(ROWS, LABELS)
    assert [squares[j == LABELS].mean() for j in (0, 1)] == pytest.approx([3, 3])
    for j in (0, 1):
        rows = ROWS[j == LABELS]
        centred, inverse = rows - rows.mean(axis=0), np.linalg.inv(np.cov(rows.T, bias=True))
        np.testing.assert_allclose(squares[j == LABELS], np.einsum("ni,ij,nj->n", centred, inverse, centred))
        np.testing.assert_allclose(found.normals.covariances(np.arange(3))[j], np.cov(rows.T, bias=True))
    np.testing.assert_allclose(found.tails(ROWS, LABELS), stats.chi2(3).sf(squares))


def test_a_row_alone_and_a_cluster_without_rows_have_the_variance_within_clusters(found):
    assert found.shrunk.tolist() == [False, False, True, True]
    assert found.shares.tolist() == pytest.approx([30 / 51, 20 / 51, 0, 1 / 51])
    np.testing.assert_allclose(found.means[2], PROTOTYPES[2])
    np.testing.assert_allclose(found.means[3], ROWS[-1])
    within = sum(np.square(ROWS[j == LABELS] - ROWS[j == LABELS].mean(axis=0)).sum() for j in (0, 1)) / 51 / 3
    np.testing.assert_allclose(found.normals.covariances(np.arange(3))[2], within * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found.normals.covariances(np.arange(3))[3], within * 4 / 5 * np.eye(3), atol=1e-12)


def test_memberships_are_those_of_the_densities_of_scipy(found):
    new = RNG.normal(size=(7, 3)) * 4
    covariances = found.normals.covariances(np.arange(3))
    kept = [0, 1, 3]
    odds = [stats.multivariate_normal(found.means[j], covariances[j]).pdf(new) * found.shares[j] for j in kept]
    memberships = found.memberships(new)
    np.testing.assert_allclose(memberships[:, kept], (odds / np.sum(odds, axis=0)).T, atol=1e-12)
    assert memberships[:, 2].tolist() == [0] * 7


def test_no_training_row_lies_beyond_and_a_far_one_does(found):
    assert not found.beyond(ROWS, LABELS).any()
    assert found.beyond(ROWS + 1e3, LABELS).all()


def test_any_affine_map_leaves_distances_as_they_are(found):
    change = RNG.normal(size=(3, 3))
    moved = cluster_normals(ROWS[:50] @ change + 7, WEIGHTS[:50], LABELS[:50], PROTOTYPES[:2] @ change + 7)
    plain = cluster_normals(ROWS[:50], WEIGHTS[:50], LABELS[:50], PROTOTYPES[:2])
    np.testing.assert_allclose(
        moved.squares(ROWS[:50] @ change + 7, LABELS[:50]), plain.squares(ROWS[:50], LABELS[:50]), rtol=1e-6
    )


def test_many_numbers_make_the_covariances_spherical(monkeypatch):
    monkeypatch.setattr(module, "MOST_NUMBERS", 35)
    found = cluster_normals(ROWS, WEIGHTS, LABELS, PROTOTYPES)
    assert (found.covariance, found.whitening.shape) == ("spherical", (4, 1, 3))
    squares = found.squares(ROWS, LABELS)
    assert [squares[j == LABELS].mean() for j in (0, 1)] == pytest.approx([3, 3])


@pytest.mark.parametrize("size", [1e-290, 1e-30, 1.0, 1e140])
def test_the_unit_of_the_columns_does_not_matter(found, size):
    scaled = cluster_normals(ROWS * size, WEIGHTS, LABELS, PROTOTYPES * size)
    np.testing.assert_allclose(scaled.squares(ROWS * size, LABELS), found.squares(ROWS, LABELS), rtol=1e-7, atol=1e-9)


def test_equal_rows_have_a_density_and_numbers_beyond_range_none():
    same = cluster_normals(np.ones((5, 2)), np.ones(5), np.zeros(5, int), np.ones((1, 2)))
    assert (same.shrunk.tolist(), same.beyond(np.ones((1, 2)), np.zeros(1, int)).tolist()) == ([True], [False])
    assert same.beyond(np.full((1, 2), 1.1), np.zeros(1, int)).all()
    assert cluster_normals(np.array([[0.0], [1e200]]), np.ones(2), np.zeros(2, int), np.zeros((1, 1))) is None
