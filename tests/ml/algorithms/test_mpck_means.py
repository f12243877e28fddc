"""k-means with pairs and metrics: its objective by definition, its limits, and what its metrics gain."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

from app.ml.algorithms import pck_means
from app.ml.algorithms.mpck_means import ALGORITHM, MPCKMeans, distance, fit, predict
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.relations import Edges, Meaning, Relations
from app.ml.numerics.clustering.metric_pairs import MetricProblem, metric_lloyd
from app.ml.numerics.clustering.metrics_by_cluster import ClusterMetrics, blend, inverse_factor
from app.ml.numerics.clustering.pair_constraints import Pairs

X = np.random.default_rng(1).normal(size=(90, 3)) * [1, 3, 0.3] + 2 * (np.arange(90) % 3)[:, None]
X = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean())


def edges_of(signed):
    pairs = sorted(signed)
    first, second = (np.array([pair[place] for pair in pairs], np.intp) for place in (0, 1))
    return Edges(first, second, np.array([signed[pair] for pair in pairs], np.float64))


def drawn_pairs(rng, labels, count):
    rows = rng.integers(0, len(labels), (count, 2))
    return {(min(i, j), max(i, j)): 1.0 if labels[i] == labels[j] else -1.0 for i, j in rows.tolist() if i != j}


def fitted(x, signed, **params):
    relations = Relations(Meaning.CONSTRAINT, edges=edges_of(signed))
    data = Data.of(Task.CLUSTERING, x, relations=relations, numbers=np.arange(len(x)))
    params = MPCKMeans(**params)
    return params, fit(params, data, Context.of(0))


def plain(diagonal, shrinkage, k=3):
    return ClusterMetrics.plain(k, 3, shrinkage, diagonal=diagonal)


def by_definition(problem, run, shrinkage):
    """The objective, pair by pair and row by row."""
    total, edges, rows = 0.0, problem.pairs.edges, problem.pairs.rows
    metrics = [f @ f.T if f.shape[1] > 1 else np.diag(f[:, 0] ** 2) for f in run.metrics.factors]

    def square(gap, h):
        return gap @ metrics[h] @ gap

    for x, weight, h in zip(problem.x, problem.weights, run.labels, strict=True):
        determinant = np.linalg.slogdet(metrics[h])[1]
        near = (1 - shrinkage) * square(x - run.centres[h], h)
        total += weight * (near + shrinkage * np.trace(metrics[h]) - determinant)
    for i, j, value in zip(rows[edges.first], rows[edges.second], edges.values, strict=True):
        g, h, gap = run.labels[i], run.labels[j], problem.x[i] - problem.x[j]
        if value > 0 and g != h:
            total += (1 - shrinkage) * value * (square(gap, g) + square(gap, h)) / 2
        if value < 0 and g == h:
            reach = max(4 * square(x, h) for x in problem.x)
            assert reach >= square(gap, h)
            total -= (1 - shrinkage) * value * (reach - square(gap, h))
    return total


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("weight", [0.1, 1.0, 30.0])
def test_the_objective_never_rises_and_is_that_of_the_definition(diagonal, weight):
    rng = np.random.default_rng(2)
    signed = {pair: weight * value for pair, value in drawn_pairs(rng, rng.integers(0, 3, 90), 120).items()}
    problem = MetricProblem(X, rng.uniform(0.5, 2, 90), Pairs.of(edges_of(signed), 90))
    run = metric_lloyd(problem, X[:3], plain(diagonal, 0.1), 100, rng)
    assert len(run.objective) > 2
    assert (np.diff(run.objective) <= 0).all()
    assert run.objective[-1] == pytest.approx(by_definition(problem, run, 0.1), rel=1e-9)


def test_plain_metrics_without_pairs_are_kmeans():
    problem = MetricProblem(X, np.ones(90), Pairs.of(edges_of({}), 90))
    run = metric_lloyd(problem, X[:3], plain(diagonal=False, shrinkage=1 - 1e-12), 100, np.random.default_rng(0))
    np.testing.assert_array_equal(run.labels, KMeans(3, init=X[:3], n_init=1, tol=0).fit(X).labels_)
    np.testing.assert_allclose(run.metrics.factors @ run.metrics.factors.transpose(0, 2, 1), [np.eye(3)] * 3, atol=1e-9)


@pytest.mark.parametrize("form", ["full", "diagonal"])
def test_full_shrinkage_is_kmeans_with_pairs_in_the_plain_metric(form):
    params, fit = fitted(X, {}, n_clusters=3, shrinkage=1, metric_form=form)
    centres = KMeans(3, n_init=20, random_state=0).fit(X).cluster_centers_
    ours = fit.state.centres
    np.testing.assert_allclose(ours[np.argsort(ours[:, 0])], centres[np.argsort(centres[:, 0])], atol=1e-6)
    nearly = fitted(X, {}, n_clusters=3, shrinkage=1 - 1e-9, metric_form=form)[1].state
    np.testing.assert_array_equal(predict(params, fit.state, X), predict(params, nearly, X))
    labels = predict(params, fit.state, X)
    together = {(int(np.flatnonzero(labels == 0)[0]), int(np.flatnonzero(labels == 1)[0])): 1.0}
    params, fit = fitted(X, together, n_clusters=3, shrinkage=1, metric_form=form, must_link_weight=1e6)
    assert fit.state.sizes.size == 3
    assert fit.state.pairs.summary["must_link_violated"] == 0


def test_without_pairs_a_metric_is_the_inverse_of_the_shrunk_covariance():
    problem = MetricProblem(X, np.ones(90), Pairs.of(edges_of({}), 90))
    run = metric_lloyd(problem, X[:3], plain(diagonal=False, shrinkage=0.3), 100, np.random.default_rng(0))
    assert run.converged
    for h, factor in enumerate(run.metrics.factors):
        covariance = np.cov(X[run.labels == h].T, bias=True)
        np.testing.assert_allclose(factor @ factor.T @ (0.7 * covariance + 0.3 * np.eye(3)), np.eye(3), atol=1e-9)


def test_a_blend_of_metrics_is_the_mean_of_their_matrices():
    one, other = (inverse_factor(np.cov(X[rows].T), 1e-9) for rows in (slice(0, 40), slice(40, 90)))
    found = blend(one, other, 0.25)
    np.testing.assert_allclose(found @ found.T, 0.75 * one @ one.T + 0.25 * other @ other.T, atol=1e-9)
    columns = blend(one.diagonal()[:, None], other.diagonal()[:, None], 0.25)
    np.testing.assert_allclose(columns[:, 0] ** 2, 0.75 * one.diagonal() ** 2 + 0.25 * other.diagonal() ** 2)


def test_large_weights_satisfy_pairs_that_can_be_satisfied():
    signed = drawn_pairs(np.random.default_rng(3), np.arange(90) % 3, 60)
    _, result = fitted(X, signed, n_clusters=3, must_link_weight=1e6, cannot_link_weight=1e6, n_init=5)
    assert result.state.pairs.violated.tolist() == [0, 0]
    assert result.state.pairs.counts.sum() == len(signed)
    assert result.warnings == []


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_pairs_and_metrics_come_nearer_to_the_classes(load):
    x, y = load(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    signed = drawn_pairs(np.random.default_rng(0), y, 200)
    params, result = fitted(x, signed, n_clusters=3, n_init=5)
    plain_params = pck_means.PCKMeans(n_clusters=3)
    plain_fit = pck_means.fit(plain_params, Data.of(Task.CLUSTERING, x), Context.of(0))
    before = adjusted_rand_score(y, pck_means.predict(plain_params, plain_fit.state, x))
    assert adjusted_rand_score(y, predict(params, result.state, x)) > before


def test_distances_are_those_of_the_metric_of_the_cluster():
    params, result = fitted(7 * X + 5, {(0, 3): 1.0}, n_clusters=3, n_init=2)
    labels = predict(params, result.state, 7 * X + 5)
    gaps = (7 * X + 5 - result.state.centres[labels]) * result.state.unit
    metrics = result.state.factors @ result.state.factors.transpose(0, 2, 1)
    expected = np.sqrt(np.einsum("ij,ijk,ik->i", gaps, metrics[labels], gaps))
    np.testing.assert_allclose(distance(params, result.state, 7 * X + 5), expected, rtol=1e-9)


def test_the_summary_lists_violated_pairs_and_weights_of_columns():
    signed = {(0, 3): 1.0, (3, 6): 1.0, (0, 1): -1.0}
    params, result = fitted(X, signed, n_clusters=1, n_init=1, metric_form="diagonal")
    summary = ALGORITHM.summary(params, result.state)
    assert (summary["must_link_violated"], summary["cannot_link_violated"]) == (0, 1)
    assert [sorted(pair["rows"]) for pair in summary["violated_pairs"]] == [[0, 1]]
    assert np.shape(summary["column_weights"]) == (1, 3)
    assert result.warnings == ["1 of 3 pairs are violated: the summary lists them."]
