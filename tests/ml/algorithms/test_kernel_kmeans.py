"""Kernel k-means: published rings, k-means for the linear kernel, explicit sums of small tables, given kernels."""

from itertools import pairwise, product

import numpy as np
import pytest
from sklearn import datasets, metrics

from app.ml.algorithms.kernel_kmeans import KernelKMeans, fit, predict, summary
from app.ml.contract.algorithm import Context, Data, Meaning, Task
from app.ml.contract.relations import Relations
from app.ml.numerics.clustering import kernel_descent
from app.ml.numerics.clustering.kernel_descent import Problem, descend, drawn_labels, mean_products, spread_labels
from app.ml.numerics.clustering.lloyd import lloyd, means
from app.ml.numerics.kernel_functions.given_kernel import Given
from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf


def of(x, **more):
    return Data.of(Task.CLUSTERING, np.asarray(x, float), **more)


def rings(seed, rows=200, noise=0.08):
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, rows), np.repeat([1, 4], rows // 2)
    x = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return x + noise * rng.normal(size=(rows, 2)), np.repeat([0, 1], rows // 2)


def share_right(params, seed):
    x, truth = rings(seed)
    labels = predict(params, fit(params, of(x), Context.of(0)).state, x)
    return max((labels == truth).mean(), (labels != truth).mean())


def inertia_of(gram, labels, weights):
    """The sum of squared distances within clusters by all pairs, over twice their mass."""
    apart = np.diag(gram)[:, None] + np.diag(gram) - 2 * gram
    total = 0.0
    for label in np.unique(labels):
        rows = labels == label
        total += weights[rows] @ apart[np.ix_(rows, rows)] @ weights[rows] / (2 * weights[rows].sum())
    return total


@pytest.mark.parametrize("init", ["greedy-k-means++", "random-partition"])
@pytest.mark.parametrize("seed", range(4))
def test_two_rings_are_found_at_gamma_one_half(init, seed):
    assert share_right(KernelKMeans(n_clusters=2, gamma=0.5, n_init=30, init=init), seed) == 1


@pytest.mark.parametrize(("gamma", "share"), [(0.05, 0.74), (2.0, 0.69)])
def test_two_rings_are_missed_at_other_gammas(gamma, share):
    """The best of 30 starts takes 74 % and 69 % right, in the catalogue of methods."""
    found = share_right(KernelKMeans(n_clusters=2, gamma=gamma, n_init=30, init="random-partition"), 0)
    assert found == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_the_linear_kernel_makes_the_steps_of_k_means(seed):
    rng = np.random.default_rng(seed)
    x, weights = datasets.load_iris().data[:, :3] + 1e-6 * rng.normal(size=(150, 3)), rng.uniform(0.5, 2, 150)
    start = drawn_labels(Problem(Linear(), x, weights), 3, rng)
    (found,) = descend(Problem(Linear(), x, weights), [start], 300)
    peer = lloyd(x, weights, means(x, weights, start, 3), 300)
    np.testing.assert_array_equal(found.labels, peer.labels)
    assert found.inertia[-1] == pytest.approx(peer.inertia[-1], rel=1e-9)
    assert found.converged


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kernel", [Linear(), Rbf(np.array([0.3])), Rbf(np.array([5.0]))])
def test_the_objective_is_that_of_all_pairs_and_never_rises(kernel, seed):
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(80, 3)), rng.uniform(0.5, 2, 80)
    problem, gram = Problem(kernel, x, weights), kernel.matrix(x, x)
    for found in descend(problem, [drawn_labels(problem, 6, rng), spread_labels(problem, 6, rng, 3)], 300):
        assert all(after < before for before, after in pairwise(found.inertia))
        assert found.inertia[-1] == pytest.approx(inertia_of(gram, found.labels, weights))
        best = [inertia_of(gram, np.where(np.arange(80) == 7, label, found.labels), weights) for label in range(6)]
        assert found.converged
        assert len(found.squares) == found.labels.max() + 1
        assert min(best) >= found.inertia[-1] * 0.95


def test_the_lowest_objective_of_a_small_table_is_found():
    x = np.random.default_rng(3).normal(size=(7, 2))
    gram = Rbf(np.array([0.5])).matrix(x, x)
    lowest = min(inertia_of(gram, np.array((0, *rest)), np.ones(7)) for rest in product(range(3), repeat=6))
    params = KernelKMeans(n_clusters=3, gamma=0.5, n_init=200, init="random-partition")
    found = fit(params, of(x), Context.of(0))
    assert found.state.inertia == pytest.approx(lowest)
    assert found.curves["inertia"][-1] == found.state.inertia


def test_values_of_the_kernel_are_made_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(100, 3)), rng.integers(0, 4, 100)
    problem = Problem(Rbf(np.array([0.2])), x, rng.uniform(1, 2, 100))
    whole = mean_products(problem, labels, x)
    monkeypatch.setattr(kernel_descent, "BLOCK", 700)
    np.testing.assert_allclose(mean_products(problem, labels, x), whole, rtol=1e-12)


