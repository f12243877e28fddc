"""Edges as the only table of a training over HTTP: rows are their items, and predictions are by item."""

import csv
import io

import numpy as np
import pyarrow as pa
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, squareform
from starlette.testclient import TestClient

from app.main import create_app
from app.ml.operations import query_entries

ROWS = np.random.default_rng(12).normal(size=(20, 2)) + 5 * (np.arange(20) % 4)[:, None]
NAMES = sorted(f"town {i}" for i in range(20))
SQUARE = cdist(ROWS, ROWS)
TREE = linkage(squareform(SQUARE, checks=False), "average")
PAIRS = [(i, j) for i in range(20) for j in range(i)]
URL = "/v1/models/towns-by-road/predict"


def csv_of(header, rows):
    file = io.StringIO()
    csv.writer(file).writerows([header, *rows])
    return file.getvalue().encode()


def roads(names):
    """A row for every pair, in no order."""
    order = np.random.default_rng(5).permutation(len(PAIRS))
    return csv_of(["from", "to", "km"], [[names[PAIRS[p][0]], names[PAIRS[p][1]], SQUARE[PAIRS[p]]] for p in order])


def request(model, dataset, **more):
    edges = {"form": "edges", "dataset": dataset, "first": "from", "second": "to", "value": "km"}
    algorithm = {"name": "agglomerative", "linkage": "average", "n_clusters": 4}
    return {"model": model, "relations": edges | {"meaning": "dissimilarity"}, "algorithm": algorithm} | more


def together(labels):
    labels = np.asarray(labels)
    return labels[:, None] == labels


CLUSTERS = together(fcluster(TREE, 4, "maxclust"))


@pytest.fixture(scope="module")
def dataset(client):
    return client.post("/v1/datasets?name=all-the-roads", content=roads(NAMES)).json()


@pytest.fixture(scope="module")
def trained(done, dataset):
    """Named, not identified: the job keeps the id."""
    return done("train", request("towns-by-road", "all-the-roads", item="town"))


def test_items_are_clustered_as_scipy_does_and_predicted_by_name(client, trained, dataset):
    assert trained["dataset"] == dataset["id"]
    cut = client.post("/v1/models/towns-by-road/cut", json={"n_clusters": 4, "merges": True}).json()
    assert cut["items"] == NAMES
    np.testing.assert_array_equal(together(cut["labels"]), CLUSTERS)
    np.testing.assert_allclose([merge["height"] for merge in cut["merges"]], TREE[:, 2], rtol=1e-9)
    by_json = client.post(URL, json={"rows": [{"town": name} for name in NAMES]}).json()
    assert by_json["predictions"] == cut["labels"]
    assert by_json["flags"] == []
    by_csv = client.post(URL, content=csv_of(["town"], [[NAMES[7]]]), headers={"Content-Type": "text/csv"}).json()
    assert by_csv["predictions"] == [cut["labels"][7]]
    tensor = {"name": "town", "datatype": "BYTES", "shape": [2, 1], "data": [NAMES[3], NAMES[19]]}
    found = client.post("/v2/models/towns-by-road/infer", json={"inputs": [tensor]}).json()
    assert found["outputs"][0]["data"] == [cut["labels"][3], cut["labels"][19]]


def test_the_report_and_the_receipt_are_of_the_edges(client, trained, dataset):
    report = client.get("/v1/models/towns-by-road/versions/1/report").json()
    assert report["rows_train"] == 20
    assert {metric["name"] for metric in report["train"]} == {"size"}
    assert report["summary"]["clusters"] == 4
    version = client.get("/v1/models/towns-by-road/versions/1").json()
    receipt = version["receipt"]
    assert receipt["relations_digest"] == receipt["data_digest"] == version["dataset_digest"] == dataset["digest"]
    assert receipt["spec"]["relations"]["dataset"] == version["dataset"] == dataset["id"]
    (item,) = version["inputs"]
    assert (item["name"], item["levels"], item["strict_levels"], item["nullable"]) == ("town", NAMES, True, False)


