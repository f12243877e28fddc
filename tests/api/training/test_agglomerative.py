"""Agglomerative clustering over HTTP: its labels, its tree and every cut of it are those of scipy."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet, fcluster, linkage
from scipy.spatial.distance import pdist

IRIS = Path(__file__).parents[3] / "app" / "samples" / "iris.csv"


@pytest.fixture(scope="module")
def iris():
    with IRIS.open() as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])[:4]
    return names, np.array([[float(row[name]) for name in names] for row in rows])


@pytest.fixture
def dataset(client):
    return client.post("/v1/datasets", content=IRIS.read_bytes()).json()["id"]


@pytest.fixture
def request_of(dataset, iris):
    def make(model, **algorithm):
        params = {"name": "agglomerative", **algorithm}
        return {"model": model, "dataset": dataset, "features": iris[0], "algorithm": params}

    return make


def together(labels):
    labels = np.asarray(labels)
    return labels[:, None] == labels


def test_labels_and_cuts_are_those_of_scipy(client, done, request_of, iris):
    names, x = iris
    done(
        "train", request_of("grouped-flowers", linkage="average", n_clusters=3) | {"preprocessing": {"scaling": "none"}}
    )
    tree = linkage(x, "average")
    url = "/v1/models/grouped-flowers"
    predicted = client.post(f"{url}/predict", json={"columns": names, "data": x.tolist()}).json()["predictions"]
    np.testing.assert_array_equal(together(predicted), together(fcluster(tree, 3, "maxclust")))
    for request, expected in (
        ({"n_clusters": 5}, fcluster(tree, 5, "maxclust")),
        ({"height": 1.5}, fcluster(tree, 1.5, "distance")),
        ({}, fcluster(tree, 2, "maxclust")),
    ):
        cut = client.post(f"{url}/cut", json=request).json()
        assert cut["rows"] == list(range(150))
        np.testing.assert_array_equal(together(cut["labels"]), together(expected))
        assert cut["sizes"] == np.bincount(cut["labels"]).tolist()
        assert cut["n_clusters"] == expected.max()
    merges = client.post(f"{url}/cut", json={"merges": True}).json()["merges"]
    np.testing.assert_allclose([merge["height"] for merge in merges], tree[:, 2], rtol=1e-9, atol=1e-12)
    assert [merge["size"] for merge in merges][-1] == 150
    summary = client.get(f"{url}/versions/1/report").json()["summary"]
    assert summary["cophenetic_correlation"] == pytest.approx(cophenet(tree, pdist(x))[0], rel=1e-6)
    assert summary["suggested_clusters"] == 2


def test_cuts_that_the_tree_does_not_have_are_refused(client, done, request_of, iris):
    done("train", request_of("small"))
    done("train", request_of("centres") | {"algorithm": {"name": "kmeans", "n_clusters": 2}})
    both = client.post("/v1/models/small/cut", json={"n_clusters": 2, "height": 1})
    assert (both.status_code, both.json()["errors"][0]["pointer"]) == (422, "/height")
    many = client.post("/v1/models/small/cut", json={"n_clusters": 151})
    assert (many.status_code, many.json()["errors"][0]["pointer"]) == (422, "/n_clusters")
    other = client.post("/v1/models/centres/cut", json={})
    assert other.status_code == 409
    assert "kmeans does not offer the query cut" in other.json()["detail"]


def test_more_pairs_of_rows_than_memory_holds_are_refused_before_the_start(client, request_of):
    rows = "\n".join(map(str, range(40_000)))
    large = client.post("/v1/datasets", content=f"x\n{rows}\n".encode()).json()["id"]
    refused = request_of("large", linkage="complete") | {"dataset": large, "features": ["x"]}
    response = client.post("/v1/jobs/train:validate", json=refused)
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/algorithm", "too_large")
    assert "With 40000 rows of 1 columns these parameters need about 6." in error["detail"]
    for kind in ("single", "ward"):
        allowed = refused | {"algorithm": {"name": "agglomerative", "linkage": kind}}
        assert client.post("/v1/jobs/train:validate", json=allowed).status_code == 200
    odd = refused | {"algorithm": {"name": "agglomerative", "metric": "manhattan"}}
    assert client.post("/v1/jobs/train:validate", json=odd).json()["errors"][0]["pointer"] == "/algorithm/metric"
