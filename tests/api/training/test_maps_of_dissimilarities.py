"""Maps from dissimilarities over HTTP: a square table with gaps, edges alone, columns; and places of new rows."""

import csv
import io

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist

ROWS = np.random.default_rng(21).normal(size=(24, 2)) * [3, 1]
NAMES = [f"place {i:02}" for i in range(24)]
SQUARE = cdist(ROWS, ROWS)
DISSIMILARITIES = {"form": "square", "meaning": "dissimilarity"}


def with_gaps(share=0.3):
    hidden = np.triu(np.random.default_rng(3).random(SQUARE.shape) < share, 1)
    return np.where(hidden | hidden.T, np.nan, SQUARE)


@pytest.fixture
def upload(client):
    def send(header, rows):
        file = io.StringIO()
        csv.writer(file).writerows([header, *rows])
        return client.post("/v1/datasets", content=file.getvalue().encode()).json()["id"]

    return send


@pytest.fixture
def squared(upload):
    def send(values):
        cells = [["" if np.isnan(value) else value for value in row] for row in values.tolist()]
        return upload(["place", *NAMES], [[name, *row] for name, row in zip(NAMES, cells, strict=True)])

    return send


def request(model, dataset, name, **params):
    algorithm = {"name": name} | params
    return {"model": model, "dataset": dataset, "item": "place", "relations": DISSIMILARITIES, "algorithm": algorithm}


def predicted(client, model, rows):
    response = client.post(f"/v1/models/{model}/predict", json={"rows": rows})
    assert response.status_code == 200, response.text
    return np.array(response.json()["predictions"])


def test_a_square_with_gaps_is_mapped_and_rows_with_gaps_are_placed(client, done, squared):
    done("train", request("smacof-gaps", squared(with_gaps()), "smacof", tol=1e-12, max_iter=5000))
    report = client.get("/v1/models/smacof-gaps/versions/1/report").json()
    summary = report["summary"]
    assert summary["normalised_stress"] < 1e-20
    assert [one["item"] for one in summary["coordinates"]] == NAMES
    curve = next(one["y"] for one in report["curves"] if one["name"] == "normalised_stress")
    assert (np.diff(curve) <= 0).all()
    places = np.array([one["coordinates"] for one in summary["coordinates"]])
    assert procrustes(ROWS, places)[2] < 1e-12
    known = [{n: None if np.isnan(v) else v for n, v in zip(NAMES, row, strict=True)} for row in with_gaps()]
    np.testing.assert_array_equal(predicted(client, "smacof-gaps", known), places)
    new = dict(zip(NAMES, cdist([[1.0, 0.5]], ROWS)[0], strict=True)) | dict.fromkeys(NAMES[5:])
    found = predicted(client, "smacof-gaps", [new, new])
    np.testing.assert_allclose(cdist(found, places), cdist([[1.0, 0.5]] * 2, ROWS), atol=1e-6)


def test_classical_scaling_needs_every_pair(client, done, squared):
    done("train", request("classical-square", squared(SQUARE), "mds"))
    report = client.get("/v1/models/classical-square/versions/1/report").json()
    assert report["summary"]["negative_eigenvalues"] == 0
    assert sum(report["summary"]["explained_ratio"]) == pytest.approx(1)
    assert next(m for m in report["train"] if m["name"] == "stress")["value"] == pytest.approx(0, abs=1e-7)
    new = dict(zip(NAMES, cdist([[2.0, -1]], ROWS)[0], strict=True))
    places = np.array([one["coordinates"] for one in report["summary"]["coordinates"]])
    found = predicted(client, "classical-square", [new])
    np.testing.assert_allclose(cdist(found, places), cdist([[2.0, -1]], ROWS), atol=1e-9)
    refused = client.post("/v1/jobs/train", json=request("classical-gaps", squared(with_gaps()), "mds"))
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"].startswith("/dataset/rows/0/")
    missing = client.post("/v1/models/classical-square/predict", json={"rows": [new | {NAMES[3]: None}]})
    assert missing.status_code in {200, 422}


