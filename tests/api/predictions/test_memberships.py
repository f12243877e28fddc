"""Outputs with several values a row, such as the memberships of a mixture, in every format of a response, over HTTP."""

import csv
import io

import numpy as np
import pyarrow as pa
import pytest
from sklearn import datasets

IRIS = datasets.load_iris().data
NAMES = ["a", "b", "c", "d"]
ROWS = IRIS[[0, 68, 127, 133]]
DENSITY, CLUSTERS = "/v1/models/member-density", "/v1/models/member-clusters"
MIXTURE = {"name": "gmm", "n_components": 3}
INCLUDE = {"include": "memberships,label"}


def lines(rows):
    return "\n".join([",".join(NAMES), *(",".join(map(str, row)) for row in rows.tolist())])


@pytest.fixture(autouse=True, scope="module")
def models(client, done):
    dataset = client.post("/v1/datasets", content=lines(IRIS)).json()["id"]
    done("train", {"model": "member-density", "dataset": dataset, "algorithm": MIXTURE})
    done("train", {"model": "member-clusters", "dataset": dataset, "algorithm": MIXTURE, "task": "clustering"})


@pytest.fixture(scope="module")
def expected(client, models):
    """The response in JSON."""
    return client.post(f"{DENSITY}/predict", params=INCLUDE, json={"columns": NAMES, "data": ROWS.tolist()}).json()


def read_npy(response):
    return np.load(io.BytesIO(response.content))


def test_the_version_and_the_catalogue_state_their_shape(client):
    version = client.get(f"{DENSITY}/versions/1").json()
    shapes = {output["name"]: output["shape"] for output in version["outputs"]}
    assert (version["task"], shapes["memberships"], shapes["label"]) == ("density", "(n, k)", "(n,)")
    assert client.get("/v1/algorithms/gmm").json()["outputs"] == version["outputs"]


