"""Distortions of clusters beside those of all pairs of rows."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from app.ml.numerics.clustering import distortion as module
from app.ml.numerics.clustering.distortion import distortion


def clusters(seed, n=300, d=3, k=4):
    rng = np.random.default_rng(seed)
    x, labels = rng.standard_t(3, size=(n, d)) + 1e3, np.append(np.arange(k - 1), rng.integers(0, k - 1, n - k + 1))
    return x, rng.uniform(0.5, 2, n), labels, rng.normal(size=(k, d)) + 1e3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d", [1, 3, 30])
def test_they_are_those_of_all_pairs(seed, d):
    x, weights, labels, centres = clusters(seed, d=d)
    found = distortion(x, weights, labels, centres)
    for j in range(3):
        mine, mass, far = x[labels == j], weights[labels == j], np.linalg.norm(x[labels == j] - centres[j], axis=1)
        pairs = squareform(pdist(mine))
        assert found.sizes[j] == len(mine)
        assert found.inertias[j] == pytest.approx(mass @ far**2)
        assert found.pairwise[j] == pytest.approx((np.outer(mass, mass) * pairs**2).sum() / 2)
        assert found.radii[j] == pytest.approx(far.max())
        assert found.diameters[j] == pytest.approx(pairs.max())
    assert [field[3] for field in found] == [0, 0, 0, 0, 0]


def test_a_diameter_of_too_many_pairs_is_unknown(monkeypatch):
    monkeypatch.setattr(module, "PAIRS", 10)
    found = distortion(*clusters(0, d=30))
    assert np.isnan(found.diameters[:3]).all()
    assert found.diameters[3] == 0
