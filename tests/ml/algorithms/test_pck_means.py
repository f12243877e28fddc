"""k-means with pairs: its objective, its limits, and the rows that it reports."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from app.ml.algorithms.pck_means import ALGORITHM, PCKMeans, fit, predict
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.relations import Edges, Meaning, Relations
from app.ml.numerics.clustering.pair_constraints import Pairs, Problem, constrained_lloyd, first_centres

X = np.random.default_rng(1).normal(size=(120, 3)) + 2 * (np.arange(120) % 4)[:, None]


def edges_of(signed):
    """{(i, j): value} as edges."""
    pairs = sorted(signed)
    first, second = (np.array([pair[place] for pair in pairs], np.intp) for place in (0, 1))
    return Edges(first, second, np.array([signed[pair] for pair in pairs], np.float64))


def drawn_pairs(rng, labels, count):
    rows = rng.integers(0, len(labels), (count, 2))
    return {(min(i, j), max(i, j)): 1.0 if labels[i] == labels[j] else -1.0 for i, j in rows.tolist() if i != j}


def fitted(x, signed, **params):
    data = Data.of(Task.CLUSTERING, x, relations=Relations(Meaning.CONSTRAINT, edges=edges_of(signed)))
    params = PCKMeans(**params)
    return params, fit(params, data, Context.of(0))


def test_weights_of_0_give_kmeans_from_the_same_centres():
    rng = np.random.default_rng(0)
    pairs = Pairs.of(edges_of(dict.fromkeys(drawn_pairs(rng, np.arange(120) % 4, 60), 0.0)), 120)
    start = X[:4]
    run = constrained_lloyd(Problem(X, np.ones(120), pairs), start, 300, rng)
    expected = KMeans(4, init=start, n_init=1, tol=0).fit(X)
    np.testing.assert_array_equal(run.labels, expected.labels_)
    assert run.objective[-1] == pytest.approx(expected.inertia_, rel=1e-12)


@pytest.mark.parametrize("weight", [0.1, 1.0, 10.0, 1e6])
def test_the_objective_never_rises_and_is_that_of_the_definition(weight):
    rng = np.random.default_rng(2)
    signed = {pair: weight * value for pair, value in drawn_pairs(rng, rng.integers(0, 4, 120), 200).items()}
    problem = Problem(X, rng.uniform(0.5, 2, 120), Pairs.of(edges_of(signed), 120))
    run = constrained_lloyd(problem, first_centres(problem, 4, rng), 300, rng)
    assert (np.diff(run.objective) <= 0).all()
    distances = problem.weights @ ((X - run.centres[run.labels]) ** 2).sum(axis=1)
    apart = {pair: run.labels[pair[0]] != run.labels[pair[1]] for pair in signed}
    violated = sum(abs(value) for pair, value in signed.items() if apart[pair] == (value > 0))
    assert run.objective[-1] == pytest.approx(distances + violated, rel=1e-12)


def test_no_single_row_or_group_can_move_to_a_cheaper_label():
    rng = np.random.default_rng(5)
    signed = {pair: 3 * value for pair, value in drawn_pairs(rng, rng.integers(0, 3, 120), 150).items()}
    problem = Problem(X, np.ones(120), Pairs.of(edges_of(signed), 120))
    run = constrained_lloyd(problem, first_centres(problem, 3, rng), 300, rng)
    best = problem.objective(run.centres, run.labels)
    groups = [problem.pairs.rows[problem.pairs.groups == group] for group in range(problem.pairs.groups.max() + 1)]
    moves = [np.array([row]) for row in range(120)]
    moves += [group for group in groups if np.unique(run.labels[group]).size == 1]
    for rows in moves:
        for label in range(3):
            labels = run.labels.copy()
            labels[rows] = label
            assert problem.objective(run.centres, labels) >= best - 1e-9


def test_large_weights_satisfy_pairs_that_can_be_satisfied():
    truth = np.arange(120) % 3
    signed = drawn_pairs(np.random.default_rng(3), truth, 80)
    _, result = fitted(X, signed, n_clusters=3, must_link_weight=1e6, cannot_link_weight=1e6)
    assert result.state.pairs.violated.tolist() == [0, 0]
    assert result.state.pairs.counts.sum() == len(signed)
    assert result.warnings == []


def test_pairs_of_labels_bring_the_clusters_nearer_to_the_classes():
    x, y = load_wine(return_X_y=True)
    x = x[:, :6]  # alone they do not tell the classes apart well
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    params, without = fitted(x, {}, n_clusters=3)
    before = adjusted_rand_score(y, predict(params, without.state, x))
    signed = drawn_pairs(np.random.default_rng(0), y, 400)
    params, result = fitted(x, signed, n_clusters=3, must_link_weight=5, cannot_link_weight=5)
    assert adjusted_rand_score(y, predict(params, result.state, x)) > before + 0.05


def test_violated_pairs_are_listed_by_numbers_and_names():
    x = np.array([[0.0], [0.1], [9.0], [9.1]])
    names = np.array(["a", "b", "c", "d"])
    relations = Relations(Meaning.CONSTRAINT, edges=edges_of({(0, 1): -1.0, (1, 2): 1.0, (2, 3): 1.0}))
    data = Data.of(Task.CLUSTERING, x, relations=relations, items=names, numbers=np.array([10, 11, 12, 13]))
    params = PCKMeans(n_clusters=2, must_link_weight=0.01, cannot_link_weight=0.001)
    result = fit(params, data, Context.of(0))
    summary = ALGORITHM.summary(params, result.state)
    assert summary["violated_pairs"] == [
        {"rows": [11, 10], "kind": "cannot", "items": ["b", "a"]},
        {"rows": [12, 11], "kind": "must", "items": ["c", "b"]},
    ] or sorted(sorted(pair["rows"]) for pair in summary["violated_pairs"]) == [[10, 11], [11, 12]]
    assert (summary["must_link_pairs"], summary["must_link_violated"]) == (2, 1)
    assert (summary["cannot_link_pairs"], summary["cannot_link_violated"]) == (1, 1)
    assert result.warnings == ["2 of 3 pairs are violated: the summary lists them."]


def test_rows_without_numbers_are_numbered_as_they_are_given():
    x = np.array([[9.0], [0.0], [9.1], [0.1]])
    relations = Relations(Meaning.CONSTRAINT, edges=edges_of({(0, 2): -1.0, (0, 3): 1.0}))
    params = PCKMeans(n_clusters=2, must_link_weight=0.01, cannot_link_weight=0.001)
    state = fit(params, Data.of(Task.CLUSTERING, x, relations=relations), Context.of(0)).state
    violated = ALGORITHM.summary(params, state)["violated_pairs"]
    assert [(sorted(pair["rows"]), pair["kind"]) for pair in violated] == [([0, 2], "cannot"), ([0, 3], "must")]


def test_the_first_centres_are_means_of_the_largest_groups():
    signed = {(0, 4): 1.0, (4, 8): 1.0, (1, 5): 1.0}
    problem = Problem(X, np.ones(120), Pairs.of(edges_of(signed), 120))
    found = first_centres(problem, 2, np.random.default_rng(0))
    expected = np.array([X[[0, 4, 8]].mean(axis=0), X[[1, 5]].mean(axis=0)])
    order = linear_sum_assignment(((found[:, None] - expected) ** 2).sum(axis=2))[1]
    np.testing.assert_allclose(found[np.argsort(order)], expected, rtol=1e-12)


def test_the_order_of_rows_does_not_matter():
    signed = drawn_pairs(np.random.default_rng(7), np.arange(120) % 4, 80)
    order = np.random.default_rng(8).permutation(120)
    back = np.argsort(order)
    moved = {tuple(sorted((int(back[i]), int(back[j])))): value for (i, j), value in signed.items()}
    params, one = fitted(X, signed, n_clusters=4)
    _, other = fitted(X[order], moved, n_clusters=4)
    np.testing.assert_array_equal(predict(params, one.state, X), predict(params, other.state, X))
