"""Splitting reaches so many centres, and a shift of a centre lowers the inertia."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn import cluster

from app.ml.numerics.clustering.lloyd import lloyd
from app.ml.numerics.clustering.splitting import shifted, split_centres


def grid(seed, side=4):
    """Sixteen round groups, far from each other."""
    rng = np.random.default_rng(seed)
    centres = np.stack(np.meshgrid(*[10.0 * np.arange(side)] * 2), axis=-1).reshape(-1, 2)
    return centres[np.repeat(np.arange(side**2), 20)] + rng.normal(size=(20 * side**2, 2)), centres


@pytest.mark.parametrize("k", [1, 2, 5, 8, 16])
def test_splitting_reaches_every_number(k):
    x, _ = grid(0)
    centres = split_centres(x, np.ones(len(x)), k, np.random.default_rng(0), 100)
    assert centres.shape == (k, 2)
    if k == 1:
        np.testing.assert_allclose(centres[0], x.mean(axis=0))


def test_splitting_stops_at_the_distinct_rows():
    x = np.repeat([[0.0, 1.0], [2.0, 2.0], [5.0, 0.0]], 4, axis=0)
    centres = split_centres(x, np.ones(12), 7, np.random.default_rng(0), 100)
    assert sorted(map(tuple, centres)) == [(0, 1), (2, 2), (5, 0)]


@pytest.mark.parametrize("max_iter", [1, 2, 100])
def test_a_shift_never_raises_the_inertia(max_iter):
    for seed in range(5):
        x, _ = grid(seed)
        rng, weights = np.random.default_rng(seed), np.random.default_rng(seed).uniform(0.5, 2, len(x))
        run = lloyd(x, weights, x[rng.choice(len(x), 16, replace=False)], max_iter)
        end = shifted(x, weights, run, max_iter, rng)
        assert end.inertia[-1] <= run.inertia[-1]
        assert all(after <= before for before, after in pairwise(end.inertia))
        assert len(end.inertia) <= max_iter + 1
        assert end.inertia[-1] == pytest.approx(weights @ ((x - end.centres[end.labels]) ** 2).sum(axis=1))


def test_shifts_find_all_groups_that_rows_at_random_miss():
    """Two centres in one group and one for two groups, as random rows leave them, are a local optimum of Lloyd's."""
    missed = 0
    for seed in range(5):
        x, groups = grid(seed)
        rng, weights = np.random.default_rng(seed), np.ones(len(x))
        run = lloyd(x, weights, x[rng.choice(len(x), 16, replace=False)], 100)
        end = shifted(x, weights, run, 1000, rng)
        best = cluster.KMeans(16, init=groups, n_init=1, tol=0).fit(x).inertia_
        missed += run.inertia[-1] > 1.5 * best
        assert end.inertia[-1] == pytest.approx(best)
    assert missed >= 4
