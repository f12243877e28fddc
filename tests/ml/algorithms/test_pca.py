"""Principal components against identities, published numbers and scikit-learn."""

import itertools

import numpy as np
import pytest
from sklearn import datasets, decomposition

from app.ml.algorithms import pca
from app.ml.contract.algorithm import Context, Data, Task

IRIS = datasets.load_iris().data


def fitted(x, weights=None, **params):
    data = Data.of(Task.PROJECTION, x, weights=weights)
    params = pca.PCA(**params)
    return params, pca.fit(params, data, Context.of(0)), data


def test_iris():
    """The usual shares for iris: 92.46 %, 5.31 %, 1.71 % and 0.52 % of the variance."""
    params, fit, _ = fitted(IRIS, n_components=4)
    ratio = pca.summary(params, fit.state)["explained_variance_ratio"]
    np.testing.assert_allclose(ratio, [0.92461872, 0.05306648, 0.01710261, 0.00521218], atol=5e-9)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "diabetes", "digits"])
def test_agrees_with_the_peer(name):
    x = getattr(datasets, f"load_{name}")().data
    params, fit, data = fitted(x, n_components=3)
    peer = decomposition.PCA(3, svd_solver="full").fit(x)
    n = len(x)
    np.testing.assert_allclose(fit.state.variance, peer.explained_variance_ * (n - 1) / n, rtol=1e-9)
    np.testing.assert_allclose(np.abs((fit.state.loadings * peer.components_).sum(axis=1)), 1, rtol=1e-9)
    theirs = fit.state._replace(loadings=peer.components_, mean=peer.mean_)
    assert pca.objective(params, fit.state, data) <= pca.objective(params, theirs, data) * (1 + 1e-12)


def test_squared_distances_between_rows():
    """D4: Σ‖xᵢ − xⱼ‖² over pairs is n² tr S; after projection n² times the eigenvalues kept."""
    params, fit, _ = fitted(IRIS)
    z = pca.predict(params, fit.state, IRIS)
    n = len(IRIS)

    def spread(rows):
        return sum(((a - b) ** 2).sum() for a, b in itertools.combinations(rows, 2))

    covariance = np.cov(IRIS.T, ddof=0)
    assert spread(IRIS) == pytest.approx(n**2 * np.trace(covariance), rel=1e-12)
    assert spread(z) == pytest.approx(n**2 * fit.state.variance.sum(), rel=1e-12)
    assert spread(z) / spread(IRIS) == pytest.approx(fit.state.variance.sum() / fit.state.total, rel=1e-12)


def test_the_laplacian_form():
    """D4: XᵀL_uX = n²S with L_u = nI − 11ᵀ."""
    n = len(IRIS)
    laplacian = n * np.eye(n) - 1
    np.testing.assert_allclose(IRIS.T @ laplacian @ IRIS, n**2 * np.cov(IRIS.T, ddof=0), rtol=1e-9)
    _, fit, _ = fitted(IRIS, n_components=4)
    eigenvalues = np.linalg.eigvalsh(IRIS.T @ laplacian @ IRIS)[::-1] / n**2
    np.testing.assert_allclose(fit.state.variance, eigenvalues, rtol=1e-9)


def test_what_is_lost_is_the_discarded_variance():
    """D4: the reconstruction error is n times the sum of the discarded eigenvalues."""
    params, fit, data = fitted(IRIS)
    discarded = np.linalg.eigvalsh(np.cov(IRIS.T, ddof=0))[:2].sum()
    assert pca.objective(params, fit.state, data) == pytest.approx(len(IRIS) * discarded, rel=1e-10)
    rebuilt = pca.inverse(params, fit.state, pca.predict(params, fit.state, IRIS))
    assert ((IRIS - rebuilt) ** 2).sum() == pytest.approx(len(IRIS) * discarded, rel=1e-10)


def test_no_orthonormal_pair_keeps_more():
    _, fit, _ = fitted(IRIS)
    rng = np.random.default_rng(0)
    for _ in range(50):
        pair, _ = np.linalg.qr(rng.normal(size=(4, 2)))
        assert np.var(IRIS @ pair, axis=0).sum() < fit.state.variance.sum()


def test_coordinates_are_uncorrelated_and_loadings_orthonormal():
    """D3: rows orthonormal to 1e-12."""
    params, fit, _ = fitted(IRIS, n_components=4)
    z = pca.predict(params, fit.state, IRIS)
    np.testing.assert_allclose(np.cov(z.T, ddof=0), np.diag(fit.state.variance), atol=1e-12)
    np.testing.assert_allclose(fit.state.loadings @ fit.state.loadings.T, np.eye(4), atol=1e-12)
    assert (fit.state.loadings[np.arange(4), np.abs(fit.state.loadings).argmax(axis=1)] > 0).all()


def test_a_share_of_the_variance():
    for share, expected in [(0.5, 1), (0.93, 2), (0.9776, 2), (0.9777, 3), (1.0, 4)]:
        assert len(fitted(IRIS, variance=share)[1].state.variance) == expected


def test_all_of_the_variance_leaves_out_what_has_none():
    x = np.column_stack([IRIS, IRIS[:, 0] + IRIS[:, 1], np.full(len(IRIS), 3.0)])
    assert len(fitted(x, variance=1.0)[1].state.variance) == 4


def test_whitened_coordinates_have_variance_one():
    params, fit, _ = fitted(np.column_stack([IRIS, IRIS[:, 0]]), n_components=5, whiten=True)
    z = pca.predict(params, fit.state, np.column_stack([IRIS, IRIS[:, 0]]))
    np.testing.assert_allclose(np.var(z, axis=0), [1, 1, 1, 1, 0], atol=1e-9)
    rebuilt = pca.inverse(params, fit.state, z)
    np.testing.assert_allclose(rebuilt[:, :4], IRIS, atol=1e-12)


def test_small_variances_keep_their_digits():
    """By the covariance matrix alone, a deviation of 1e-9 of the largest would be lost in rounding."""
    rng = np.random.default_rng(0)
    frame, _ = np.linalg.qr(rng.normal(size=(200, 3)) - rng.normal(size=(200, 3)).mean(axis=0))
    frame, _ = np.linalg.qr(frame - frame.mean(axis=0))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    _, fit, _ = fitted(frame * [1, 1e-5, 1e-9] @ turn, n_components=3)
    np.testing.assert_allclose(np.sqrt(fit.state.variance * 200), [1, 1e-5, 1e-9], rtol=1e-5)


def test_wide_and_long_agree():
    """The two ways of finding the directions, on rows repeated until they are many: the covariance is the same."""
    x = np.random.default_rng(0).normal(size=(6, 4)) * [4, 3, 2, 1]
    few, many = (fitted(rows, n_components=3)[1].state for rows in (x, np.repeat(x, 10, axis=0)))
    np.testing.assert_allclose(few.loadings, many.loadings, atol=1e-12)
    np.testing.assert_allclose(few.variance, many.variance, rtol=1e-12)


def test_more_components_than_there_are():
    _, fit, _ = fitted(IRIS[:3], n_components=9)
    assert fit.state.loadings.shape == (3, 4)
    assert fit.warnings == ("There are only 3 directions, not 9.",)


def test_one_row():
    params, fit, _ = fitted(IRIS[:1])
    np.testing.assert_allclose(pca.predict(params, fit.state, IRIS[:1]), 0)
    assert pca.summary(params, fit.state)["explained_variance_ratio"] == [0.0]
