"""Soft k-means: identities of the memberships, its two limits, the mixture of normal densities that it is."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn import cluster, datasets, mixture

from app.ml.algorithms.soft_kmeans import SoftKMeans, State, fit, memberships, objective, predict, summary
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.clustering.soft_assignment import Pace, Problem, batch, free_energy, online


def of(x, **more):
    return Data.of(Task.CLUSTERING, np.asarray(x, float), **more)


def blobs(seed=0, rows=90):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 2)) + 3 * rng.integers(0, 2, size=(rows, 2))


def shares(centres, x, stiffness=1.0):
    centres = np.asarray(centres, float)
    state = State(centres, np.zeros(len(centres), int), np.zeros(len(centres)))
    return memberships(SoftKMeans(stiffness=stiffness), state, np.asarray(x, float))


def test_memberships_are_the_softmax_of_distances():
    x, centres = blobs(), blobs(1, 5)
    squares = ((x[:, None] - centres) ** 2).sum(axis=2)
    found = shares(centres, x, 0.7)
    np.testing.assert_allclose(found, softmax(-0.7 * squares, axis=1), rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_a_row_equally_far_from_all_belongs_to_each_alike():
    np.testing.assert_allclose(shares([[1, 0], [-1, 0], [0, 1], [0, -1]], [[0, 0]]), 0.25)


def test_large_distances_underflow_nowhere():
    found = shares([[0.0], [1.0]], [[1e6], [-1e6]], 1e3)
    np.testing.assert_array_equal(found, [[0, 1], [1, 0]])
    assert free_energy(np.array([[1e6]]), np.ones(1), np.array([[0.0], [1.0]]), 1.0) == pytest.approx((1e6 - 1) ** 2)


@pytest.mark.parametrize("stiffness", [1e-9, 0.3, 1e9])
def test_the_free_energy_is_that_of_the_sum_of_exponentials(stiffness):
    x, centres = blobs(), blobs(1, 5)
    squares = ((x[:, None] - centres) ** 2).sum(axis=2)
    found = free_energy(x, np.ones(90), centres, stiffness)
    if stiffness == 1e-9:
        assert found == pytest.approx(squares.mean(axis=1).sum())
    else:
        assert found == pytest.approx((np.log(5) - logsumexp(-stiffness * squares, axis=1)).sum() / stiffness)
    if stiffness == 1e9:
        assert found == pytest.approx(squares.min(axis=1).sum())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("stiffness", [0.2, 1.0, 20.0])
def test_the_free_energy_never_rises_and_ends_at_a_fixed_point(seed, stiffness):
    x, weights = blobs(seed), np.random.default_rng(seed).uniform(0.5, 2, 90)
    params, data = SoftKMeans(n_clusters=4, stiffness=stiffness, n_init=2), of(x, weights=weights)
    found = fit(params, data, Context.of(seed))
    curve = found.curves["objective"]
    assert found.converged
    assert all(after <= before for before, after in pairwise(curve))
    assert objective(params, found.state, data) == pytest.approx(curve[-1])
    share = weights[:, None] * memberships(params, found.state, x)
    np.testing.assert_allclose(share.T @ x / share.sum(axis=0)[:, None], found.state.centres, atol=1e-5)
    np.testing.assert_allclose(found.state.masses, share.sum(axis=0))


def test_very_stiff_it_is_kmeans():
    x = datasets.load_iris().data
    first = x[[0, 60, 120]]
    hard = cluster.KMeans(3, init=first, n_init=1, tol=0).fit(x)
    soft = batch(Problem(x, np.ones(150), 1e6, 1e-9), first, 1000)
    np.testing.assert_allclose(soft.centres, hard.cluster_centers_, rtol=1e-6)
    assert soft.objective[-1] == pytest.approx(hard.inertia_ + 150 * np.log(3) / 1e6, rel=1e-9)


def test_the_free_energy_is_the_likelihood_of_equal_spherical_normals():
    """−βF = log-likelihood of the mixture with variance 1/(2β), less the norming of its densities."""
    x, stiffness = blobs(), 0.5
    params = SoftKMeans(n_clusters=3, stiffness=stiffness)
    state = fit(params, of(x), Context.of(0)).state
    peer = mixture.GaussianMixture(3, covariance_type="spherical")
    peer.weights_, peer.means_ = np.full(3, 1 / 3), state.centres
    peer.covariances_ = np.full(3, 1 / (2 * stiffness))
    peer.precisions_cholesky_ = peer.covariances_**-0.5
    norming = len(x) * np.log(np.pi / stiffness)
    assert -stiffness * objective(params, state, of(x)) - norming == pytest.approx(peer.score_samples(x).sum())
    np.testing.assert_allclose(memberships(params, state, x), peer.predict_proba(x), rtol=1e-6)


def test_an_online_pass_of_small_steps_is_a_step_of_a_batch():
    """K8: η Σ membership · (x − p), of the centres before the pass."""
    x, centres, rate = blobs(), blobs(1, 4), 1e-7
    share = shares(centres, x, 0.5)
    sums = share.T @ x - share.sum(axis=0)[:, None] * centres
    run = online(Problem(x, np.ones(90), 0.5, 0.0), centres, Pace(rate, 1), np.random.default_rng(0))
    np.testing.assert_allclose((run.centres - centres) / rate, sums, rtol=1e-3, atol=1e-3)


def test_online_comes_near_the_batch():
    x = blobs(rows=400)
    params = SoftKMeans(n_clusters=3, n_init=5, stiffness=0.5)
    best = fit(params, of(x), Context.of(0)).curves["objective"][-1]
    near = fit(params.model_copy(update={"solver": "online"}), of(x), Context.of(0))
    assert best * (1 - 1e-9) <= near.curves["objective"][-1] <= best * 1.001
    assert len(near.curves["objective"]) == 21


def test_online_counts_a_weight_as_so_many_rows():
    """A row of weight 3 is one of weight 1 three times, if its membership does not change."""

    def end(x, weights):
        problem = Problem(np.array(x), np.array(weights), 1.0, 0.0)
        return online(problem, np.zeros((1, 1)), Pace(0.1, 1), np.random.default_rng(0)).centres[0, 0]

    one, three = end([[1.0]], [3.0]), end([[1.0]] * 3, [1.0] * 3)
    assert one == pytest.approx(three) == pytest.approx(1 - 0.9**3)


@pytest.mark.parametrize("solver", ["batch", "online"])
def test_row_order_changes_nothing(solver):
    x, order = blobs(4), np.random.default_rng(4).permutation(90)
    params = SoftKMeans(n_clusters=5, solver=solver, n_init=2, epochs=3)
    one, other = (fit(params, of(rows), Context.of(0)).state for rows in (x, x[order]))
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


def test_predictions_are_the_largest_memberships():
    x = blobs()
    params = SoftKMeans(n_clusters=4)
    state = fit(params, of(x), Context.of(0)).state
    np.testing.assert_array_equal(predict(params, state, x), memberships(params, state, x).argmax(axis=1))
    clusters = summary(params, state)["clusters"]
    assert sum(one["size"] for one in clusters) == 90
    assert sum(one["mass"] for one in clusters) == pytest.approx(90)


def test_fewer_distinct_rows_than_clusters():
    found = fit(SoftKMeans(n_clusters=5), of(np.repeat([[0.0], [9.0]], 3, axis=0)), Context.of(0))
    assert len(found.state.centres) == 2
    assert len(found.warnings) == 1
