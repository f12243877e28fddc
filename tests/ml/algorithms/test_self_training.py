"""Self-training: labels for rows without a target, round by round, beside scikit-learn."""

import numpy as np
import pytest
from sklearn import datasets
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import SelfTrainingClassifier

from app.ml.catalogue.algorithm_files import find
from app.ml.catalogue.nested import context
from app.ml.contract.algorithm import Data, Task
from app.ml.contract.data import Unlabelled

ALGORITHM = find("self_training").algorithm


def fitted(data, **params):
    return ALGORITHM.fit(ALGORITHM.params(**params), data, context(0))


@pytest.fixture(scope="module")
def digits():
    x, y = datasets.load_digits(return_X_y=True)
    x = x + 1e-3 * np.random.default_rng(0).normal(size=x.shape)  # no two neighbours at the same distance
    known = np.random.default_rng(3).random(len(y)) < 0.1
    return x, y, known


def partly_labelled(x, y, known, **more):
    return Data.of(Task.CLASSIFICATION, x[known], y[known], unlabelled=Unlabelled(x[~known]), **more)


@pytest.mark.parametrize("min_probability", [0.7, 0.9])
def test_labels_and_rounds_are_those_of_scikit_learn(digits, min_probability):
    x, y, known = digits
    params = {"estimator": {"name": "knn", "n_neighbors": 5}, "min_probability": min_probability, "max_iter": 20}
    fit = fitted(partly_labelled(x, y, known), **params)
    peer = SelfTrainingClassifier(KNeighborsClassifier(5), threshold=min_probability, max_iter=20)
    peer.fit(x, np.where(known, y, -1))
    assert fit.iterations > 2
    np.testing.assert_array_equal(np.where(fit.state.rounds > 0, fit.state.rounds, -1), peer.labeled_iter_[~known])
    given = fit.state.rounds > 0
    np.testing.assert_array_equal(fit.state.codes[given], peer.transduction_[~known][given])
    assert np.mean(fit.state.codes[given] == y[~known][given]) > 0.95


def test_it_learns_from_rows_without_a_label_what_labels_alone_do_not_tell():
    """Two long clusters side by side, 6 labels of each, drawn ten times: most of the errors go."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    x = rng.normal(size=(400, 2)) * [3, 0.5] + np.c_[np.zeros(400), 4 * y]
    nearest = {"name": "knn", "n_neighbors": 5}
    errors = np.zeros(2)
    for draw in range(10):
        rng = np.random.default_rng(draw)
        known = np.zeros(400, bool)
        known[[*rng.choice(200, 6, replace=False), *200 + rng.choice(200, 6, replace=False)]] = True
        partly, alone = partly_labelled(x, y, known), Data.of(Task.CLASSIFICATION, x[known], y[known])
        for place, data in enumerate((alone, partly)):
            state = fitted(data, estimator=nearest, min_probability=0.9, max_iter=30).state
            errors[place] += np.mean(ALGORITHM.predict(None, state, x).argmax(axis=1) != y)
    assert errors[1] < 0.5 * errors[0]
    assert errors[0] > 0.1


def test_a_round_labels_the_most_probable_rows_first(digits):
    fit = fitted(partly_labelled(*digits), k_best=30, max_iter=4)
    assert not fit.converged
    assert [int((fit.state.rounds == turn).sum()) for turn in range(6)] == [fit.state.rounds.size - 120, *[30] * 4, 0]
    assert fit.curves["labelled_rows"] == [30, 60, 90, 120]
    summary = ALGORITHM.summary(ALGORITHM.params(k_best=30), fit.state)
    assert [part["labelled_rows"] for part in summary["rounds"]] == [30] * 4
    assert [label["round"] for label in summary["labels"]] == sorted(label["round"] for label in summary["labels"])
    np.testing.assert_array_equal(
        fit.state.codes[[label["row"] for label in summary["labels"]]], [label["class"] for label in summary["labels"]]
    )


def test_a_label_that_is_given_has_the_mean_weight_of_its_class():
    x = np.array([[0.0], [1.0], [10.0], [11.0]])
    rest = Unlabelled(np.array([[0.5], [10.5]]), np.array([7, 9]))
    data = Data.of(Task.CLASSIFICATION, x, [0, 0, 1, 1], weights=[1, 3, 5, 7], unlabelled=rest, numbers=np.arange(4))
    taken = data.labelled(np.array([1]), np.array([1]), np.array([6.0]))
    assert taken.weights.tolist() == [1, 3, 5, 7, 6]
    assert taken.numbers.tolist() == [0, 1, 2, 3, 9]
    fit = fitted(data, estimator={"name": "knn", "n_neighbors": 5}, min_probability=0.01, max_iter=1)
    # Of both new rows all four neighbours count, weight 4 of class 0 and 12 of class 1: both become class 1.
    assert fit.state.codes.tolist() == [1, 1]


def test_without_rows_to_label_it_is_the_estimator(digits):
    x, y, known = digits
    fit = fitted(Data.of(Task.CLASSIFICATION, x[known], y[known]))
    logistic = find("logistic").algorithm
    own = logistic.fit(logistic.params(), Data.of(Task.CLASSIFICATION, x[known], y[known]), context(0)).state
    np.testing.assert_array_equal(ALGORITHM.predict(None, fit.state, x), logistic.predict(logistic.params(), own, x))
    assert fit.converged
    assert fit.warnings == ["No row lacks the target: this is the estimator, trained on the labelled rows alone."]


def test_rows_that_nobody_is_sure_of_stay_without_a_label():
    rest = Unlabelled(np.array([[5.0]]))
    data = Data.of(Task.CLASSIFICATION, [[0.0], [10.0]], [0, 1], unlabelled=rest)
    fit = fitted(data, estimator={"name": "knn", "n_neighbors": 2}, min_probability=0.75)
    assert fit.state.rounds.tolist() == [0]
    assert fit.converged
    assert fit.warnings == ["No row without a target reached a probability of 0.75: none got a label."]


def test_the_same_seed_gives_the_same_bytes_and_missing_values_and_categories_reach_the_estimator():
    rng = np.random.default_rng(0)
    x = np.c_[rng.normal(size=200), rng.integers(0, 3, 200)]
    x[rng.random(x.shape) < 0.1] = np.nan
    y = np.nan_to_num(x[:, 1]) == 1
    known = np.arange(200) < 80
    data = partly_labelled(x, y, known, levels=[0, 3], missing=True)
    params = {"estimator": {"name": "random_forest", "n_estimators": 5}}
    one, other = (fitted(data, **params).state for _ in range(2))
    np.testing.assert_array_equal(one.rounds, other.rounds)
    np.testing.assert_array_equal(one.probability, other.probability)
    assert (one.rounds > 0).sum() > 80
