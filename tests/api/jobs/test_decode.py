"""Predictions lead back to rows over HTTP: centres of clusters and projected rows, in the units of the table."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

SAMPLES = Path(__file__).parents[3] / "app" / "samples"
FLATS = SAMPLES / "wohnungen.csv"


@pytest.fixture(scope="module")
def iris():
    with (SAMPLES / "iris.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])[:4]
    return names, np.array([[float(row[name]) for name in names] for row in rows])


@pytest.fixture
def dataset(client):
    return client.post("/v1/datasets", content=(SAMPLES / "iris.csv").read_bytes()).json()["id"]


@pytest.fixture
def trained(client, dataset, done, iris):
    def train(model, algorithm, **more):
        done("train", {"model": model, "dataset": dataset, "features": iris[0], "algorithm": algorithm, **more})
        return f"/v1/models/{model}"

    return train


def test_centres_are_means_of_the_clusters_in_units_of_the_table(client, trained, iris):
    names, x = iris
    model = trained("decoded-clusters", {"name": "kmeans", "n_clusters": 3})
    labels = client.post(f"{model}/predict", json={"columns": names, "data": x.tolist()}).json()["predictions"]
    means = [x[np.array(labels) == label].mean(axis=0) for label in range(3)]
    prototypes = client.get(f"{model}/versions/1/report").json()["prototypes"]
    decoded = client.post(f"{model}/decode", json={"predictions": [2, 0, 1, 0]}).json()
    for found, expected in ((prototypes, [0, 1, 2]), (decoded["rows"], [2, 0, 1, 0])):
        table = [[row["values"][name] for name in names] for row in found]
        np.testing.assert_allclose(table, [means[label] for label in expected], rtol=1e-9)
    assert (decoded["model"], decoded["version"], decoded["task"]) == ("decoded-clusters", 1, "clustering")


def test_all_components_reconstruct_a_row_and_fewer_lose_what_the_others_hold(client, trained, iris):
    names, x = iris
    rows = [dict(zip(names, row, strict=True)) for row in x[::10].tolist()]
    for components in (4, 2):
        model = trained(f"decoded-map{components}", {"name": "pca", "n_components": components})
        predicted = client.post(f"{model}/predict", json={"rows": rows}).json()["predictions"]
        decoded = client.post(f"{model}/decode", json={"predictions": predicted}).json()["rows"]
        again = client.post(f"{model}/reconstruct", json={"rows": rows}).json()
        assert again["rows"] == decoded
        values = np.array([[row["values"][name] for name in names] for row in again["rows"]])
        lost = np.square((values - x[::10]) / x.std(axis=0)).sum(axis=1)
        np.testing.assert_allclose(again["errors"], lost, rtol=1e-9, atol=1e-12)
        if components == len(names):
            np.testing.assert_allclose(values, x[::10], rtol=1e-12)
        else:
            assert 0.001 < lost.mean() < 0.5
    whole = client.post(
        f"{model}/reconstruct", json={"rows": [dict(zip(names, row, strict=True)) for row in x.tolist()]}
    )
    report = client.get(f"{model}/versions/1/report").json()
    (error,) = [metric["value"] for metric in report["train"] if metric["name"] == "reconstruction_error"]
    assert np.mean(whole.json()["errors"]) == pytest.approx(error, rel=0.01)


def test_a_cluster_of_categories_has_the_most_frequent_one(client, done):
    dataset = client.post("/v1/datasets", content=FLATS.read_bytes()).json()
    kinds = {column["name"]: column["kind"] for column in dataset["columns"]}
    (category, *_) = [name for name, kind in kinds.items() if kind == "categorical"]
    done(
        "train", {"model": "decoded-flats", "dataset": dataset["id"], "algorithm": {"name": "kmeans", "n_clusters": 1}}
    )
    (centre,) = client.get("/v1/models/decoded-flats/versions/1/report").json()["prototypes"]
    rows = client.get(f"/v1/datasets/{dataset['id']}/rows", params={"limit": 1000}).json()
    values = [row[rows["columns"].index(category)] for row in rows["data"]]
    ((name, count),) = Counter(values).most_common(1)
    assert centre["values"][category] == name
    assert centre["shares"][category] == pytest.approx(count / len(values))


LABEL = "A label of this model is a whole number from 0 to 1."
COORDINATES = "A prediction of this model is a list of 2 finite numbers."


@pytest.mark.parametrize(
    ("name", "predictions", "fault"),
    [
        ("kmeans", [0, 2], ("/predictions/1", LABEL)),
        ("kmeans", [[0.0]], ("/predictions/0", LABEL)),
        ("pca", [[0, 1], [1]], ("/predictions/1", COORDINATES)),
        ("pca", [1], ("/predictions/0", COORDINATES)),
    ],
)
def test_what_a_model_does_not_predict_is_refused_with_its_place(client, trained, name, predictions, fault):
    model = trained(f"refusing-{name}", {"name": name} | ({"n_clusters": 2} if name == "kmeans" else {}))
    response = client.post(f"{model}/decode", json={"predictions": predictions})
    assert response.status_code == 422
    assert [(found["pointer"], found["detail"]) for found in response.json()["errors"]] == [fault]


def test_a_model_that_does_not_decode_says_what_it_offers(client, trained, iris):
    model = trained("decoded-straight", {"name": "linear"}, target=iris[0][0], features=iris[0][1:])
    for path, body in (("decode", {"predictions": [1]}), ("reconstruct", {"rows": [{}]})):
        response = client.post(f"{model}/{path}", json=body)
        assert (response.status_code, response.json()["code"]) == (409, "not_offered")
