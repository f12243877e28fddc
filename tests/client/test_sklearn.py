"""Estimators of scikit-learn on the real service: cloned, pickled, cross-validated, in pipelines, and checked by it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import valiant
from valiant.sklearn import ValiantClassifier, ValiantRegressor, _service

IRIS = load_iris()


@pytest.fixture(scope="module", autouse=True)
def _url(address):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VALIANT_URL", address)
        yield
    _service.cache_clear()


def test_parameters_are_those_of_the_json_schema():
    estimator = ValiantRegressor("ridge", l2=0.5, seed=3)
    params = estimator.get_params()
    assert (params["l2"], params["seed"], params["algorithm"], estimator.l2) == (0.5, 3, "ridge", 0.5)
    assert {"l2", "fit_intercept"} <= set(params)
    copy = clone(estimator.set_params(l2=2.0))
    assert copy.get_params() == {**params, "l2": 2.0}
    assert is_regressor(copy)
    assert not is_classifier(copy)
    with pytest.raises(AttributeError, match="no attribute 'l3'"):
        _ = estimator.l3
    with pytest.raises(ValueError, match="Invalid parameter 'l3'"):
        estimator.set_params(l3=1)


def test_a_classifier_fits_predicts_and_is_pickled(service):
    names = IRIS.target_names[IRIS.target]
    for labels in (names, IRIS.target, IRIS.target > 0):
        fitted = ValiantClassifier("logistic", model="kept").fit(IRIS.data, labels)
        assert fitted.score(IRIS.data, labels) > 0.9
        assert fitted.predict(IRIS.data[:3]).tolist() == labels[:3].tolist()
        assert fitted.classes_.dtype == np.unique(labels).dtype
    shares = fitted.predict_proba(IRIS.data)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict_proba(IRIS.data).tobytes() == shares.tobytes()
    assert (again.model_, again.version_) == ("kept", 3)
    assert service.datasets(name="kept-rows") == []


def test_it_trains_on_every_row_as_the_service_itself_does(service):
    X, y = load_diabetes(return_X_y=True)
    fitted = ValiantRegressor("ridge", l2=1.0).fit(X, y)
    table = pd.DataFrame(X, columns=[f"x{place}" for place in range(10)]).assign(y=y)
    beside = service.train(
        service.upload(table, name="beside"), "y", algorithm="ridge", l2=1.0, validation={"test_fraction": 0}
    )
    np.testing.assert_array_equal(fitted.predict(X), beside.predict(table)["prediction"])


def test_cross_validation_pipelines_and_searches():
    scores = cross_val_score(ValiantClassifier("logistic"), IRIS.data, IRIS.target, cv=3)
    assert scores.min() > 0.9
    piped = make_pipeline(StandardScaler(), ValiantRegressor("ridge")).fit(IRIS.data[:, :3], IRIS.data[:, 3])
    assert piped.score(IRIS.data[:, :3], IRIS.data[:, 3]) > 0.9
    search = GridSearchCV(ValiantClassifier("knn", n_neighbors=3), {"n_neighbors": [1, 5]}, cv=2)
    assert search.fit(IRIS.data, IRIS.target).best_params_["n_neighbors"] in {1, 5}


def test_frames_keep_categories_and_missing_values():
    rows = pd.DataFrame({"x": [0.0, 1.0, None, 3.0] * 10, "kind": pd.Categorical(["a", "b", "a", None] * 10)})
    y = np.where(rows["kind"] == "a", 1.0, 5.0)
    fitted = ValiantRegressor("linear").fit(rows, y)
    assert fitted.feature_names_in_.tolist() == ["x", "kind"]
    assert abs(fitted.predict(rows) - y).max() < 1


def test_weights_are_sent_and_errors_are_those_of_the_service():
    X, y = IRIS.data[:, :1], IRIS.data[:, 1]
    plain, weighted = (ValiantRegressor("ridge").fit(X, y, sample_weight=w) for w in (None, 1 + IRIS.target))
    assert not np.array_equal(plain.predict(X), weighted.predict(X))
    with pytest.raises(valiant.InvalidRequest, match="l2"):
        ValiantRegressor("ridge", l2=-1.0).fit(X, y)
    with pytest.raises(NotFittedError):
        ValiantRegressor().predict(X)


UNSCALED = {"preprocessing": {"scaling": "none"}}
"""Scaling counts a row of any weight once, where scikit-learn demands that a weight of 2 is a row twice."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [ValiantRegressor("linear", **UNSCALED), ValiantClassifier("logistic", **UNSCALED)]
)
def test_checks_of_scikit_learn(estimator):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {each["check_name"]: repr(each["exception"]) for each in results if each["status"] == "failed"}
    assert failed == {}
    assert sum(each["status"] == "passed" for each in results) > 40


def test_an_estimator_is_printed_without_its_service():
    assert repr(ValiantClassifier("svm", url="http://127.0.0.1:9", C=2.0)).startswith("ValiantClassifier(")
