"""k nearest neighbours: the formula's numbers, the corrected limit, ties, unknown, prototypes; scikit-learn beside."""

import json

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import datasets
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from app.ml.algorithms.knn import KNN, explain, fit, predict, summary
from app.ml.contract.algorithm import Context, Data, Task


def learn(params, x, y, classes=0, **more):
    task = Task.CLASSIFICATION if classes else Task.REGRESSION
    return fit(params, Data.of(task, np.asarray(x, float), y, classes=classes, **more), Context.of(0)).state


def ask(params, state, *rows):
    return predict(params, state, np.array(rows, float))


LINE = ([[0], [1], [3]], [0, 1, 9])


@pytest.mark.parametrize(("d0", "expected"), [(0, 3.0), (0.5, 11 / 3), (1e9, 5.0)])
def test_the_weighted_mean(d0, expected):
    """B2.5, formula 2.1, worked by hand: 1 and 3 are the neighbours, at distances 0.5 and 1.5."""
    params = KNN(n_neighbors=2, weights="distance", d0=d0)
    assert ask(params, learn(params, *LINE), [1.5])[0] == pytest.approx(expected, rel=1e-8)


def test_a_large_offset_gives_the_mean_of_the_k_not_of_all():
    """Erratum E1: printed as the mean of all training rows, which it is only when k is their number."""
    params = KNN(n_neighbors=2, weights="distance", d0=1e12)
    predicted = ask(params, learn(params, *LINE), [1.6])[0]
    assert predicted == pytest.approx(5.0)
    assert predicted != pytest.approx(np.mean(LINE[1]))
    everyone = KNN(n_neighbors=3, weights="distance", d0=1e12)
    assert ask(everyone, learn(everyone, *LINE), [1.6])[0] == pytest.approx(np.mean(LINE[1]))


@pytest.mark.parametrize("d0", [0, 1e-300, 1e-12])
def test_a_stored_row_is_predicted_by_itself(d0):
    params = KNN(n_neighbors=3, weights="distance", d0=d0)
    assert ask(params, learn(params, *LINE), [3])[0] == pytest.approx(9.0, abs=1e-9)


def test_one_neighbour_repeats_what_it_saw():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    np.testing.assert_array_equal(predict(KNN(n_neighbors=1), learn(KNN(n_neighbors=1), x, y), x), y)


def test_one_neighbour_is_misled_where_more_are_not():
    """B2.1, figure 2.3: a stray row of the other class beside the query."""
    x, y = [[0.0], [0.2], [0.3], [-0.2], [-0.3]], [1, 0, 0, 0, 0]
    predictions = [ask(KNN(n_neighbors=k), learn(KNN(n_neighbors=k), x, y, 2), [0.05])[0].argmax() for k in (1, 5)]
    assert predictions == [1, 0]


def test_votes_are_shares():
    state = learn(KNN(n_neighbors=4), [[0], [1], [2], [3], [50]], [0, 1, 1, 2, 2], 4)
    np.testing.assert_allclose(ask(KNN(n_neighbors=4), state, [1.4]), [[0.25, 0.5, 0.25, 0]], rtol=1e-15)


@pytest.mark.parametrize("nearest", [0, 1])
def test_a_tied_vote_goes_to_the_nearest(nearest):
    state = learn(KNN(n_neighbors=4), [[1.0], [-2.0], [3.0], [-4.0]], [nearest, 1 - nearest, 1 - nearest, nearest], 3)
    shares = ask(KNN(n_neighbors=4), state, [0.0])[0]
    assert shares.argmax() == nearest
    np.testing.assert_allclose(shares, [0.5, 0.5, 0], atol=1e-8)


def test_a_third_class_that_is_nearest_does_not_win_the_tie_of_two():
    state = learn(KNN(n_neighbors=5), [[1], [2], [3], [4], [5]], [0, 2, 1, 1, 2], 3)
    assert ask(KNN(n_neighbors=5), state, [0])[0].argmax() == 2