@pytest.mark.parametrize("name", ["town 99", "", None, 7])
def test_an_item_that_is_none_is_refused_and_the_others_are_predicted(client, trained, name):
    rows = {"rows": [{"town": NAMES[0]}, {"town": name}]}
    refused = client.post(URL, json=rows)
    code = {None: "missing_value", "": "missing_value", 7: "not_a_string"}.get(name, "unknown_item")
    assert refused.status_code == 422
    assert [(e["pointer"], e["code"]) for e in refused.json()["errors"]] == [("/rows/1/town", code)]
    passed = client.post(f"{URL}?on_error=null", json=rows).json()
    assert (passed["predictions"][0] is None, passed["predictions"][1]) == (False, None)


def test_a_dataset_of_items_is_predicted_and_one_of_others_is_refused(client, done, ended, trained):
    known = client.post("/v1/datasets", content=csv_of(["n", "town"], enumerate(NAMES))).json()["id"]
    result = done("predict", {"model": "towns-by-road", "dataset": known, "keep": ["town"]})["result"]
    rows = client.get(f"/v1/datasets/{result['result_dataset']}/rows").json()["data"]
    np.testing.assert_array_equal(together([row[1] for row in rows]), CLUSTERS)
    other = client.post("/v1/datasets", content=csv_of(["n", "town"], [[1, NAMES[0]], [2, "elsewhere"]])).json()["id"]
    error = ended("predict", {"model": "towns-by-road", "dataset": other})["error"]
    assert [(e["pointer"], e["code"]) for e in error["errors"]] == [("/rows/1/town", "unknown_item")]
    evaluated = client.post("/v1/jobs/evaluate", json={"model": "towns-by-road", "dataset": known})
    assert [e["pointer"] for e in evaluated.json()["errors"]] == ["/model"]


EDGES_ONLY = {key: value for key, value in request("", "all-the-roads").items() if key != "model"}
REFERENCE = {"model": "towns-by-road", "version": 1}
GRID = [{"pointer": "/algorithm/n_clusters", "values": [2, 3]}]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("evaluate", REFERENCE),
        ("predict", REFERENCE),
        ("compare", {"versions": [REFERENCE, REFERENCE]}),
        ("bootstrap", {"model": "towns-by-road"}),
        ("bootstrap", {"training": EDGES_ONLY}),
        ("search", EDGES_ONLY | {"grid": GRID}),
    ],
)
def test_other_jobs_name_the_dataset_that_they_lack(client, trained, kind, body):
    refused = client.post(f"/v1/jobs/{kind}", json=body)
    assert refused.status_code == 422
    assert [(e["pointer"], e["code"]) for e in refused.json()["errors"]] == [("/dataset", "missing")]


def test_jobs_that_need_more_than_items_refuse_a_dataset_of_them(client, trained):
    items = client.post("/v1/datasets", content=csv_of(["n", "town"], enumerate(NAMES))).json()["id"]
    bodies = {
        "compare": {"versions": [REFERENCE, REFERENCE]},
        "bootstrap": {"model": "towns-by-road"},
        "update": {"model": "towns-by-road"},
        "calibrate": REFERENCE,
        "combine": {"model": "towns-none", "members": [REFERENCE]},
    }
    found = {kind: client.post(f"/v1/jobs/{kind}", json=body | {"dataset": items}) for kind, body in bodies.items()}
    assert {kind: response.status_code for kind, response in found.items()} == dict.fromkeys(bodies, 422)


