"""Autoencoders: principal components as a case, codes of curves, layers one by one, and corrupted rows (LION 9.3)."""

import numpy as np
import pytest

from app.ml.algorithms import autoencoder as coder
from app.ml.contract.algorithm import ColumnUnits, Context, Data, Task
from app.ml.numerics.networks.corruption import Corruption

RNG = np.random.default_rng(2)
ANGLES = RNG.uniform(0, 2 * np.pi, 150)
CIRCLE = np.column_stack([np.cos(ANGLES), np.sin(ANGLES), np.cos(2 * ANGLES)]) + 0.02 * RNG.normal(size=(150, 3))


def fit(x, seed=0, **params):
    own = coder.Autoencoder(**params)
    return own, coder.fit(own, Data.of(Task.PROJECTION, x), Context.of(seed))


def error(own, state, x):
    return np.mean(coder.lost(own, state, x) ** 2)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_identity_units_reach_the_error_of_principal_components(p):
    x = RNG.normal(size=(100, 5)) @ RNG.normal(size=(5, 5))
    own, found = fit(
        x, n_components=p, hidden_layers=[], activation="identity", optimizer="lbfgs", l2=0, tol=1e-7, max_iter=3000
    )
    discarded = np.linalg.eigvalsh(np.cov(x.T, bias=True))[: 5 - p].sum()
    assert error(own, found.state, x) == pytest.approx(discarded, rel=1e-4)


def test_longer_codes_lose_less_and_a_curve_less_than_a_line():
    errors = []
    for p in (1, 2):
        own, found = fit(CIRCLE, n_components=p, optimizer="lbfgs", l2=0)
        errors.append(error(own, found.state, CIRCLE))
    assert errors[1] < errors[0]
    assert errors[0] < np.linalg.eigvalsh(np.cov(CIRCLE.T, bias=True))[:2].sum()


def test_codes_decode_to_the_reconstruction():
    own, found = fit(CIRCLE)
    again = coder.inverse(own, found.state, coder.predict(own, found.state, CIRCLE))
    np.testing.assert_allclose(
        np.linalg.norm(CIRCLE - again, axis=1), coder.lost(own, found.state, CIRCLE), rtol=1e-9, atol=1e-12
    )


def test_anomalies_are_the_share_that_is_restored_worst():
    own, found = fit(CIRCLE, contamination=0.1)
    assert coder.anomaly(own, found.state, CIRCLE).mean() == pytest.approx(0.1, abs=0.01)
    assert coder.anomaly(own, found.state, 5 * CIRCLE).mean() > 0.9


def test_layers_are_trained_one_after_another_first():
    deep = {"hidden_layers": [8, 5], "n_components": 2, "epochs": 20}
    stacked, plain = (fit(CIRCLE, layerwise=layerwise, **deep) for layerwise in (True, False))
    assert stacked[1].curves["loss"][0] < plain[1].curves["loss"][0]
    assert stacked[1].state.network.sizes == (3, 8, 5, 2, 5, 8, 3)


def test_no_noise_is_no_corruption():
    def weights(**params):
        return fit(CIRCLE, epochs=5, **params)[1].state.network.flat.tobytes()

    for kind in ("gaussian", "masking", "flipping"):
        assert weights(corruption=kind) == weights()
        assert weights(corruption=kind, noise=0.3) != weights()


def test_a_denoising_autoencoder_brings_rows_nearer_to_the_clean_ones():
    x = RNG.normal(size=(400, 2)) @ RNG.normal(size=(2, 8))
    own, found = fit(x, n_components=2, noise=0.3)
    noisy = x + 0.3 * x.std() * np.random.default_rng(0).normal(size=x.shape)
    restored = coder.inverse(own, found.state, coder.predict(own, found.state, noisy))
    assert np.linalg.norm(restored - x) < 0.7 * np.linalg.norm(noisy - x)


def test_corruption_changes_the_share_of_values_that_it_states():
    x = (RNG.random((5000, 4)) < 0.5).astype(np.float32)
    mirror = x.min(axis=0) + x.max(axis=0)
    flipped = Corruption("flipping", 0.2, mirror).of(x, np.random.default_rng(0))
    assert {*np.unique(flipped)} == {0, 1}
    assert (flipped != x).mean() == pytest.approx(0.2, abs=0.01)
    masked = Corruption("masking", 0.2, mirror).of(x + 1, np.random.default_rng(0))
    assert (masked == 0).mean() == pytest.approx(0.2, abs=0.01)
    noisy = Corruption("gaussian", 0.2, mirror).of(x, np.random.default_rng(0))
    assert (noisy - x).std() == pytest.approx(0.2, abs=0.01)


def test_a_fit_starts_where_another_ended_in_other_units():
    own, found = fit(CIRCLE, optimizer="lbfgs")
    units = ColumnUnits(np.array([1.0, 0.0, 2.0]), np.full(3, 4.0))
    moved = coder.moved(found.state, units)
    np.testing.assert_allclose(
        coder.predict(own, moved, units.values(CIRCLE)), coder.predict(own, found.state, CIRCLE), rtol=1e-9, atol=1e-12
    )
    again = coder.fit_from(own, found.state, Data.of(Task.PROJECTION, CIRCLE), Context.of(1))
    assert again.curves["loss"][0] <= found.curves["loss"][-1] * 1.001


def test_rows_that_are_all_the_same_are_restored():
    own, found = fit(np.full((5, 3), 0.1))
    np.testing.assert_array_equal(coder.lost(own, found.state, np.full((5, 3), 0.1)), 0)