@pytest.mark.parametrize("index", ["kdtree", "brute"])
def test_rows_equally_far_are_taken_from_above(index):
    params = KNN(n_neighbors=1, index=index)
    for x, y in ([[0], [2]], [0, 2]), ([[2], [0]], [2, 0]):
        assert ask(params, learn(params, x, y), [1])[0] == 2
    assert ask(params, learn(params, [[1], [1], [1]], [5, 7, 6]), [1])[0] == 7


def test_unanimity_is_a_probability_of_one_and_else_unknown():
    """B2.3. The three nearest of 0 agree; of 10 they do not."""
    params = KNN(n_neighbors=3, rule="unanimity", weights="distance")
    state = learn(params, [[0], [0.1], [0.3], [9], [10], [11.5]], [1, 1, 1, 0, 1, 0], 2)
    sure, unsure = ask(params, state, [0], [10.1])
    assert sure.tolist() == [0, 1]
    assert unsure.max() < 1
    explanation = explain(params, state, np.array([[0], [10.1]]))
    assert [reason["status"] for reason in explanation] == ["known", "unknown"]
    assert "status" not in explain(KNN(n_neighbors=3), state, np.array([[0.0]]))[0]


@pytest.mark.parametrize("rule", ["majority", "unanimity"])
def test_agreeing_neighbours_are_certain_to_the_last_bit(rule):
    rng = np.random.default_rng(4)
    params = KNN(n_neighbors=9, weights="distance", rule=rule)
    state = learn(params, rng.normal(size=(60, 2)), np.ones(60), 3, weights=rng.uniform(0.1, 9, 60))
    np.testing.assert_array_equal(predict(params, state, rng.normal(size=(500, 2)))[:, 1], 1.0)


def test_the_explanation_adds_up_to_the_prediction():
    x, y = datasets.load_diabetes(return_X_y=True)
    params = KNN(n_neighbors=6, weights="distance", d0=0.01)
    state = learn(params, x[:300], y[:300])
    for reason, requested, predicted in zip(
        explain(params, state, x[300:]), x[300:], predict(params, state, x[300:]), strict=True
    ):
        near = reason["neighbours"]
        rows = [one["row"] for one in near]
        far = np.linalg.norm(x[rows] - requested, axis=1)
        weights = (1 / (far + 0.01)) / (1 / (far + 0.01)).sum()
        np.testing.assert_allclose([one["distance"] for one in near], far, rtol=1e-12)
        np.testing.assert_allclose([one["weight"] for one in near], weights, rtol=1e-12)
        np.testing.assert_array_equal([one["target"] for one in near], y[rows])
        assert sum(one["weight"] * one["target"] for one in near) == pytest.approx(predicted)
    json.dumps(explain(params, state, x[:3]), allow_nan=False)


METRICS = {"euclidean": {}, "manhattan": {}, "chebyshev": {}, "minkowski": {"p": 3.0}}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("index", ["kdtree", "brute"])
def test_as_scikit_learn(metric, weights, index):
    params = KNN(n_neighbors=7, metric=metric, weights=weights, d0=0.3, index=index, **METRICS[metric])
    theirs = {
        "n_neighbors": 7,
        "metric": metric,
        "p": METRICS[metric].get("p", 2),
        "weights": "uniform" if weights == "uniform" else lambda far: 1 / (far + 0.3),
    }
    x, y = datasets.load_diabetes(return_X_y=True)
    x = x + 1e-5 * np.random.default_rng(0).normal(size=x.shape)  # their ties are decided otherwise
    expected = KNeighborsRegressor(**theirs).fit(x[:300], y[:300]).predict(x[300:])
    np.testing.assert_allclose(predict(params, learn(params, x[:300], y[:300]), x[300:]), expected, rtol=1e-8)
    x, y = datasets.load_wine(return_X_y=True)
    x = x + 1e-3 * np.random.default_rng(0).normal(size=x.shape)
    expected = KNeighborsClassifier(**theirs).fit(x[::2], y[::2]).predict_proba(x[1::2])
    np.testing.assert_allclose(predict(params, learn(params, x[::2], y[::2], 3), x[1::2]), expected, atol=1e-8)


