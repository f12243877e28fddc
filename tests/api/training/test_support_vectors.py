"""Support vector machines over HTTP: their reports, decision values, given kernels, and refusals."""

import csv
import io

import numpy as np
import pytest
from sklearn import datasets
from sklearn.svm import SVC

X, Y = datasets.load_iris(return_X_y=True)
X, Y = X[:, 2:], datasets.load_iris().target_names[Y]


@pytest.fixture(scope="module")
def flowers(client):
    return upload(client, ["a", "b", "kind", "plant"], [[*X[i], Y[i], f"p{i}"] for i in range(len(X))])


def upload(client, header, rows):
    file = io.StringIO()
    csv.writer(file).writerows([header, *rows])
    return client.post("/v1/datasets", content=file.getvalue().encode()).json()["id"]


def test_a_machine_is_trained_reported_and_predicts(client, done, flowers):
    body = {"model": "svm-flowers", "dataset": flowers, "target": "kind", "item": "plant", "features": ["a", "b"]}
    done("train", body | {"algorithm": {"name": "svm"}, "validation": {"test_fraction": 0}})
    summary = client.get("/v1/models/svm-flowers/versions/1/report").json()["summary"]
    assert [one["classes"] for one in summary["machines"]] == [
        ["setosa", "versicolor"],
        ["setosa", "virginica"],
        ["versicolor", "virginica"],
    ]
    assert summary["duality_gap"] <= 1e-3
    assert summary["support_vector_items"] == [f"p{row}" for row in summary["support_vector_rows"]]
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    theirs = SVC(tol=1e-6, decision_function_shape="ovo").fit(z, Y)
    assert summary["support_vectors"] == pytest.approx(len(theirs.support_), abs=2)
    rows = [{"a": a, "b": b} for a, b in X[::10]]
    found = client.post("/v1/models/svm-flowers/predict?include=decision", json={"rows": rows}).json()
    np.testing.assert_allclose(-np.array(found["outputs"]["decision"]), theirs.decision_function(z[::10]), atol=5e-3)
    assert np.mean(np.array(found["predictions"]) == Y[::10]) > 0.9


def test_a_hard_margin_that_does_not_exist_is_refused(client, ended, flowers):
    body = {"model": "svm-hard", "dataset": flowers, "target": "kind", "features": ["a", "b"]}
    error = ended("train", body | {"algorithm": {"name": "svm", "kernel": "linear", "C": None}})["error"]
    assert error["code"] == "invalid_data"
    assert "hard margin does not exist" in error["detail"]


def test_unknown_kernels_and_costs_are_refused_together(client, flowers):
    algorithm = {"name": "svm", "kernel": "cubic", "C": -1}
    body = {"model": "svm-bad", "dataset": flowers, "target": "kind", "algorithm": algorithm}
    refused = client.post("/v1/jobs/train", json=body)
    assert refused.status_code == 422
    assert {error["pointer"] for error in refused.json()["errors"]} >= {"/algorithm/kernel", "/algorithm/C"}


def test_a_given_kernel(client, done):
    names = [f"p{i}" for i in range(0, 150, 5)]
    x, y = X[::5] - X.mean(axis=0), np.where(Y[::5] == "setosa", "setosa", "other")
    square = {"form": "square", "meaning": "kernel"}
    rows = [[*row, kind, name] for row, kind, name in zip(x @ x.T, y, names, strict=True)]
    dataset = upload(client, [*names, "kind", "plant"], rows)
    body = {"model": "svm-given", "dataset": dataset, "target": "kind", "item": "plant", "relations": square}
    done("train", body | {"algorithm": {"name": "svm", "C": None}, "validation": {"test_fraction": 0}})
    summary = client.get("/v1/models/svm-given/versions/1/report").json()["summary"]
    theirs = SVC(kernel="linear", C=1e6).fit(x, y)
    assert summary["machines"][0]["margin"] == pytest.approx(2 / np.linalg.norm(theirs.coef_), rel=1e-2)
    row = dict(zip(names, x[0] @ x.T, strict=True))
    predicted = client.post("/v1/models/svm-given/predict", json={"rows": [row]}).json()["predictions"]
    assert predicted == [y[0]]
    indefinite = [[*-row, kind, name] for row, kind, name in zip(x @ x.T, y, names, strict=True)]
    dataset = upload(client, [*names, "kind", "plant"], indefinite)
    refused = client.post("/v1/jobs/train", json=body | {"dataset": dataset, "algorithm": {"name": "svm"}})
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/relations/meaning", "not_positive_semidefinite")
    assert "smallest eigenvalue" in error["detail"]
    nearest = {"name": "svm", "indefinite": "project"}
    done("train", body | {"dataset": dataset, "algorithm": nearest, "validation": {"test_fraction": 0}})


def test_numbers_and_densities(client, done, flowers):
    done("train", {"model": "svr-flowers", "dataset": flowers, "target": "b", "algorithm": {"name": "svr"}})
    report = client.get("/v1/models/svr-flowers/versions/1/report").json()
    assert report["summary"]["duality_gap"] <= 1e-3
    body = {"model": "outside", "dataset": flowers, "features": ["a", "b"], "algorithm": {"name": "one_class_svm"}}
    done("train", body)
    rows = [{"a": 1.4, "b": 0.2}, {"a": 1.4, "b": 9.0}]
    found = client.post("/v1/models/outside/predict?include=anomaly,decision", json={"rows": rows}).json()
    assert found["outputs"]["anomaly"] == [False, True]
    assert found["outputs"]["decision"] == found["predictions"]