@pytest.mark.parametrize("name", ["mds", "smacof"])
def test_items_of_edges_are_mapped_and_predicted_by_name(client, done, upload, name):
    pairs = [(i, j) for i in range(24) for j in range(i)]
    roads = upload(["from", "to", "km"], [[NAMES[i], NAMES[j], SQUARE[i, j]] for i, j in pairs])
    edges = {"form": "edges", "dataset": roads, "first": "from", "second": "to", "value": "km"}
    body = {"model": f"roads-by-{name}", "item": "place", "relations": edges | {"meaning": "dissimilarity"}}
    done("train", body | {"algorithm": {"name": name}})
    found = predicted(client, f"roads-by-{name}", [{"place": one} for one in NAMES])
    assert procrustes(ROWS, found)[2] < 1e-8
    report = client.get(f"/v1/models/roads-by-{name}/versions/1/report").json()
    assert report["train"] == []
    near = client.post(f"/v1/models/roads-by-{name}/neighbours", json={"rows": [{"place": NAMES[4]}], "n_neighbors": 3})
    (of_one,) = near.json()["neighbours"]
    by_name = {"items": [NAMES[4]], "n_neighbors": 3}
    assert client.post(f"/v1/models/roads-by-{name}/neighbours", json=by_name).json()["neighbours"] == [of_one]
    order = np.argsort(SQUARE[4])[:3]
    assert [one["item"] for one in of_one] == [NAMES[i] for i in order]
    np.testing.assert_allclose([one["distance"] for one in of_one], SQUARE[4][order], atol=1e-4)
    assert all({"target", "share"}.isdisjoint(one) for one in of_one)
    unknown = client.post(f"/v1/models/roads-by-{name}/predict", json={"rows": [{"place": "nowhere"}]})
    assert [one["code"] for one in unknown.json()["errors"]] == ["unknown_item"]


def test_edges_with_weights_are_mapped_by_them(client, done, upload):
    """A wrong value of weight 0 changes nothing; with a weight it moves the map, the more the larger it is."""
    pairs = [(i, j) for i in range(24) for j in range(i)]

    def mapped(model, wrong):
        rows = [[NAMES[i], NAMES[j], SQUARE[i, j], 1 + j] for i, j in pairs if (i, j) != (9, 4)]
        roads = upload(["from", "to", "km", "sure"], [*rows, [NAMES[9], NAMES[4], 99, wrong]])
        edges = {"form": "edges", "dataset": roads, "first": "from", "second": "to", "value": "km", "weight": "sure"}
        body = {"model": model, "item": "place", "relations": edges | {"meaning": "dissimilarity"}}
        done("train", body | {"algorithm": {"name": "smacof", "tol": 1e-12, "max_iter": 5000}})
        summary = client.get(f"/v1/models/{model}/versions/1/report").json()["summary"]
        places = predicted(client, model, [{"place": one} for one in NAMES])
        return procrustes(ROWS, places)[2], summary["known_pairs"]

    apart, known = mapped("roads-without-one", 0)
    assert (apart < 1e-12, known) == (True, len(pairs) - 1)
    light, known = mapped("roads-lightly", 0.001)
    heavy, _ = mapped("roads-heavily", 1)
    assert known == len(pairs)
    assert 1e-9 < light < heavy / 100


def test_weights_of_edges_are_refused_where_they_are_wrong_or_not_taken(client, upload):
    rows = [["a", "b", 1, 2, -1, "x"], ["b", "c", 1, "", 1, "y"]]
    roads = upload(["from", "to", "km", "gaps", "below", "word"], rows)

    def faults(weight, **algorithm):
        given = {"form": "edges", "dataset": roads, "first": "from", "second": "to", "value": "km", "weight": weight}
        body = {"model": "m", "relations": given | {"meaning": "dissimilarity"}, "algorithm": algorithm}
        response = client.post("/v1/jobs/train", json=body)
        assert response.status_code == 422
        return {(one["pointer"], one["code"]) for one in response.json()["errors"]}

    at = "/relations/weight"
    assert faults("gaps", name="smacof") == faults("below", name="smacof") == {(at, "bad_weight")}
    assert faults("word", name="smacof") == {(at, "wrong_kind")}
    assert faults("wait", name="smacof") == {(at, "unknown_column")}
    assert faults("km", name="agglomerative", linkage="single") == {(at, "not_taken")}


def test_groups_without_a_known_pair_between_them_fail(ended, squared):
    apart = SQUARE.copy()
    apart[:12, 12:] = apart[12:, :12] = np.nan
    error = ended("train", request("smacof-apart", squared(apart), "smacof"))["error"]
    assert (error["code"], "2 groups" in error["detail"]) == ("invalid_data", True)


def test_columns_are_mapped_by_any_metric_and_stand_in_front_of_a_learner(client, done, upload):
    rows = upload(["place", "east", "north"], [[n, *row] for n, row in zip(NAMES, ROWS.tolist(), strict=True)])
    algorithm = {"name": "smacof", "metric": "manhattan", "n_components": 3}
    body = {"model": "smacof-manhattan", "dataset": rows, "item": "place", "algorithm": algorithm}
    done("train", body | {"preprocessing": {"scaling": "none"}})
    found = predicted(client, "smacof-manhattan", [{"east": e, "north": n} for e, n in ROWS.tolist()])
    left = np.square(cdist(ROWS, ROWS, "cityblock") - cdist(found, found)).sum() / 2
    summary = client.get("/v1/models/smacof-manhattan/versions/1/report").json()["summary"]
    assert summary["stress"] == pytest.approx(left)
