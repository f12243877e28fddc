"""Relations between rows over HTTP: a square table of dissimilarities, and edges of another dataset."""

import csv
import io

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, squareform

ROWS = np.random.default_rng(11).normal(size=(24, 2)) + 5 * (np.arange(24) % 3)[:, None]
NAMES = [f"city {i}" for i in range(24)]
SQUARE = cdist(ROWS, ROWS, "cityblock")
DISSIMILARITIES = {"form": "square", "meaning": "dissimilarity"}


def together(labels):
    labels = np.asarray(labels)
    return labels[:, None] == labels


def csv_of(header, rows):
    file = io.StringIO()
    csv.writer(file).writerows([header, *rows])
    return file.getvalue().encode()


@pytest.fixture
def upload(client):
    def send(header, rows):
        return client.post("/v1/datasets", content=csv_of(header, rows)).json()["id"]

    return send


@pytest.fixture
def square(upload):
    return upload(["city", *NAMES], [[name, *row] for name, row in zip(NAMES, SQUARE.tolist(), strict=True)])


@pytest.fixture
def cities(upload):
    return upload(["city", "east", "north"], [[name, *row] for name, row in zip(NAMES, ROWS.tolist(), strict=True)])


def agglomerative(model, dataset, **more):
    algorithm = {"name": "agglomerative", "linkage": "average", "n_clusters": 3} | more.pop("algorithm", {})
    return {"model": model, "dataset": dataset, "item": "city", "algorithm": algorithm} | more


def test_a_square_of_dissimilarities_is_clustered_as_scipy_does(client, done, square):
    done("train", agglomerative("distances", square, relations=DISSIMILARITIES))
    tree = linkage(squareform(SQUARE, checks=False), "average")
    cut = client.post("/v1/models/distances/cut", json={"n_clusters": 5}).json()
    assert cut["items"] == NAMES
    np.testing.assert_array_equal(together(cut["labels"]), together(fcluster(tree, 5, "maxclust")))
    report = client.get("/v1/models/distances/versions/1/report").json()
    assert {metric["name"] for metric in report["train"]} == {"silhouette", "size", "cophenetic_correlation"}
    new = dict.fromkeys(NAMES, 40.0) | {"city 7": 0.5}
    own = client.post("/v1/models/distances/cut", json={"n_clusters": 3}).json()["labels"][7]
    url = "/v1/models/distances/predict"
    assert client.post(url, json={"rows": [new]}).json()["predictions"] == [own]
    matrix = io.BytesIO()
    np.save(matrix, SQUARE)
    found = client.post(url, content=matrix.getvalue(), headers={"Content-Type": "application/x-npy"}).json()
    np.testing.assert_array_equal(together(found["predictions"]), together(fcluster(tree, 3, "maxclust")))


def test_the_number_of_clusters_is_found_by_the_silhouette_of_the_square(client, done, square):
    request = agglomerative("chosen", square, relations=DISSIMILARITIES)
    grid = [{"pointer": "/algorithm/n_clusters", "values": [2, 3, 4, 6]}]
    result = done("search", request | {"grid": grid, "metric": "silhouette"})["result"]
    assert result["candidates"][result["chosen"]]["settings"][0]["value"] == 3
    refused = client.post("/v1/jobs/search", json=request | {"grid": grid, "metric": "gap"})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/metric"]


def test_rows_of_a_square_are_evaluated_only_where_they_are_held_out(client, done, square):
    done("train", agglomerative("held", square, relations=DISSIMILARITIES, validation={"test_fraction": 0.25}))
    report = client.get("/v1/models/held/versions/1/report").json()
    assert {metric["name"] for metric in report["test"]} == {"silhouette", "size"}
    refused = client.post("/v1/jobs/evaluate", json={"model": "held", "dataset": square})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/model"]


def test_a_square_that_is_none_is_refused_with_its_cells_before_the_job(client, upload):
    odd = SQUARE.copy()
    odd[2, 4] += 1
    dataset = upload(["city", *NAMES], [[name, *row] for name, row in zip(NAMES, odd.tolist(), strict=True)])
    for address in ("train", "train:validate"):
        refused = client.post(f"/v1/jobs/{address}", json=agglomerative("odd", dataset, relations=DISSIMILARITIES))
        assert refused.status_code == 422
        cells = ["/dataset/rows/2/city 4", "/dataset/rows/4/city 2"]
        assert [fault["pointer"] for fault in refused.json()["errors"]] == cells
    grid = [{"pointer": "/algorithm/n_clusters", "values": [2, 3]}]
    searched = agglomerative("odd", dataset, relations=DISSIMILARITIES) | {"grid": grid, "metric": "silhouette"}
    refused = client.post("/v1/jobs/search:validate", json=searched)
    assert [fault["pointer"] for fault in refused.json()["errors"]] == cells


