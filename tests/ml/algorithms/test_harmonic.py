"""Harmonic classification: the path of five nodes, random walks, priors, and agreement with scikit-learn."""

import numpy as np
import pytest
import scipy
from sklearn.semi_supervised import LabelPropagation

from app.ml.algorithms.harmonic import Harmonic, accepted_rows, determined, fit, harmonic_values, predict, summary
from app.ml.contract.algorithm import Context, Data, Meaning, Task
from app.ml.contract.data import Unlabelled
from app.ml.contract.relations import Edges, Relations
from app.ml.numerics.graphs.laplacian import deep
from app.ml.numerics.graphs.similarity_graph import of_edges


def graph_data(weights, labelled, codes):
    """Nodes of a graph given by edges, of which some have a class; rows are their places by name."""
    n, labelled = len(weights), np.asarray(labelled)
    rest = np.setdiff1d(np.arange(n), labelled)
    first, second = np.nonzero(np.triu(weights, 1))
    order = np.concatenate([labelled, rest])
    edges = Edges(first, second, weights[first, second]).within(order, n)
    relations = Relations(Meaning.SIMILARITY, edges=edges, by_item=True)
    alone = Relations(Meaning.SIMILARITY, edges=edges.within(np.arange(labelled.size), n), by_item=True)
    x = np.arange(n, dtype=float)[:, None]
    unlabelled = Unlabelled(x[rest], rest, relations)
    return Data.of(Task.CLASSIFICATION, x[labelled], codes, numbers=labelled, unlabelled=unlabelled, relations=alone), x


def fitted(data, **params):
    return fit(Harmonic(**params), data, Context.of(0)).state


def drawn_weights(n, seed, share=0.4):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(0.2, 2, (n, n)) * (rng.uniform(size=(n, n)) < share), 1)
    weights += np.diag(np.full(n - 1, 0.5), 1)
    return weights + weights.T


def path(n):
    return np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


def test_a_path_between_both_classes_is_linear():
    data, x = graph_data(path(5), [4, 0], [0, 1])
    state = fitted(data)
    np.testing.assert_allclose(predict(Harmonic(), state, x)[:, 1], [1, 0.75, 0.5, 0.25, 0], atol=1e-12)
    assert summary(Harmonic(), state)["energy"] == pytest.approx(2 * 4 * 0.25**2)
    assert accepted_rows(Harmonic(), predict(Harmonic(), state, x)).all(), "a tie has the first class"


def test_values_are_the_shares_of_walks_that_end_at_a_class():
    weights, labelled = drawn_weights(12, 1), [2, 7, 11]
    data, x = graph_data(weights, labelled, [0, 1, 1])
    share = predict(Harmonic(), fitted(data), x)[0, 1]
    rng, ends, places = np.random.default_rng(0), np.cumsum(weights / weights.sum(axis=1)[:, None], axis=1), None
    places = np.zeros(4000, np.intp)
    while (moving := np.flatnonzero(~np.isin(places, labelled))).size:
        places[moving] = (ends[places[moving]] < rng.random(moving.size)[:, None]).sum(axis=1)
    simulated = np.isin(places, [7, 11]).mean()
    assert abs(simulated - share) < 3 * np.sqrt(share * (1 - share) / places.size)


@pytest.mark.parametrize("seed", range(3))
def test_values_are_means_of_neighbours_and_stay_between_the_given_ones(seed):
    weights = drawn_weights(30, seed, share=0.1)
    data, x = graph_data(weights, [3, 9, 20, 28], [0, 1, 2, 1])
    values = predict(Harmonic(), fitted(data), x)
    assert ((values >= 0) & (values <= 1)).all()
    np.testing.assert_allclose(values.sum(axis=1), 1, atol=1e-12)
    free = np.setdiff1d(np.arange(30), [3, 9, 20, 28])
    np.testing.assert_allclose((weights @ values / weights.sum(axis=1)[:, None])[free], values[free], atol=1e-10)
    np.testing.assert_array_equal(values[[3, 9, 20, 28]], np.eye(3)[[0, 1, 2, 1]])


def test_nodes_that_no_label_reaches_have_no_class():
    weights = np.zeros((6, 6))
    weights[:4, :4], weights[4, 5], weights[5, 4] = path(4), 1, 1
    data, x = graph_data(weights, [0, 3], [0, 1])
    fit_ = fit(Harmonic(), data, Context.of(0))
    values = predict(Harmonic(), fit_.state, x)
    assert (
        accepted_rows(Harmonic(), values).tolist()
        == determined(Harmonic(), fit_.state, x).tolist()
        == [True] * 4 + [False] * 2
    )
    np.testing.assert_array_equal(harmonic_values(Harmonic(), fit_.state, x)[4:], 0)
    assert summary(Harmonic(), fit_.state)["undetermined_rows"] == 2
    assert "From 2 rows" in fit_.warnings[0]


