"""Spectral clustering: published numbers and identities of graph cuts, and agreement with scikit-learn."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csgraph
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score

from app.ml.algorithms.agglomerative import ALGORITHM as AGGLOMERATIVE
from app.ml.algorithms.kmeans import ALGORITHM as KMEANS
from app.ml.algorithms.spectral import Spectral, fit, predict, summary
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Context, Data, Meaning, Task
from app.ml.contract.relations import Edges, Relations
from app.ml.numerics.graphs.graph_cuts import cuts
from app.ml.numerics.graphs.similarity_graph import made
from app.ml.numerics.graphs.spectrum_view import eigengap_ratio

ROWS = np.array([[0.256 * i, float(side)] for side in (0, 1) for i in range(40)])
SIDES = np.repeat([0, 1], 40)


def rows(x, **more):
    return Data.of(Task.CLUSTERING, x, **more)


def square(similarities):
    return rows(similarities, relations=Relations(Meaning.SIMILARITY, square=similarities))


def edges(similarities):
    """The same graph as edges between items."""
    first, second = np.nonzero(np.triu(similarities, 1))
    given = Edges(first, second, similarities[first, second])
    relations = Relations(Meaning.SIMILARITY, edges=given, by_item=True)
    return rows(np.arange(len(similarities), dtype=float)[:, None], relations=relations)


def fitted(data, seed=0, **params):
    return fit(Spectral(**params), data, Context.of(seed)).state


def cliques():
    """Two cliques of five nodes, one of them with a node on weak edges, and three bridges (UML, section 22.3)."""
    weights = np.zeros((10, 10))
    weights[:5, :5] = weights[5:, 5:] = 1.0
    weights[0, 1:5] = weights[1:5, 0] = 0.3
    for i, j in [(1, 5), (2, 6), (3, 7)]:
        weights[i, j] = weights[j, i] = 0.5
    np.fill_diagonal(weights, 0.0)
    return weights


def drawn_weights(n, seed):
    weights = np.random.default_rng(seed).uniform(0, 1, (n, n))
    weights = np.triu(weights, 1) * (np.triu(weights, 1) > 0.4)
    return weights + weights.T


def laplacian(weights):
    return np.diag(weights.sum(axis=1)) - weights


def rings(seed=0):
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, 200), np.repeat([1.0, 4.0], 100)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) + 0.08 * rng.normal(size=(200, 2))


@pytest.mark.parametrize("laplacian_kind", ["normalised", "unnormalised"])
@pytest.mark.parametrize("width", [0.5, 1.0])
def test_two_rings_are_the_clusters(width, laplacian_kind):
    state = fitted(rows(rings()), n_clusters=2, graph="full", width=width, laplacian=laplacian_kind)
    own = predict(Spectral(), state, rings())
    assert adjusted_rand_score(np.repeat([0, 1], 100), own) == 1
    params = Spectral(n_clusters=2, graph="full", width=width)
    assert adjusted_rand_score(np.repeat([0, 1], 100), predict(params, state, rings(seed=7))) == 1


@pytest.mark.parametrize("given", [square, edges])
def test_least_ratio_cut_of_two_cliques_where_the_least_cut_is_one_node(given):
    report = summary(Spectral(), fitted(given(cliques()), n_clusters=2, laplacian="unnormalised"))
    assert report["sizes"] == [5, 5]
    assert report["ratio_cut"] == pytest.approx(0.6)
    assert report["cut"] == pytest.approx(3.0)
    graph, alone = made(Spectral(), given(cliques())), np.array([0] + [1] * 9)
    assert cuts(graph, alone).cut == pytest.approx(2.4)
    assert cuts(graph, alone).ratio_cut > 0.6


def test_sign_of_the_fiedler_vector_parts_the_cliques():
    state = fitted(square(cliques()), n_clusters=2, laplacian="unnormalised")
    sign = state.coordinates[:, 1] > 0
    np.testing.assert_array_equal(sign == sign[0], np.arange(10) < 5)


@pytest.mark.parametrize("seed", range(3))
def test_ratio_cut_is_a_trace_and_no_partition_is_below_the_smallest_eigenvalues(seed):
    weights, k = drawn_weights(8, seed), 3
    state = fitted(square(weights), n_clusters=k, laplacian="unnormalised")
    np.testing.assert_allclose(state.eigenvalues, np.linalg.eigvalsh(laplacian(weights)), atol=1e-12)
    assert summary(Spectral(), state)["trace_residual"] < 1e-10
    graph, bound = made(Spectral(), square(weights)), state.eigenvalues[:k].sum()
    for rest in product(range(k), repeat=7):
        labels = np.array([0, *rest])
        if len(set(rest) | {0}) < k:
            continue
        indicator = np.eye(k)[labels] / np.sqrt(np.bincount(labels))
        found = cuts(graph, labels).ratio_cut
        assert found == pytest.approx(np.trace(indicator.T @ laplacian(weights) @ indicator), abs=1e-10)
        assert bound <= found + 1e-10


@pytest.mark.parametrize("kind", ["normalised", "unnormalised"])
def test_as_many_eigenvalues_are_zero_as_there_are_components(kind):
    weights = np.zeros((14, 14))
    for part in (slice(0, 6), slice(6, 10), slice(10, 13)):  # and a node without edges
        weights[part, part] = 1.0
    np.fill_diagonal(weights, 0.0)
    state = fitted(square(weights), n_clusters=4, laplacian=kind)
    assert ((state.eigenvalues == 0).sum(), state.components) == (4, 4)
    assert state.eigenvalues[4] > 0.1
    assert summary(Spectral(), state)["cut"] == 0
    merged = fit(Spectral(n_clusters=2, laplacian=kind), square(weights), Context.of(0))
    assert np.bincount(merged.state.labels).tolist() == [6, 8]
    assert "4 components" in merged.warnings[0]


def test_another_order_of_the_nodes_gives_the_same_clusters():
    weights = np.exp(-np.square(rings()[:, None] - rings()).sum(axis=2) / 0.25)
    order = np.random.default_rng(1).permutation(200)
    one = fitted(square(weights), n_clusters=2).labels
    other = fitted(square(np.ascontiguousarray(weights[np.ix_(order, order)])), n_clusters=2).labels
    assert adjusted_rand_score(one[order], other) == 1


def test_clusters_are_those_of_scikit_learn():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 2)) + 2.2 * np.array([[0, 0], [2, 0], [1, 2]])[np.arange(400) % 3]
    weights = np.exp(-np.square(x[:, None] - x).sum(axis=2))
    theirs = SpectralClustering(3, affinity="precomputed", random_state=0).fit_predict(weights)
    assert adjusted_rand_score(theirs, fitted(square(weights), n_clusters=3).labels) > 0.99
    ours = fitted(rows(x), n_clusters=3, graph="full", width=1.0)
    assert adjusted_rand_score(theirs, predict(Spectral(), ours, x)) > 0.99


@pytest.mark.parametrize("columns", [2, 12])
def test_eigenvalues_of_sparse_graphs_are_those_of_the_dense_matrix(columns):
    """With few columns a graph is deep and factorised, with many it is not."""
    x = np.random.default_rng(4).normal(size=(700, columns))
    data = rows(x)
    for kind in ("normalised", "unnormalised"):
        state = fitted(data, n_clusters=3, laplacian=kind, n_init=1)
        weights = state.graph.graph().weights.toarray()
        roots = np.sqrt(weights.sum(axis=1)) if kind == "normalised" else np.ones(700)
        dense = np.linalg.eigvalsh(laplacian(weights) / roots / roots[:, None])
        np.testing.assert_allclose(state.eigenvalues, dense[: state.eigenvalues.size], atol=1e-8)


@pytest.mark.parametrize("graph", ["full", "epsilon"])
def test_a_row_of_weight_two_is_that_row_twice(graph):
    x = np.random.default_rng(6).normal(size=(30, 2)) + 4 * (np.arange(30) % 2)[:, None]
    times = 1 + np.arange(30) % 3
    params = {"n_clusters": 2, "graph": graph, "width": 2.0, "radius": 2.5, "laplacian": "unnormalised"}
    once, copies = fitted(rows(x, weights=times), **params), fitted(rows(np.repeat(x, times, axis=0)), **params)
    np.testing.assert_array_equal(predict(Spectral(), once, x), predict(Spectral(), copies, x))
    scale = times.mean()  # weights are 1 on average
    assert once.eigenvalues[1] * scale == pytest.approx(copies.eigenvalues[1], rel=1e-9)


@pytest.mark.parametrize(("name", "more"), [("nearest_neighbors", {"n_neighbors": 4}), ("epsilon", {"radius": 0.8})])
def test_two_rows_of_points_are_clusters_where_means_take_halves(name, more):
    data = rows(ROWS)
    own = predict(Spectral(), fitted(data, n_clusters=2, graph=name, **more), ROWS)
    assert adjusted_rand_score(SIDES, own) == 1
    tree = AGGLOMERATIVE.params(n_clusters=2, linkage="single")
    linked = AGGLOMERATIVE.fit(tree, data, nested.context(0)).state.labels
    assert adjusted_rand_score(SIDES, linked) == 1
    means = KMEANS.fit(KMEANS.params(n_clusters=2, n_init=20), data, nested.context(0)).state
    halves = KMEANS.predict(KMEANS.params(), means, ROWS)
    assert adjusted_rand_score(ROWS[:, 0] > ROWS[:, 0].mean(), halves) == 1


def test_new_rows_join_the_cluster_to_which_their_edges_weigh_most():
    weights = cliques() + np.eye(10)
    state = fitted(square(weights), n_clusters=2)
    own = predict(Spectral(), state, weights)
    np.testing.assert_array_equal(own, state.labels)
    new = np.array([[0.0] * 5 + [0.4, 0.4, 0, 0, 0], [0.9, 0, 0, 0, 0, 0.3, 0.3, 0, 0, 0], [0.0] * 10])
    assert predict(Spectral(), state, new).tolist() == [own[5], own[0], own[0]]


def test_suggested_clusters_stand_before_the_widest_step_of_eigenvalues():
    rng = np.random.default_rng(8)
    x = 0.3 * rng.normal(size=(120, 2)) + 5 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[np.arange(120) % 4]
    report = summary(Spectral(), fitted(rows(x), n_clusters=2, graph="full", width=1.5))
    assert report["suggested_clusters"] == 4
    values = report["eigenvalues"]
    assert report["eigengap"] == pytest.approx(values[4] - values[3])
    steps = np.sort(np.diff(values))
    assert report["eigengap_ratio"] == pytest.approx(steps[-1] / steps[-2])
    assert report["eigengap_ratio"] > 1.5


def test_a_step_without_a_second_one_has_no_ratio():
    assert eigengap_ratio(np.array([0.0, 1.0])) is None
    assert eigengap_ratio(np.array([0.0, 0.0, 1.0])) is None
    assert eigengap_ratio(np.array([0.0, 1.0, 3.0])) == 2


def test_sums_over_edges_are_products_with_the_laplacian_of_scipy():
    """C10: vᵀLv = ½ Σ wᵢⱼ(vᵢ − vⱼ)²; components and eigenvalues by scipy's own graph routines."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + 50])
    state = fitted(rows(x), n_clusters=2, n_neighbors=5, laplacian="unnormalised")
    weights = state.graph.graph().weights
    laplacian = csgraph.laplacian(weights).toarray()
    v, dense = rng.normal(size=70), weights.toarray()
    assert v @ laplacian @ v == pytest.approx((dense * np.square(v[:, None] - v)).sum() / 2)
    assert state.components == csgraph.connected_components(weights)[0] == 2
    np.testing.assert_allclose(state.eigenvalues, np.linalg.eigvalsh(laplacian)[: len(state.eigenvalues)], atol=1e-9)
