"""A representation of all rows and a learner of the labelled ones, over HTTP."""

import numpy as np
import pytest
from sklearn import datasets


@pytest.fixture(scope="module")
def dataset(client):
    x, y = datasets.load_iris(return_X_y=True)
    known = np.random.default_rng(0).random(150) < 0.2
    cells = [[*map(str, row), f"kind {code}" if there else ""] for row, code, there in zip(x, y, known, strict=True)]
    table = "\n".join(["a,b,c,d,kind", *map(",".join, cells)])
    return client.post("/v1/datasets", content=table).json()["id"]


def request_of(dataset, **algorithm):
    algorithm = {"name": "two_step"} | algorithm
    return {"model": "steps-flowers", "dataset": dataset, "target": "kind", "algorithm": algorithm}


def test_rows_without_a_target_are_in_the_first_step(client, dataset, done):
    done("train", request_of(dataset, representation={"name": "pca", "n_components": 2}))
    report = client.get("/v1/models/steps-flowers/versions/1/report").json()
    labelled = report["rows_train"] + report["rows_test"]
    assert report["rows_unlabelled"] == 150 - labelled > 100
    assert report["summary"]["rows"] == report["rows_train"] + report["rows_unlabelled"]
    row = {"a": 5.1, "b": 3.5, "c": 1.4, "d": 0.2}
    predicted = client.post("/v1/models/steps-flowers/predict", json={"rows": [row]}).json()
    assert predicted["predictions"] == ["kind 0"]
    explained = client.post("/v1/models/steps-flowers/explain", json={"rows": [row]}).json()
    assert len(explained["explanations"][0]["coordinates"]) == 2


@pytest.mark.parametrize(
    ("algorithm", "pointer"),
    [
        ({"representation": {"name": "lda"}}, "/algorithm/representation/name"),
        ({"representation": {"name": "knn"}}, "/algorithm/representation/name"),
        ({"representation": {"name": "metric_learning"}}, "/algorithm/representation/method"),
        ({"estimator": {"name": "kmeans"}}, "/algorithm/estimator/name"),
    ],
)
def test_steps_that_do_not_fit_are_refused_before_the_job(client, dataset, algorithm, pointer):
    response = client.post("/v1/jobs/train", json=request_of(dataset, **algorithm))
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]