def test_values_are_those_to_which_label_propagation_converges():
    """With an RBF kernel the same problem: its diagonal of 1 slows the iterations down, and changes no limit."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 2)) + 1.5 * (np.arange(60) % 2)[:, None]
    y = np.where(np.arange(60) < 8, np.arange(60) % 2, -1)
    theirs = LabelPropagation(kernel="rbf", gamma=1.0, max_iter=100_000, tol=1e-12).fit(x, y)
    data = Data.of(Task.CLASSIFICATION, x[:8], y[:8], unlabelled=Unlabelled(x[8:]))
    params = Harmonic(graph="full", width=1.0)
    state = fit(params, data, Context.of(0)).state
    np.testing.assert_allclose(predict(params, state, x), theirs.label_distributions_, atol=1e-7)
    new = rng.normal(size=(20, 2))
    np.testing.assert_allclose(predict(params, state, new), theirs.predict_proba(new), atol=1e-7)


@pytest.mark.parametrize("columns", [2, 12])
def test_sparse_systems_have_the_solution_of_the_dense_one(columns):
    x = np.random.default_rng(4).normal(size=(900, columns))
    data = Data.of(Task.CLASSIFICATION, x[:20], np.arange(20) % 3, unlabelled=Unlabelled(x[20:]))
    params = Harmonic(width=3.0)
    values = predict(params, fitted(data, width=3.0), x)
    far = np.sqrt(np.square(x[:, None] - x).sum(axis=2))
    near = np.argsort(far, axis=1)[:, 1:11]
    weights = np.zeros((900, 900))
    weights[np.arange(900)[:, None], near] = np.exp(-np.square(np.take_along_axis(far, near, 1) / 3))
    weights = np.maximum(weights, weights.T)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    dense = np.linalg.solve(laplacian[20:, 20:], weights[20:, :20] @ np.eye(3)[np.arange(20) % 3])
    np.testing.assert_allclose(values[20:], dense, atol=1e-8)


def test_priors_are_the_shares_of_the_rows_without_a_label():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 2)) + 2 * (np.arange(200) % 4 == 0)[:, None]
    data = Data.of(Task.CLASSIFICATION, x[:8], np.arange(8) % 4 == 0, unlabelled=Unlabelled(x[8:]))
    for priors, share in ([0.3, 0.7], 0.7), ("uniform", 0.5), ("learned", 0.25):
        params = Harmonic(graph="full", width=0.7, priors=priors)
        state = fitted(data, graph="full", width=0.7, priors=priors)
        before = harmonic_values(params, state, x)[8:]
        wanted = np.array([1 - share, share]) / before.mean(axis=0) * before
        np.testing.assert_allclose(predict(params, state, x)[8:], wanted / wanted.sum(axis=1)[:, None], atol=1e-9)


def test_a_square_of_similarities_is_a_graph_with_labels():
    x = np.random.default_rng(6).normal(size=(30, 2))
    square = np.exp(-np.square(x[:, None] - x).sum(axis=2))
    y = np.arange(6) % 2
    given = Relations(Meaning.SIMILARITY, square=np.ascontiguousarray(square[:6, :6]))
    data = Data.of(Task.CLASSIFICATION, square[:6], y, unlabelled=Unlabelled(square[6:]), relations=given)
    params = Harmonic(graph="full", width=1.0)
    rows = Data.of(Task.CLASSIFICATION, x[:6], y, unlabelled=Unlabelled(x[6:]))
    by_columns = predict(params, fitted(rows, graph="full", width=1.0), x)
    np.testing.assert_allclose(predict(params, fitted(data), square), by_columns, atol=1e-10)


def test_weights_so_small_that_rounding_hides_them_leave_rows_without_a_class():
    weights = path(6)
    weights[2, 3] = weights[3, 2] = 1e-20
    data, x = graph_data(weights, [0, 1], [0, 1])
    state = fitted(data)
    assert determined(Harmonic(), state, x).tolist() == [True] * 3 + [False] * 3
    assert np.isfinite(predict(Harmonic(), state, x)).all()


def test_nodes_apart_from_the_largest_component_do_not_decide_how_it_is_solved():
    path = of_edges(400, np.arange(399), np.arange(1, 400), np.ones(399))
    first, second = np.nonzero(np.triu(np.random.default_rng(0).random((400, 400)) < 0.05, 1))
    random = of_edges(400, first, second, np.ones(first.size))
    assert deep(path)
    assert not deep(random)
    lone = scipy.sparse.csr_array((1, 1))
    assert deep(scipy.sparse.block_diag([lone, path], format="csr"))
    assert not deep(scipy.sparse.block_diag([lone, random], format="csr"))
