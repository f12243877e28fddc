"""Spectral layout: Hall's drawing against its definition, published spectra, and new rows."""

import numpy as np
import pytest

from app.ml.algorithms.spectral_layout import SpectralLayout, fit, predict
from app.ml.contract.algorithm import Context, Data, Meaning, Task
from app.ml.contract.relations import Edges, Relations


def of_edges(weights):
    first, second = np.nonzero(np.triu(weights, 1))
    relations = Relations(Meaning.SIMILARITY, edges=Edges(first, second, weights[first, second]), by_item=True)
    return Data.of(Task.PROJECTION, np.arange(len(weights), dtype=float)[:, None], relations=relations)


def fitted(data, **params):
    return fit(SpectralLayout(**params), data, Context.of(0))


def path(n):
    return np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


def test_the_fiedler_vector_of_a_path_is_monotone():
    weights = path(400)  # beyond the size that is solved as a dense matrix
    first = fitted(of_edges(weights)).state.coordinates[:, 0]
    steps = np.diff(first)
    assert (steps > 0).all() or (steps < 0).all()
    wanted = np.cos(np.pi * (np.arange(400) + 0.5) / 400)
    assert abs(first @ wanted / np.linalg.norm(wanted)) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_no_other_drawing_of_this_length_and_mean_has_shorter_edges(seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(0, 1, (15, 15)), 1)
    weights += weights.T
    laplacian = np.diag(weights.sum(axis=1)) - weights
    state = fitted(of_edges(weights), n_components=3).state
    y = state.coordinates
    np.testing.assert_allclose(y.T @ y, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(y.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.diag(y.T @ laplacian @ y), state.eigenvalues, rtol=1e-9)
    for _ in range(200):
        other, _ = np.linalg.qr(np.column_stack([np.ones(15), rng.normal(size=(15, 3))]))
        assert np.trace(other[:, 1:].T @ laplacian @ other[:, 1:]) >= state.eigenvalues.sum() - 1e-9


def test_components_are_parted_with_mean_zero_and_a_warning():
    weights = np.zeros((9, 9))
    weights[:5, :5], weights[5:, 5:] = path(5), path(4)
    found = fitted(of_edges(weights))
    first = found.state.coordinates[:, 0]
    assert np.ptp(first[:5]) < 1e-12
    assert np.ptp(first[5:]) < 1e-12
    assert first[0] * first[5] < 0
    assert first.sum() == pytest.approx(0, abs=1e-12)
    assert found.state.eigenvalues[0] == 0
    assert "2 components" in found.warnings[0]


def test_a_new_row_is_at_the_weighted_mean_of_the_rows_it_is_joined_to():
    x = np.random.default_rng(3).normal(size=(80, 2))
    params = SpectralLayout(graph="full", width=1.3)
    state = fitted(Data.of(Task.PROJECTION, x), graph="full", width=1.3).state
    own = predict(params, state, x)
    new = np.array([[0.2, -0.4]])
    weights = np.exp(-np.square(x - new).sum(axis=1) / 1.3**2)
    np.testing.assert_allclose(predict(params, state, new)[0], weights @ own / weights.sum(), rtol=1e-9)


def test_few_rows_have_fewer_coordinates():
    found = fitted(Data.of(Task.PROJECTION, np.array([[0.0], [1.0]])), n_components=3)
    assert found.state.coordinates.shape == (2, 3)
    assert found.state.eigenvalues.size == 1
    assert "only 1 eigenvectors" in found.warnings[0]
