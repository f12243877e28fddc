"""k-medoids and k-median: the lowest loss of small tables, no better swap in larger ones, and any dissimilarity."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from app.ml.algorithms import kmedian, kmedoids
from app.ml.contract.algorithm import Context, Data, Meaning, Task
from app.ml.contract.relations import Relations
from app.ml.numerics.clustering import medoids
from app.ml.numerics.clustering.compiled.medoid_swaps import MIN_RELATIVE_GAIN
from app.ml.numerics.clustering.medoids import Dissimilarities, between_points, search

POWERS = {kmedoids: 2, kmedian: 1}
METRICS = {
    "euclidean": {},
    "manhattan": {"metric": "cityblock"},
    "chebyshev": {"metric": "chebyshev"},
    "minkowski": {"metric": "minkowski", "p": 3.0},
    "cosine": {"metric": "cosine"},
    "seuclidean": {"metric": "seuclidean"},
    "mahalanobis": {"metric": "mahalanobis"},
}
both = pytest.mark.parametrize("algorithm", POWERS, ids=lambda module: module.ALGORITHM.params.__name__)


def rows(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 4 * rng.integers(0, 3, size=(n, 1))


def fitted(algorithm, x, square=None, weights=None, **params):
    relations = None if square is None else Relations(Meaning.DISSIMILARITY, square=square)
    made = algorithm.ALGORITHM.params(**params)
    data = Data.of(Task.CLUSTERING, x if square is None else square, weights=weights, relations=relations)
    return made, algorithm.fit(made, data, Context.of(0))


def loss(far, chosen, weights=1.0):
    return float((far[list(chosen)].min(axis=0) * weights).sum())


def swapped(far, chosen):
    """Losses of all sets in which one medoid is another row."""
    for place in range(len(chosen)):
        others = np.delete(far[list(chosen)], place, axis=0).min(axis=0, initial=np.inf)
        yield from np.minimum(far, others).sum(axis=1)


@both
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [5, 8, 10])
def test_the_loss_of_a_small_table_is_the_lowest_of_all_sets_of_rows(algorithm, n, k):
    x, weights = rows(n, seed=10 * n + k), np.linspace(0.5, 3, n)
    far = cdist(x, x) ** POWERS[algorithm]
    lowest = min(loss(far, chosen, weights) for chosen in combinations(range(n), k))
    _, fit = fitted(algorithm, x, weights=weights, n_clusters=k, n_init=10)
    assert fit.state.losses.sum() == pytest.approx(lowest, rel=1e-9, abs=1e-12)
    assert loss(far, fit.state.numbers, weights) == pytest.approx(lowest, rel=1e-9, abs=1e-12)


@both
@pytest.mark.parametrize("metric", METRICS)
def test_no_single_swap_is_better_in_any_metric(algorithm, metric):
    x = rows(120, d=3, seed=3) + 0.5
    own = {"seuclidean": {"V": x.var(axis=0, ddof=1)}, "mahalanobis": {"VI": np.linalg.inv(np.cov(x.T))}}
    far = cdist(x, x, **METRICS[metric], **own.get(metric, {})) ** POWERS[algorithm]
    params, fit = fitted(algorithm, x, n_clusters=6, metric=metric, n_init=1)
    found = loss(far, fit.state.numbers)
    assert fit.converged
    assert fit.state.losses.sum() == pytest.approx(found, rel=1e-9)
    assert min(swapped(far, fit.state.numbers)) >= found * (1 - 1e-9)
    np.testing.assert_array_equal(algorithm.predict(params, fit.state, x), far[fit.state.numbers].argmin(axis=0))


@both
def test_swaps_are_those_of_a_plain_search(algorithm):
    """First improvement, each change of the loss computed from all rows."""
    x, k, power = rows(60, d=3, seed=5), 4, POWERS[algorithm]
    far = cdist(x, x) ** power
    apart = Dissimilarities(between_points(x, 2.0, power), np.ones(60))
    start, _ = medoids._start(apart, k, np.random.default_rng(2))
    chosen, idle, candidate = list(start), 0, 0
    while idle < 60:
        found = loss(far, chosen)
        losses = [loss(far, [*chosen[:place], candidate, *chosen[place + 1 :]]) for place in range(k)]
        idle += 1
        if min(losses) < found * (1 - MIN_RELATIVE_GAIN):
            chosen[int(np.argmin(losses))], idle = candidate, 0
        candidate = (candidate + 1) % 60
    run = search(apart, k, np.random.default_rng(2), 100)
    assert run.medoids.tolist() == sorted(chosen)
    assert run.loss == sorted(run.loss, reverse=True)
    assert run.loss[-1] == pytest.approx(loss(far, chosen), rel=1e-12)


def test_dissimilarities_that_are_not_kept_give_the_same_medoids(monkeypatch):
    _, kept = fitted(kmedian, rows(200), n_clusters=5)
    monkeypatch.setattr(medoids, "KEPT", 0)
    _, computed = fitted(kmedian, rows(200), n_clusters=5)
    for one, other in zip(kept.state[:5], computed.state[:5], strict=True):
        np.testing.assert_array_equal(one, other)


@both
def test_a_square_of_distances_gives_the_medoids_of_the_rows(algorithm):
    x = rows(80, seed=7)
    far = cdist(x, x, "cityblock")
    params, fit = fitted(algorithm, x, square=far, n_clusters=4)
    _, own = fitted(algorithm, x, n_clusters=4, metric="manhattan")
    assert sorted(fit.state.numbers) == sorted(own.state.numbers)
    assert fit.state.losses.sum() == pytest.approx(own.state.losses.sum(), rel=1e-9)
    new = cdist(x[:9] + 0.1, x, "cityblock")
    np.testing.assert_array_equal(algorithm.predict(params, fit.state, new), new[:, fit.state.places].argmin(axis=1))
    distances = algorithm.ALGORITHM.outputs["distance"].compute(params, fit.state, new)
    np.testing.assert_array_equal(distances, new[:, fit.state.places].min(axis=1))


def test_a_dissimilarity_need_not_be_a_distance():
    far = np.random.default_rng(1).uniform(0, 1, (40, 40)) ** 4
    far = np.triu(far, 1) + np.triu(far, 1).T
    _, fit = fitted(kmedian, None, square=far, n_clusters=5)
    assert min(swapped(far, fit.state.numbers)) >= fit.state.losses.sum() * (1 - 1e-9)


def test_means_cost_no_more_than_medoids_and_more_medoids_no_more_than_fewer():
    x = rows(60, seed=4)
    losses = [fitted(kmedoids, x, n_clusters=k)[1].state.losses.sum() for k in (1, 2, 4, 8, 60)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == 0
    assert KMeans(4, n_init=10, random_state=0).fit(x).inertia_ <= losses[2]


@both
def test_equal_rows_count_as_one_and_far_numbers_do_not_overflow(algorithm):
    x = np.array([[0.0], [0.0], [1.0], [5.0], [5.0], [5.0]])
    _, fit = fitted(algorithm, x, n_clusters=5)
    assert sorted(fit.state.numbers.tolist()) == [0, 2, 3]
    assert fit.state.sizes.sum() == 6
    assert fit.warnings == ["There are only 3 distinct rows, so there are 3 clusters."]
    once = sorted(fitted(algorithm, rows(30), n_clusters=3)[1].state.numbers)
    for factor in (1e-200, 1e200):
        assert sorted(fitted(algorithm, rows(30) * factor, n_clusters=3)[1].state.numbers) == once


@both
@pytest.mark.parametrize("value", [0.0, 5e-324, 1.0, 1.7e308])
def test_dissimilarities_that_are_all_the_same_have_a_defined_result(algorithm, value):
    square = value * (1 - np.eye(5))
    params, fit = fitted(algorithm, None, square=square, n_clusters=3)
    assert fit.converged
    assert fit.state.sizes.sum() == 5
    assert len(fit.state.sizes) == (3 if value else 1)
    assert np.isfinite(fit.state.losses).all()
    assert set(algorithm.predict(params, fit.state, square)) == set(range(len(fit.state.sizes)))