def test_starts_at_once_are_starts_one_by_one():
    rng = np.random.default_rng(1)
    problem = Problem(Rbf(np.array([0.5])), rng.normal(size=(60, 2)), np.ones(60))
    starts = [drawn_labels(problem, 4, rng) for _ in range(5)]
    for together, start in zip(descend(problem, starts, 300), starts, strict=True):
        (alone,) = descend(problem, [start], 300)
        np.testing.assert_array_equal(alone.labels, together.labels)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "anova"])
def test_training_rows_and_new_ones_go_to_the_nearest_mean(kernel):
    x = datasets.load_iris().data
    params = KernelKMeans(n_clusters=3, kernel=kernel, n_init=5)
    fitted = fit(params, of(x), Context.of(0))
    state, new = fitted.state, x[:40] + 0.3
    rows = state.rows + state.origin
    np.testing.assert_array_equal(predict(params, state, rows), state.labels)
    assert state.sizes.sum() == 150
    function = params.function(state.gamma)
    apart = np.empty((40, 3))
    for label in range(3):
        some = state.labels == label
        share = state.weights[some] / state.weights[some].sum()
        length = share @ function.matrix(rows[some], rows[some]) @ share
        apart[:, label] = length - 2 * function.matrix(new, rows[some]) @ share
    np.testing.assert_array_equal(predict(params, state, new), apart.argmin(axis=1))


def test_clusters_of_iris_are_near_its_species():
    iris = datasets.load_iris()
    params = KernelKMeans(n_clusters=3)
    labels = predict(params, fit(params, of(iris.data), Context.of(0)).state, iris.data)
    assert metrics.adjusted_rand_score(iris.target, labels) > 0.7


def test_a_given_kernel_is_that_of_the_columns():
    x, _ = rings(0, rows=60)
    gram = Rbf(np.array([0.5])).matrix(x, x)
    square = Data.of(Task.CLUSTERING, gram, relations=Relations(Meaning.KERNEL, square=gram))
    params = KernelKMeans(n_clusters=2, gamma=0.5, n_init=20)
    given, own = fit(params, square, Context.of(0)).state, fit(params, of(x), Context.of(0)).state
    new = rings(5, rows=30)[0]
    assert given.inertia == pytest.approx(own.inertia)
    assert metrics.adjusted_rand_score(predict(params, given, gram), predict(params, own, x)) == 1
    beside = Rbf(np.array([0.5])).matrix(new, x)
    assert metrics.adjusted_rand_score(predict(params, given, beside), predict(params, own, new)) == 1
    assert summary(params, given)["gamma"] is None


def test_a_kernel_that_is_not_positive_semidefinite_ends_before_the_objective_rises():
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(40, 40))
    problem = Problem(Given(drawn + drawn.T), np.arange(40.0)[:, None], np.ones(40))
    for found in descend(problem, [drawn_labels(problem, 5, rng) for _ in range(10)], 300):
        assert found.converged
        assert all(after < before for before, after in pairwise(found.inertia))


def test_gamma_is_one_over_the_columns_and_the_variance_of_all_numbers():
    x = np.random.default_rng(0).normal(size=(50, 3)) * [1, 2, 5]
    params = KernelKMeans(n_clusters=2)
    state = fit(params, of(x), Context.of(0)).state
    assert state.gamma == pytest.approx(1 / (3 * x.var()))
    assert summary(params, state)["gamma"] == state.gamma
    assert summary(KernelKMeans(kernel="linear"), state)["gamma"] is None


def test_rows_far_from_zero_lose_no_digits():
    """Against the sums of all pairs of the same rows about their mean."""
    x, far = np.random.default_rng(2).normal(size=(60, 2)), 2.0**26
    moved = (x + far) - far
    params = KernelKMeans(n_clusters=3, kernel="linear")
    state = fit(params, of(moved + far), Context.of(0)).state
    labels = predict(params, state, moved + far)
    assert state.inertia == pytest.approx(inertia_of(moved @ moved.T, labels, np.ones(60)), rel=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_fewer_distinct_rows_than_clusters(kernel):
    found = fit(KernelKMeans(n_clusters=5, kernel=kernel), of(np.repeat([[0.0], [9.0]], 3, axis=0)), Context.of(0))
    assert found.state.sizes.tolist() == [3, 3]
    assert found.state.inertia == pytest.approx(0, abs=1e-12)
    assert len(found.warnings) == 1