def test_items_may_be_numbers(client, done):
    numbers = [*range(100, 120)]
    edges = client.post("/v1/datasets", content=roads(numbers)).json()["id"]
    done("train", request("towns-by-number", edges))
    url = "/v1/models/towns-by-number/predict"
    found = [client.post(url, json={"rows": [{"item": of(n)} for n in numbers]}).json() for of in (int, str)]
    np.testing.assert_array_equal(together(found[0]["predictions"]), CLUSTERS)
    assert found[0]["predictions"] == found[1]["predictions"]
    sent = client.post("/v1/datasets", content=csv_of(["item", "n"], zip(numbers, numbers, strict=True))).json()["id"]
    result = done("predict", {"model": "towns-by-number", "dataset": sent})["result"]
    table = client.get(f"/v1/datasets/{result['result_dataset']}/rows").json()["data"]
    assert [row[0] for row in table] == found[0]["predictions"]


def test_arrow_bodies_name_items_too(client, trained):
    sink = io.BytesIO()
    table = pa.table({"town": NAMES[:3]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
    found = client.post(URL, content=sink.getvalue(), headers=headers).json()["predictions"]
    assert found == client.post(URL, json={"rows": [{"town": name} for name in NAMES[:3]]}).json()["predictions"]


def test_what_is_about_columns_of_rows_is_refused_by_name(client, dataset):
    more = {
        "target": "km", "features": ["km"], "weights": "km", "sigma": "km", "difficulty": "km",
        "kinds": {"km": "categorical"}, "preprocessing": {"scaling": "minmax"},
        "validation": {"method": "kfold", "test_fraction": 0.2, "group": "from", "time": "km"},
    }  # fmt: skip
    response = client.post("/v1/jobs/train:validate", json=request("refused", dataset["id"], **more))
    assert response.status_code == 422
    roles = {f"/{name}" for name in more if name != "validation"}
    parts = {f"/validation/{name}" for name in more["validation"]}
    assert {error["pointer"] for error in response.json()["errors"]} == roles | parts


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"relations": None}, ["/dataset"]),
        ({"relations": {"form": "square", "meaning": "dissimilarity"}}, ["/dataset"]),
        ({"algorithm": {"name": "kmeans"}}, ["/relations/form"]),
        ({"algorithm": {"name": "agglomerative", "linkage": "ward"}}, ["/algorithm/linkage"]),
    ],
)
def test_other_trainings_need_a_dataset(client, dataset, changes, pointers):
    response = client.post("/v1/jobs/train:validate", json=request("refused", dataset["id"], **changes))
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == pointers


def test_edges_that_do_not_connect_their_items_fail_by_name(client, ended):
    lonely = client.post("/v1/datasets", content=csv_of(["from", "to", "km"], [["a", "b", 1], ["c", "d", 2]])).json()
    error = ended("train", request("lonely", lonely["id"]))["error"]
    assert error["code"] == "invalid_data"
    one = client.post("/v1/datasets", content=csv_of(["from", "to", "km"], [["a", "a", 0], ["a", "a", 0]])).json()
    refused = client.post("/v1/jobs/train", json=request("lonely", one["id"])).json()
    assert [fault["pointer"] for fault in refused["errors"]] == ["/relations/dataset"]


def test_no_query_of_a_model_of_items_is_a_server_error(client, trained):
    rows = {"rows": [{"town": NAMES[0]}], "row": {"town": NAMES[0]}}
    for name, entry in query_entries().items():
        fields = entry.query.request.model_fields
        body = {field: value for field, value in rows.items() if field in fields}
        response = client.post(f"/v1/models/towns-by-road/{name}", json=body)
        assert response.status_code < 500, (name, response.text)


def test_the_edges_stay_while_a_job_needs_them(database_factory):
    with TestClient(create_app(database_factory())) as client:
        edges = client.post("/v1/datasets", content=roads(NAMES)).json()["id"]
        job = client.post("/v1/jobs/train", json=request("pinned", edges))
        assert job.status_code == 202
        refused = client.delete(f"/v1/datasets/{edges}")
        assert (refused.status_code, refused.json()["code"]) == (409, "dataset_in_use")
        client.post(f"/v1/jobs/{job.json()['id']}/cancel")
        assert client.delete(f"/v1/datasets/{edges}").status_code == 204
