"""Spectral clustering over HTTP: items of edges, and the queries `spectrum` and `cut_value`."""

import csv
import io

import numpy as np
import pytest

NAMES = [f"person {i}" for i in range(10)]
GROUPS = [0] * 5 + [1] * 5
URL = "/v1/models/spectral-friends"


def csv_of(header, rows):
    file = io.StringIO()
    csv.writer(file).writerows([header, *rows])
    return file.getvalue().encode()


def edges():
    """Two groups of friends, one of them with a member on weak edges, and three edges between the groups."""
    for first in range(10):
        for second in range(first + 1, 10):
            if (first < 5) == (second < 5):
                yield NAMES[first], NAMES[second], 0.3 if first == 0 else 1.0
    yield from ((NAMES[i], NAMES[i + 4], 0.5) for i in (1, 2, 3))


def request(model, dataset, **more):
    relations = {"form": "edges", "dataset": dataset, "first": "a", "second": "b", "value": "hours"}
    algorithm = {"name": "spectral", "n_clusters": 2, "laplacian": "unnormalised"}
    return {"model": model, "relations": relations | {"meaning": "similarity"}, "algorithm": algorithm} | more


@pytest.fixture(scope="module")
def friends(client, done):
    sent = client.post("/v1/datasets", content=csv_of(["a", "b", "hours"], edges())).json()["id"]
    return done("train", request("spectral-friends", sent))


def test_items_of_edges_are_clustered_and_predicted_by_name(client, friends):
    found = client.post(f"{URL}/predict", json={"rows": [{"item": name} for name in NAMES]}).json()["predictions"]
    assert found == [GROUPS[0]] * 5 + [GROUPS[5]] * 5
    summary = client.get(f"{URL}/versions/1/report").json()["summary"]
    assert summary["ratio_cut"] == pytest.approx(0.6)
    assert summary["trace_residual"] < 1e-10
    assert summary["suggested_clusters"] == np.diff(summary["eigenvalues"]).argmax() + 1


def test_the_spectrum_has_eigenvalues_and_a_fiedler_vector(client, friends):
    found = client.post(f"{URL}/spectrum", json={}).json()
    assert found["items"] == NAMES
    assert found["rows"] == [*range(10)]
    assert found["components"] == 1
    assert found["eigenvalues"] == sorted(found["eigenvalues"])
    fiedler = np.array(found["coordinates"])[:, 1]
    assert len(set(np.sign(fiedler[:5]))) == len(set(np.sign(fiedler[5:]))) == 1
    short = client.post(f"{URL}/spectrum", json={"coordinates": False}).json()
    assert "coordinates" not in short
    assert short["eigenvalues"] == found["eigenvalues"]


def test_any_partition_has_its_cut_and_none_is_below_the_bound(client, friends):
    own = client.post(f"{URL}/cut_value", json={}).json()
    assert own["ratio_cut"] == pytest.approx(0.6)
    assert own["trace"] == pytest.approx(0.6, abs=1e-10)
    assert [cluster["size"] for cluster in own["clusters"]] == [5, 5]
    alone = client.post(f"{URL}/cut_value", json={"labels": [0] + [1] * 9}).json()
    assert alone["cut"] == pytest.approx(2.4)
    assert own["bound"] == alone["bound"] <= own["ratio_cut"] < alone["ratio_cut"]
    named = client.post(f"{URL}/cut_value", json={"items": dict(zip(NAMES, [0] + [1] * 9, strict=True))}).json()
    assert named == alone


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"labels": [0, 1]}, ["/labels"]),
        ({"labels": [0] * 10, "items": {"person 1/2": 1}}, ["/items", "/items", "/items/person 1~12"]),
        ({"labels": [-1] * 2}, ["/labels/0", "/labels/1"]),
    ],
)
def test_a_partition_of_other_rows_is_refused(client, friends, body, pointers):
    response = client.post(f"{URL}/cut_value", json=body)
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == pointers


def test_a_full_graph_that_is_not_stored_has_cuts(client, done):
    """Of 2,100 rows 2,203,950 pairs are joined, more than a model stores; sorted into two by one column or not."""
    rows = np.concatenate([np.random.default_rng(0).normal(size=(1050, 2)) + shift for shift in (0, 6)])
    sent = client.post("/v1/datasets", content=csv_of(["a", "b"], rows.tolist())).json()["id"]
    algorithm = {"name": "spectral", "n_clusters": 2, "graph": "full", "width": 5, "n_init": 1}
    body = {"model": "spectral-full", "dataset": sent, "algorithm": algorithm, "preprocessing": {"scaling": "none"}}
    done("train", body)
    own = client.post("/v1/models/spectral-full/cut_value", json={}).json()
    summary = client.get("/v1/models/spectral-full/versions/1/report").json()["summary"]
    assert summary["edges"] > 2**21
    assert (own["cut"], own["normalised_cut"]) == pytest.approx((summary["cut"], summary["normalised_cut"]))
    mixed = client.post("/v1/models/spectral-full/cut_value", json={"labels": [0, 1] * 1050}).json()
    assert own["bound"] == mixed["bound"] <= own["normalised_cut"] < mixed["normalised_cut"]


def test_a_model_without_a_graph_names_what_it_offers(client, numeric):
    response = client.post(f"/v1/models/{numeric('kmeans', None)}/cut_value", json={})
    assert (response.status_code, response.json()["code"]) == (409, "not_offered")


def test_edges_of_any_size_and_graphs_of_many_parts_have_a_result(client, done):
    rows = [["a", "b", 1e308], ["b", "c", 1e308], ["c", "a", 1e308], ["d", "e", 1e-300], ["f", "g", 0.0]]
    sent = client.post("/v1/datasets", content=csv_of(["a", "b", "hours"], rows)).json()["id"]
    done("train", request("spectral-extremes", sent))
    found = client.post("/v1/models/spectral-extremes/cut_value", json={"labels": [0, 1, 0, 1, 0, 1, 0]}).json()
    assert found["cut"] == pytest.approx(np.finfo(float).max)
    spectrum = client.post("/v1/models/spectral-extremes/spectrum", json={}).json()
    assert spectrum["components"] == 5, "a, b and c are one; an edge that vanishes beside theirs joins nothing"