@pytest.mark.parametrize("seed", range(50))
def test_drawn_problems_as_scikit_learn_by_every_index(seed):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(5, 200)), int(rng.integers(1, 15)), int(rng.integers(1, 5))
    x, y, requested = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=(20, d))
    predictions = [
        predict(KNN(n_neighbors=k, index=way), learn(KNN(n_neighbors=k), x, y), requested)
        for way in ("kdtree", "brute")
    ]
    np.testing.assert_array_equal(*predictions)
    np.testing.assert_allclose(predictions[0], KNeighborsRegressor(k).fit(x, y).predict(requested), rtol=1e-8)


@pytest.mark.parametrize("seed", range(50))
def test_tied_problems_have_the_distances_of_all_rows(seed):
    """Constant and double columns, double rows and queries that are stored: no k rows are nearer."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 6))
    x = rng.integers(-2, 3, (n, d)).astype(float)
    x[:, rng.integers(0, d)] = 7.0
    x[:, rng.integers(0, d)] = x[:, 0]
    y, requested, k = rng.normal(size=n), np.vstack([x[:5], rng.normal(size=(5, d))]), int(rng.integers(1, n + 1))
    state = learn(KNN(n_neighbors=k), x, y)
    expected = np.sort(cdist(requested, x), axis=1)[:, :k]
    for index in ("kdtree", "brute"):
        explanation = explain(KNN(n_neighbors=k, index=index), state, requested)
        near = [[one["distance"] for one in reason["neighbours"]] for reason in explanation]
        np.testing.assert_allclose(np.sort(near, axis=1), expected, rtol=1e-12, atol=1e-12)
        rows = [[one["row"] for one in reason["neighbours"]] for reason in explanation]
        assert all(len(set(one)) == k for one in rows)
        np.testing.assert_allclose(
            predict(KNN(n_neighbors=k, index=index), state, requested), y[rows].mean(axis=1), rtol=1e-8
        )


def test_weights_count_in_the_mean():
    state = learn(KNN(n_neighbors=2), [[0], [1]], [0, 9], weights=[2, 1])
    assert ask(KNN(n_neighbors=2), state, [0.5])[0] == pytest.approx(3)


def test_prototypes_are_the_centres_of_each_class():
    """B2.6: two blobs of one class and one of the other become three points that predict as all rows do."""
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [10, 0], [5, 8.0]])
    blob = np.repeat([0, 1, 2], 30)
    x, y = centres[blob] + rng.normal(size=(90, 2)), np.array([0, 0, 1])[blob]
    params = KNN(n_neighbors=1, prototypes=2)
    state = learn(params, x, y, 2)
    means = np.array([x[blob == b].mean(axis=0) for b in (0, 1)])
    found = state.rows[state.targets == 0]
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], means, rtol=1e-12)
    assert len(state.rows) == 4
    assert state.sizes.sum() == 90
    np.testing.assert_array_equal(predict(params, state, x).argmax(axis=1), y)
    assert "prototype" in explain(params, state, x[:1])[0]["neighbours"][0]
    assert summary(params, state) == {"kept": 4, "training_rows": 90, "neighbours": 1, "prototypes": True}


def test_prototypes_of_numbers_have_the_mean_of_their_rows():
    params = KNN(n_neighbors=1, prototypes=2)
    state = learn(params, [[0], [1], [10], [11]], [1, 4, 7, 9], weights=[2, 1, 1, 1])
    np.testing.assert_allclose(ask(params, state, [0], [10]), [2, 8])


def test_as_many_prototypes_as_rows_are_the_rows():
    x, y = datasets.load_iris(return_X_y=True)
    x = x + 1e-3 * np.random.default_rng(0).normal(size=x.shape)
    both = [
        predict(params, learn(params, x[::2], y[::2], 3), x)
        for params in (KNN(n_neighbors=3), KNN(n_neighbors=3, prototypes=500))
    ]
    np.testing.assert_allclose(*both, atol=1e-12)


def test_fewer_rows_than_neighbours_is_reported():
    found = fit(KNN(n_neighbors=9), Data.of(Task.REGRESSION, [[0.0], [1.0]], [1.0, 3.0]), Context.of(0))
    assert len(found.warnings) == 1
    assert ask(KNN(n_neighbors=9), found.state, [7])[0] == 2
