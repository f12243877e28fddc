"""A training that starts from a stored version over HTTP: its centres, its receipt, and what is refused."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

AT = "/initialise_from"


BLOBS = {1: [[0, 0], [2, 20], [104, 10]], 2: [[0, 0], [2, 20], [100, 0], [108, 20]]}
"""Centres of groups far from each other, in two tables: one centre of the first is between two groups of the second."""


def table(seed, rows=90):
    rng = np.random.default_rng(seed)
    centres = np.array(BLOBS[seed])
    return rng.normal(size=(rows, 2)) * [0.3, 1] + centres[np.arange(rows) % len(centres)]


@pytest.fixture(scope="module")
def datasets(client):
    def upload(x):
        text = "\n".join(["a,b", *(f"{a!r},{b!r}" for a, b in x.tolist())])
        return client.post("/v1/datasets", content=text).json()["id"]

    return [upload(table(seed)) for seed in (1, 2)]


def request(model, dataset, clusters=3, **more):
    return {"model": model, "dataset": dataset, "algorithm": {"name": "kmeans", "n_clusters": clusters}} | more


@pytest.fixture(scope="module")
def first(done, datasets):
    done("train", request("start-here", datasets[0], seed=3, algorithm={"name": "kmeans", "n_clusters": 3}))
    return {"model": "start-here", "version": 1}


def centres(client, model):
    report = client.get(f"/v1/models/{model}/versions/1/report").json()
    return np.array([[row["values"][name] for name in "ab"] for row in report["prototypes"]]), report


def test_the_fit_is_that_of_scikit_learn_from_the_same_centres(client, done, datasets, first):
    """In columns of other scales: the second table has its own means and deviations."""
    done("train", request("started", datasets[1], initialise_from=first))
    (start, _), (found, report) = centres(client, "start-here"), centres(client, "started")
    x = table(2)
    scale = x.std(axis=0)
    peer = KMeans(3, init=(start - x.mean(axis=0)) / scale, n_init=1, tol=0, max_iter=300)
    peer.fit((x - x.mean(axis=0)) / scale)
    np.testing.assert_allclose(found, peer.cluster_centers_ * scale + x.mean(axis=0), rtol=1e-9)
    assert report["converged"]
    receipt = client.get("/v1/models/started/versions/1").json()["receipt"]["initialised_from"]
    own = client.get("/v1/models/start-here/versions/1").json()
    assert receipt == first | {"digest": own["digest"], "data_digest": own["dataset_digest"]}


def test_a_fit_that_starts_at_its_own_end_stays_there(client, done, datasets, first):
    done("train", request("stays", datasets[0], initialise_from=first))
    (start, _), (found, report) = centres(client, "start-here"), centres(client, "stays")
    np.testing.assert_allclose(found, start, rtol=1e-12)
    assert report["iterations"] <= 1


def test_the_version_that_was_started_from_is_not_deleted(client, done, datasets, first):
    done("train", request("started-too", datasets[1], initialise_from=first))
    for path in ("/v1/models/start-here/versions/1", "/v1/models/start-here"):
        refused = client.delete(path)
        assert (refused.status_code, refused.json()["code"]) == (409, "version_in_use")
        assert "started-too/1" in refused.json()["detail"]
    assert client.delete("/v1/models/started-too").status_code == 204


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"algorithm": {"name": "agglomerative"}}, [(AT, "not_offered")]),
        ({"algorithm": {"name": "linear_sgd"}, "target": "b"}, [(AT, "invalid")]),
        ({"algorithm": {"name": "kmeans", "n_clusters": 4}}, [("/algorithm/n_clusters", "invalid")]),
        ({"features": ["a"]}, [(AT, "wrong_columns")]),
        ({"preprocessing": {"basis": [{"kind": "polynomial", "degree": 2}]}}, [("/preprocessing/basis", "invalid")]),
        ({"weights": "c"}, [("/weights", "unknown_column")]),
        ({"initialise_from": {"model": "start-here", "version": 1, "alias": "champion"}}, [(f"{AT}/alias", "invalid")]),
    ],
)
def test_what_cannot_start_from_it_is_refused_by_name(client, datasets, first, changes, faults):
    response = client.post("/v1/jobs/train:validate", json=request("no", datasets[1], initialise_from=first) | changes)
    assert response.status_code == 422
    assert [(error["pointer"], error["code"]) for error in response.json()["errors"]] == faults


def test_a_version_that_does_not_exist_is_not_found(client, datasets):
    missing = request("no", datasets[1], initialise_from={"model": "never-trained"})
    assert client.post("/v1/jobs/train", json=missing).status_code == 404
