"""Two-step learning: a representation that no label changes, and a learner behind it as by hand."""

import numpy as np
import pytest
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Data, Inputs, Size, Task
from app.ml.contract.data import Unlabelled

ALGORITHM = find("two_step").algorithm
PCA_5 = {"representation": {"name": "pca", "n_components": 5}, "estimator": {"name": "knn", "n_neighbors": 3}}


@pytest.fixture(scope="module")
def digits():
    x, y = datasets.load_digits(return_X_y=True)
    return x[:600], y[:600]


def fitted(data, **params):
    params = ALGORITHM.params(**params)
    return params, ALGORITHM.fit(params, data, nested.context(0))


def partly(x, y, known, task=Task.CLASSIFICATION, **more):
    return Data.of(task, x[known], y[known], unlabelled=Unlabelled(x[~known]), **more)


def known_rows(count, n, seed=0):
    known = np.zeros(n, bool)
    known[np.random.default_rng(seed).choice(n, count, replace=False)] = True
    return known


def representation_of(fit):
    return [part.tobytes() for part in fit.state.representation.state if isinstance(part, np.ndarray)]


@pytest.mark.parametrize("name", ["pca", "random_projection", "weighted_pca"])
def test_the_representation_does_not_depend_on_labels(digits, name):
    x, y = digits
    rng, known = np.random.default_rng(1), known_rows(60, 600)
    params = {"representation": {"name": name, "n_components": 4}}
    _, first = fitted(partly(x, y, known), **params)
    shuffled = y.copy()
    shuffled[known] = rng.permutation(y[known])
    others = [
        partly(x, shuffled, known),
        partly(x, y, known_rows(80, 600, seed=5)),
        partly(x, y, known, weights=rng.uniform(0.1, 9, 60)),
    ]
    for data in others:
        assert representation_of(fitted(data, **params)[1]) == representation_of(first)


def test_it_is_the_pipeline_by_hand(digits):
    x, y = digits
    known = known_rows(100, 600)
    params, fit = fitted(partly(x, y, known), **PCA_5)
    pca = PCA(5, svd_solver="full").fit(x)
    peer = KNeighborsClassifier(3).fit(pca.transform(x[known]), y[known])
    shares = ALGORITHM.predict(params, fit.state, x[~known])
    np.testing.assert_allclose(shares, peer.predict_proba(pca.transform(x[~known])), atol=1e-9)
    assert fit.warnings == []
    (explained,) = ALGORITHM.explain(params, fit.state, x[:1])
    np.testing.assert_allclose(np.abs(explained["coordinates"]), np.abs(pca.transform(x[:1])[0]), rtol=1e-6)


def test_rows_without_a_label_show_directions_that_labels_do_not():
    """One direction of 30 varies, and has the classes: two labelled rows of each do not show it. Twenty draws."""
    errors = np.zeros(2)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = np.arange(200) % 2
        axis = rng.normal(size=30)
        x = np.outer(np.where(y > 0, 1.6, -1.6), axis / np.linalg.norm(axis)) + 0.5 * rng.normal(size=(200, 30))
        known = np.arange(200) < 4
        for place, data in enumerate((partly(x, y, known), Data.of(Task.CLASSIFICATION, x[known], y[known]))):
            params, fit = fitted(data, representation={"name": "pca", "n_components": 1}, estimator=PCA_5["estimator"])
            errors[place] += np.mean(ALGORITHM.predict(params, fit.state, x[~known]).argmax(axis=1) != y[~known])
    assert errors[0] < errors[1] / 3


def test_numbers_are_predicted_too():
    rng = np.random.default_rng(3)
    t = rng.normal(size=80)
    x = np.column_stack([t, 2 * t, -t]) + 0.01 * rng.normal(size=(80, 3))
    known = np.arange(80) < 10
    params, fit = fitted(
        partly(x, 3 * t, known, Task.REGRESSION),
        representation={"name": "pca", "n_components": 1},
        estimator={"name": "linear"},
    )
    np.testing.assert_allclose(ALGORITHM.predict(params, fit.state, x), 3 * t, atol=0.1)


def test_a_learner_behind_gets_the_other_rows_as_well(digits):
    x, y = digits
    behind = {"name": "self_training", "estimator": {"name": "knn", "n_neighbors": 3}}
    _, fit = fitted(partly(x, y, known_rows(100, 600)), **PCA_5 | {"estimator": behind})
    assert fit.state.estimator.state.rounds.size == 500


def test_without_other_rows_it_reports_so(digits):
    x, y = digits
    params, fit = fitted(Data.of(Task.CLASSIFICATION, x, y), **PCA_5)
    assert fit.warnings == ["No row lacks the target: the representation is learned from the labelled rows alone."]
    summary = ALGORITHM.summary(params, fit.state)
    assert (summary["rows"], summary["labelled_rows"]) == (600, 600)
    assert (summary["representation"]["name"], summary["estimator"]["name"]) == ("pca", "knn")


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"representation": {"name": "lda"}}, "/algorithm/representation/name"),
        ({"representation": {"name": "kmeans"}}, "/algorithm/representation/name"),
        ({"representation": {"name": "metric_learning"}}, "/algorithm/representation/method"),
        ({"estimator": {"name": "pca"}}, "/algorithm/estimator/name"),
    ],
)
def test_learners_that_do_not_fit_are_refused_by_name(params, pointer):
    params = find("two_step").spec.model_validate({"name": "two_step"} | params)
    inputs = Inputs({"x": "numeric"}, Size(10, 2, 3))
    (fault,) = nested.faults(ALGORITHM, params, Task.CLASSIFICATION, "/algorithm", inputs)
    assert fault.pointer == pointer
