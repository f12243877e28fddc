"""Random projections: published bounds, the guarantee over many draws, and identities."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.random_projection import johnson_lindenstrauss_min_dim

from app.ml.algorithms import random_projection
from app.ml.contract.algorithm import Context, Data, Task

KINDS = ("gaussian", "sparse", "orthonormal")


def fitted(x, seed=0, **params):
    params = random_projection.RandomProjection(**params)
    return params, random_projection.fit(params, Data.of(Task.PROJECTION, x), Context.of(seed))


@pytest.mark.parametrize("rows", [10, 1000, 10**6])
@pytest.mark.parametrize("eps", [0.1, 0.5, 0.99])
def test_numbers_of_directions_agree_with_the_peer(rows, eps):
    found = random_projection.directions(rows, eps, 1 - 1 / rows)
    assert int(found * (1 + 1e-12)) == johnson_lindenstrauss_min_dim(rows, eps=eps)


@pytest.mark.parametrize("kind", KINDS)
def test_the_guarantee_holds_over_many_draws(kind):
    """All pairs of 20 rows keep their distances up to ε = 0.5, but for one draw in twenty at most."""
    x = np.random.default_rng(5).standard_t(3, size=(20, 300))
    before, failed, means = pdist(x) ** 2, 0, []
    for seed in range(40):
        params, fit = fitted(x, seed, distribution=kind, eps=0.5)
        assert fit.state.loadings.shape == (215, 300)
        factors = pdist(random_projection.predict(params, fit.state, x)) ** 2 / before
        failed += np.abs(factors - 1).max() > fit.state.guaranteed
        means.append(factors.mean())
        assert factors.min() <= fit.state.smallest * (1 + 1e-9)
        assert factors.max() >= fit.state.largest * (1 - 1e-9)
    assert failed <= 2
    assert np.mean(means) == pytest.approx(1, abs=0.02)  # the expected square of a length is kept


def test_the_error_that_is_guaranteed_is_the_inverse_of_the_bound():
    x = np.random.default_rng(0).normal(size=(50, 2000))
    _, fit = fitted(x, n_components=700, failure_probability=0.01, distribution="gaussian")
    assert random_projection.directions(50, fit.state.guaranteed, 0.01) == pytest.approx(700, rel=1e-9)
    _, chosen = fitted(x, eps=0.3, distribution="gaussian")
    assert chosen.state.guaranteed == pytest.approx(0.3, rel=1e-3)
    assert chosen.state.guaranteed <= 0.3


def test_orthonormal_directions():
    _, fit = fitted(np.random.default_rng(0).normal(size=(10, 50)), n_components=20, distribution="orthonormal")
    products = fit.state.loadings @ fit.state.loadings.T
    np.testing.assert_allclose(products, np.eye(20) * 50 / 20, atol=1e-12)


def test_entries_of_sparse_directions():
    _, fit = fitted(np.zeros((3, 2000)), n_components=300, distribution="sparse")
    values, counts = np.unique(fit.state.loadings, return_counts=True)
    np.testing.assert_allclose(values, [-0.1, 0, 0.1])
    np.testing.assert_allclose(counts / counts.sum(), [1 / 6, 2 / 3, 1 / 6], atol=0.005)


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_directions_as_columns_are_a_rotation(kind):
    x = np.random.default_rng(0).normal(size=(30, 5))
    params, fit = fitted(x, distribution=kind)
    np.testing.assert_allclose(pdist(random_projection.predict(params, fit.state, x)), pdist(x), rtol=1e-12)
    assert fit.state.guaranteed == 0
    assert "they are rotated only" in fit.warnings[0]
    rows = random_projection.inverse(params, fit.state, random_projection.predict(params, fit.state, x))
    np.testing.assert_allclose(rows, x, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_made_from_coordinates_has_these_coordinates(kind):
    x = np.random.default_rng(0).normal(size=(6, 40))
    params, fit = fitted(x, n_components=7, distribution=kind)
    z = np.random.default_rng(1).normal(size=(4, 7))
    back = random_projection.predict(params, fit.state, random_projection.inverse(params, fit.state, z))
    np.testing.assert_allclose(back, z, atol=1e-12)


def test_too_few_directions_guarantee_nothing():
    params, fit = fitted(np.random.default_rng(0).normal(size=(30, 50)), n_components=3)
    assert math.isnan(fit.state.guaranteed)
    assert "guarantee no error below 1" in fit.warnings[0]
    assert random_projection.summary(params, fit.state)["guarantee"]["largest_error"] is None
