"""Metrics learned over HTTP: from classes, in front of another learner; from pairs, without a target; of clusters."""

import csv
import io

import numpy as np
import pytest
from sklearn import datasets

X, Y = datasets.load_wine(return_X_y=True)
COLUMNS = [f"c{j}" for j in range(6)]


def csv_of(header, rows):
    file = io.StringIO()
    csv.writer(file).writerows([header, *rows])
    return file.getvalue().encode()


@pytest.fixture(scope="module")
def wines(client):
    rows = [[f"w{i}", *x[:6].tolist(), f"kind {y}"] for i, (x, y) in enumerate(zip(X, Y, strict=True))]
    table = csv_of(["bottle", *COLUMNS, "kind"], rows)
    return client.post("/v1/datasets", content=table, params={"name": "metric-wines"}).json()["id"]


@pytest.fixture(scope="module")
def pairs(client):
    rng = np.random.default_rng(0)
    drawn = [rng.choice(len(Y), 2, replace=False).tolist() for _ in range(150)]
    rows = [[f"w{i}", f"w{j}", "must" if Y[i] == Y[j] else "cannot"] for i, j in drawn]
    dataset = client.post("/v1/datasets", content=csv_of(["one", "other", "kind"], rows)).json()["id"]
    return {"form": "pairs", "dataset": dataset, "first": "one", "second": "other", "kind": "kind"}


def request_of(dataset, **more):
    algorithm = {"name": "metric_learning"} | more.pop("algorithm", {})
    return {"model": "metric-refused", "dataset": dataset, "features": COLUMNS, "algorithm": algorithm} | more


@pytest.mark.parametrize("method", ["nca", "lmnn"])
def test_a_metric_of_classes_stands_in_front_of_neighbours(client, done, wines, method):
    name = f"metric-{method}"
    done("train", request_of(wines, model=name, target="kind", algorithm={"method": method}))
    version = client.get(f"/v1/models/{name}/versions/1").json()
    assert (version["task"], version["target"]) == ("projection", "kind")
    report = client.get(f"/v1/models/{name}/versions/1/report").json()
    assert len(report["summary"]["column_weights"]) == len(COLUMNS)
    assert report["train"][0]["name"] == "separation"
    behind = {"model": f"{name}-knn", "dataset": wines, "target": "kind", "algorithm": {"name": "knn"}}
    done("train", behind | {"preprocessing": {"projection": {"model": name, "version": 1}}})
    row = dict(zip(COLUMNS, X[0, :6].tolist(), strict=True))
    assert client.post(f"/v1/models/{name}-knn/predict", json={"rows": [row]}).json()["predictions"] == ["kind 0"]


def test_a_metric_of_pairs_needs_no_target(client, done, wines, pairs):
    algorithm = {"method": "pairs", "metric_form": "diagonal"}
    body = request_of(wines, model="metric-pairs", item="bottle", relations=pairs, algorithm=algorithm)
    done("train", body)
    version = client.get("/v1/models/metric-pairs/versions/1").json()
    assert version["task"] == "projection"
    assert version.get("target") is None
    assert version["receipt"]["relations_digest"] == client.get(f"/v1/datasets/{pairs['dataset']}").json()["digest"]
    weights = client.get("/v1/models/metric-pairs/versions/1/report").json()["summary"]["column_weights"]
    assert all(weight >= 0 for weight in weights)
    row = dict(zip(COLUMNS, X[0, :6].tolist(), strict=True))
    predicted = client.post("/v1/models/metric-pairs/predict", json={"rows": [row]}).json()["predictions"]
    assert np.shape(predicted) == (1, 6)


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({}, ["/algorithm/method"]),
        ({"target": "kind", "algorithm": {"method": "pairs"}}, ["/algorithm/method", "/algorithm/method"]),
        ({"target": "kind", "algorithm": {"metric_form": "diagonal", "n_components": 2}}, ["/algorithm/n_components"]),
        ({"target": "kin"}, ["/algorithm/method", "/target"]),
        ({"algorithm": {"method": "itml"}}, ["/algorithm/method"]),
    ],
)
def test_what_does_not_fit_is_refused_before_the_job(client, wines, changes, pointers):
    response = client.post("/v1/jobs/train", json=request_of(wines, **changes))
    assert response.status_code == 422
    assert sorted(error["pointer"] for error in response.json()["errors"]) == pointers


def test_classes_and_pairs_are_not_mixed(client, wines, pairs):
    body = request_of(wines, target="kind", item="bottle", relations=pairs)
    (error,) = client.post("/v1/jobs/train", json=body).json()["errors"]
    assert (error["pointer"], error["code"]) == ("/algorithm/method", "not_taken")


def test_clusters_learn_metrics_and_list_the_pairs_they_violate(client, done, wines, pairs):
    algorithm = {"name": "mpck_means", "n_clusters": 3, "n_init": 2}
    body = {"model": "metric-clusters", "dataset": wines, "features": COLUMNS, "item": "bottle", "relations": pairs}
    done("train", body | {"algorithm": algorithm})
    summary = client.get("/v1/models/metric-clusters/versions/1/report").json()["summary"]
    assert np.shape(summary["column_weights"]) == (3, 6)
    violated = summary["must_link_violated"] + summary["cannot_link_violated"]
    assert len(summary["violated_pairs"]) == violated
    assert all(item.startswith("w") for pair in summary["violated_pairs"] for item in pair["items"])
    row = dict(zip(COLUMNS, X[0, :6].tolist(), strict=True))
    found = client.post("/v1/models/metric-clusters/predict?include=distance", json={"rows": [row]}).json()
    assert found["predictions"][0] in range(3)
    table = csv_of(["one", "other", "kind"], [["w0", "w1", "must"], ["w1", "w2", "must"], ["w0", "w2", "cannot"]])
    odd = pairs | {"dataset": client.post("/v1/datasets", content=table).json()["id"]}
    refused = client.post("/v1/jobs/train", json=body | {"algorithm": algorithm, "relations": odd})
    assert refused.status_code == 422
    assert [fault["pointer"] for fault in refused.json()["errors"]] == ["/relations/rows/2/kind"]