def test_a_square_that_is_too_large_to_be_read_at_once_fails_in_the_job(ended, upload):
    rows = np.random.default_rng(1).normal(size=(501, 2))
    odd, names = cdist(rows, rows), [f"city {i}" for i in range(501)]
    odd[2, 4] += 1
    dataset = upload(["city", *names], [[name, *row] for name, row in zip(names, odd.tolist(), strict=True)])
    error = ended("train", agglomerative("odd", dataset, relations=DISSIMILARITIES))["error"]
    assert error["code"] == "invalid_data"
    assert [fault["pointer"] for fault in error["errors"]] == ["/rows/2/city 4", "/rows/4/city 2"]


def test_edges_of_another_dataset_join_the_rows_they_name(client, done, cities, upload):
    pairs = [(i, j) for i in range(24) for j in range(i)]
    roads = upload(["from", "to", "km"], [[NAMES[i], NAMES[j], SQUARE[i, j]] for i, j in pairs])
    edges = {"form": "edges", "dataset": roads, "first": "from", "second": "to", "value": "km"}
    done("train", agglomerative("joined-roads", cities, relations=edges | {"meaning": "dissimilarity"}))
    cut = client.post("/v1/models/joined-roads/cut", json={"n_clusters": 4, "merges": True}).json()
    tree = linkage(squareform(SQUARE, checks=False), "average")
    np.testing.assert_array_equal(together(cut["labels"]), together(fcluster(tree, 4, "maxclust")))
    np.testing.assert_allclose([merge["height"] for merge in cut["merges"]], tree[:, 2], rtol=1e-9)
    receipt = client.get("/v1/models/joined-roads/versions/1").json()["receipt"]
    assert receipt["relations_digest"] == client.get(f"/v1/datasets/{roads}").json()["digest"]


@pytest.mark.parametrize(
    ("more", "faults"),
    [
        ({"algorithm": {"name": "kmeans"}}, [("/relations/form", "not_taken")]),
        ({"algorithm": {"linkage": "ward"}}, [("/algorithm/linkage", "invalid")]),
        ({"relations": {"form": "square", "meaning": "similarity"}}, [("/relations/meaning", "not_taken")]),
        ({"item": None}, [("/dataset", "wrong_kind"), ("/relations/form", "not_square")]),
    ],
)
def test_relations_that_do_not_fit_are_refused_by_name(client, square, more, faults):
    request = agglomerative("refused", square, relations=DISSIMILARITIES)
    if more.get("algorithm", {}).get("name"):
        request |= more
    else:
        request["algorithm"] |= more.pop("algorithm", {})
        request |= more
    response = client.post("/v1/jobs/train:validate", json=request)
    assert response.status_code == 422
    assert sorted((error["pointer"], error["code"]) for error in response.json()["errors"]) == faults


def test_pairs_of_another_dataset_keep_rows_together_and_apart(client, done, cities, upload):
    truth = np.arange(24) // 8
    rows = [
        [NAMES[i], NAMES[j], "must" if truth[i] == truth[j] else "cannot"]
        for i, j in [(i, i + 1) for i in range(23)] + [(0, 9), (1, 17), (8, 20)]
    ]
    named = {"form": "pairs", "first": "one", "second": "other", "kind": "kind"}
    pairs = upload(["one", "other", "kind"], rows)
    params = {"name": "pck_means", "n_clusters": 3, "must_link_weight": 1e6, "cannot_link_weight": 1e6}
    request = {"model": "kept", "dataset": cities, "item": "city", "algorithm": params}
    done("train", request | {"relations": named | {"dataset": pairs}})
    summary = client.get("/v1/models/kept/versions/1/report").json()["summary"]
    assert (summary["must_link_pairs"], summary["cannot_link_pairs"]) == (21, 5)
    assert (summary["must_link_violated"], summary["cannot_link_violated"]) == (0, 0)
    assert sorted(summary["sizes"]) == [8, 8, 8]
    odd = upload(["one", "other", "kind"], [*rows, [NAMES[0], NAMES[5], "cannot"]])
    for name in ("pck_means", "mpck_means"):
        learned = request | {"relations": named | {"dataset": odd}, "algorithm": {"name": name, "n_clusters": 3}}
        refused = client.post("/v1/jobs/train", json=learned)
        assert refused.status_code == 422
        (fault,) = refused.json()["errors"]
        assert fault["pointer"] == "/relations/rows/26/kind"
        assert "must be together" in fault["detail"]
        grid = [{"pointer": "/algorithm/n_clusters", "values": [2, 3]}]
        searched = client.post("/v1/jobs/search", json=learned | {"grid": grid, "metric": "silhouette"})
        assert (searched.status_code, searched.json()["errors"]) == (422, [fault])
    training = {key: value for key, value in learned.items() if key not in {"model", "dataset"}}
    repeated = client.post("/v1/jobs/bootstrap", json={"dataset": cities, "training": training})
    assert repeated.status_code == 422
    assert [error["pointer"] for error in repeated.json()["errors"]] == ["/training/relations"]
    without = {key: value for key, value in request.items() if key != "item"}
    refused = client.post("/v1/jobs/train:validate", json=without | {"relations": named | {"dataset": pairs}})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/item"]