def test_json_has_a_list_for_each_row(expected):
    found = np.array(expected["outputs"]["memberships"])
    assert found.shape == (4, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert found.argmax(axis=1).tolist() == expected["outputs"]["label"]
    assert found.max(axis=1).min() < 0.95, "a row between two groups belongs to both"


def test_arrow_has_a_column_of_lists(client, expected):
    body, arrow = {"columns": NAMES, "data": ROWS.tolist()}, {"Accept": "application/vnd.apache.arrow.stream"}
    response = client.post(f"{DENSITY}/predict", params=INCLUDE, json=body, headers=arrow)
    table = pa.ipc.open_stream(response.content).read_all()
    assert table.column_names == ["prediction", "memberships", "label", "flags"]
    assert table.schema.field("memberships").type == pa.list_(pa.float64())
    assert table["memberships"].to_pylist() == expected["outputs"]["memberships"]
    assert table["label"].to_pylist() == expected["outputs"]["label"]


def test_npy_has_a_column_for_each_value(client, expected):
    body, npy = {"columns": NAMES, "data": ROWS.tolist()}, {"Accept": "application/x-npy"}
    found = read_npy(client.post(f"{DENSITY}/predict", params=INCLUDE, json=body, headers=npy))
    parts = [expected["predictions"], expected["outputs"]["memberships"], expected["outputs"]["label"]]
    np.testing.assert_array_equal(found, np.column_stack(parts))


def test_open_inference_has_a_tensor_with_two_dimensions(client, expected):
    inputs = [{"name": "x", "shape": [4, 4], "datatype": "FP64", "data": ROWS.ravel().tolist()}]
    request = {"inputs": inputs, "outputs": [{"name": "memberships"}, {"name": "predict"}]}
    found, predict = client.post("/v2/models/member-density/infer", json=request).json()["outputs"]
    assert (found["name"], found["datatype"], found["shape"]) == ("memberships", "FP64", [4, 3])
    assert np.reshape(found["data"], (4, 3)).tolist() == expected["outputs"]["memberships"]
    assert predict["data"] == expected["predictions"]
    request["outputs"] = [{"name": "memberships", "parameters": {"binary_data": True}}]
    binary = client.post("/v2/models/member-density/infer", json=request)
    head = int(binary.headers["Inference-Header-Content-Length"])
    values = np.frombuffer(binary.content[head:], "<f8").reshape(4, 3)
    assert values.tolist() == expected["outputs"]["memberships"]
    metadata = {one["name"]: one for one in client.get("/v2/models/member-density").json()["outputs"]}
    assert (metadata["memberships"]["datatype"], metadata["memberships"]["shape"]) == ("FP64", [-1, 3])


def test_rows_as_csv_npy_or_arrow_have_the_same(client, expected):
    matrix, sink = io.BytesIO(), pa.BufferOutputStream()
    np.save(matrix, ROWS)
    table = pa.table(dict(zip(NAMES, ROWS.T, strict=True)))
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    bodies = {
        "text/csv": lines(ROWS),
        "application/x-npy": matrix.getvalue(),
        "application/vnd.apache.arrow.stream": sink.getvalue().to_pybytes(),
    }
    for kind, content in bodies.items():
        headers = {"Content-Type": kind, "Accept": "application/json"}
        found = client.post(f"{DENSITY}/predict", params=INCLUDE, content=content, headers=headers).json()
        assert (found["predictions"], found["outputs"]) == (expected["predictions"], expected["outputs"]), kind


def test_a_downloaded_table_has_a_column_for_each_component(client, done, expected):
    dataset = client.post("/v1/datasets", content=lines(ROWS)).json()["id"]
    request = {"model": "member-density", "dataset": dataset, "include": ["memberships"], "keep": ["a"]}
    scored = done("predict", request)["result"]["result_dataset"]
    text = client.get(f"/v1/datasets/{scored}/file", headers={"Accept": "text/csv"}).text
    rows = list(csv.DictReader(text.splitlines()))
    assert list(rows[0])[:5] == ["a", "prediction", "memberships_0", "memberships_1", "memberships_2"]
    found = [[float(row[f"memberships_{j}"]) for j in range(3)] for row in rows]
    assert found == expected["outputs"]["memberships"]


def test_bad_rows_are_null_and_keep_the_shape(client, expected):
    good, bad = dict(zip(NAMES, ROWS[0], strict=True)), dict.fromkeys(NAMES, "wide")
    params, arrow = {**INCLUDE, "on_error": "null"}, {"Accept": "application/vnd.apache.arrow.stream"}
    for rows, some in (([good, bad], [expected["outputs"]["memberships"][0], None]), ([bad, bad], [None, None])):
        found = client.post(f"{DENSITY}/predict", params=params, json={"rows": rows})
        assert found.json()["outputs"]["memberships"] == some
        npy = read_npy(
            client.post(
                f"{DENSITY}/predict", params=params, json={"rows": rows}, headers={"Accept": "application/x-npy"}
            )
        )
        assert npy.shape == (2, 5)
        assert np.isnan(npy[1]).all()
        response = client.post(f"{DENSITY}/predict", params=params, json={"rows": rows}, headers=arrow)
        table = pa.ipc.open_stream(response.content).read_all()
        assert table.schema.field("memberships").type == pa.list_(pa.float64())
        assert table["memberships"].to_pylist() == some


def test_the_same_mixture_is_a_clustering_on_request(client, expected):
    body = {"columns": NAMES, "data": ROWS.tolist()}
    found = client.post(f"{CLUSTERS}/predict", params={"include": "memberships,log_density"}, json=body).json()
    assert found["task"] == "clustering"
    assert found["predictions"] == np.argmax(found["outputs"]["memberships"], axis=1).tolist()
    report = client.get(f"{CLUSTERS}/versions/1/report").json()
    metrics = {metric["name"] for metric in report["train"]}
    assert {"silhouette", "davies_bouldin", "mean_inertia"} <= metrics
    decoded = client.post(f"{CLUSTERS}/decode", json={"predictions": [0, 1, 2]}).json()["rows"]
    means = [component["mean"] for component in report["unscaled"]["summary"]["components"]]
    np.testing.assert_allclose([[row["values"][name] for name in NAMES] for row in decoded], means, rtol=1e-9)
    refused = client.post(f"{DENSITY}/decode", json={"predictions": [0]})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_offered")


def test_a_target_makes_a_comparison_of_the_clusters(client, done):
    species = datasets.load_iris().target_names[datasets.load_iris().target]
    table = "\n".join(
        [",".join([*NAMES, "kind"]), *(f"{','.join(map(str, r))},{s}" for r, s in zip(IRIS, species, strict=True))]
    )
    dataset = client.post("/v1/datasets", content=table).json()["id"]
    body = {"model": "member-compared", "dataset": dataset, "algorithm": MIXTURE | {"n_init": 5}, "target": "kind"}
    done("train", body)
    report = client.get("/v1/models/member-compared/versions/1/report").json()
    assert report["task"] == "clustering"
    metrics = {metric["name"]: metric["value"] for metric in report["train"]}
    assert metrics["adjusted_rand"] == pytest.approx(0.904, abs=0.001)
    refused = client.post("/v1/jobs/train", json=body | {"task": "density"})
    assert refused.status_code == 422
    assert [one["pointer"] for one in refused.json()["errors"]] == ["/task"]
