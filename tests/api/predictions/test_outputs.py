"""Outputs beside the predictions, in every format of a response, over HTTP."""

import csv
import io

import numpy as np
import pyarrow as pa
import pytest
from sklearn import datasets

IRIS = datasets.load_iris().data
NAMES = ["a", "b", "c", "d"]
ROWS = np.vstack([IRIS[[0, 70, 120]], [[9.0, 1.0, 1.0, 9.0]]])
DENSITY = "/v1/models/output-flowers/predict"


@pytest.fixture(autouse=True, scope="module")
def models(client, done):
    table = "\n".join([",".join(NAMES), *(",".join(map(str, row)) for row in IRIS)])
    dataset = client.post("/v1/datasets", content=table).json()["id"]
    done(
        "train",
        {"model": "output-flowers", "dataset": dataset, "algorithm": {"name": "gaussian", "contamination": 0.1}},
    )
    done("train", {"model": "output-clusters", "dataset": dataset, "algorithm": {"name": "kmeans", "n_clusters": 3}})
    done("train", {"model": "output-width", "dataset": dataset, "target": "d", "algorithm": {"name": "linear"}})


def body(rows=ROWS):
    return {"columns": NAMES, "data": rows.tolist()}


def read_npy(response):
    return np.load(io.BytesIO(response.content))


def test_the_version_and_the_catalogue_name_the_outputs(client):
    version = client.get("/v1/models/output-flowers/versions/1").json()
    assert version["task"] == "density"
    card = client.get("/v1/algorithms/gaussian").json()
    assert version["outputs"] == card["outputs"]
    assert [output["name"] for output in card["outputs"]] == ["anomaly", "distance", "tail_probability"]
    assert client.get("/v1/models/output-width/versions/1").json().get("outputs", []) == []


def test_json_has_them_by_name_where_they_are_included(client):
    plain = client.post(DENSITY, json=body()).json()
    assert "outputs" not in plain
    found = client.post(DENSITY, params={"include": "distance,anomaly,distance"}, json=body()).json()
    assert found["predictions"] == plain["predictions"]
    assert list(found["outputs"]) == ["distance", "anomaly"]
    assert found["outputs"]["anomaly"] == [False, False, False, True]
    distance, logs = np.array(found["outputs"]["distance"]), np.array(found["predictions"])
    np.testing.assert_allclose(np.diff(logs), -0.5 * np.diff(distance**2), rtol=1e-9)
    report = client.get("/v1/models/output-flowers/versions/1/report").json()
    assert (logs < report["summary"]["threshold"]).tolist() == found["outputs"]["anomaly"]


def test_arrow_npy_and_tensors_hold_the_same(client):
    include = {"include": "anomaly,distance"}
    expected = client.post(DENSITY, params=include, json=body()).json()
    arrow = client.post(DENSITY, params=include, json=body(), headers={"Accept": "application/vnd.apache.arrow.stream"})
    table = pa.ipc.open_stream(arrow.content).read_all()
    assert table.column_names == ["prediction", "anomaly", "distance", "flags"]
    assert table.schema.field("anomaly").type == pa.bool_()
    assert table.column("prediction").to_pylist() == expected["predictions"]
    assert table.column("anomaly").to_pylist() == expected["outputs"]["anomaly"]
    npy = read_npy(client.post(DENSITY, params=include, json=body(), headers={"Accept": "application/x-npy"}))
    columns = [expected["predictions"], *(expected["outputs"][name] for name in ("anomaly", "distance"))]
    np.testing.assert_array_equal(npy, np.array(columns, float).T)
    inputs = [{"name": "x", "shape": [4, 4], "datatype": "FP64", "data": ROWS.ravel().tolist()}]
    names = ["distance", "predict", "anomaly"]
    request = {"inputs": inputs, "outputs": [{"name": name} for name in names]}
    outputs = client.post("/v2/models/output-flowers/infer", json=request).json()["outputs"]
    assert [(one["name"], one["datatype"], one["shape"]) for one in outputs] == [
        ("distance", "FP64", [4]), ("predict", "FP64", [4]), ("anomaly", "BOOL", [4])
    ]  # fmt: skip
    assert outputs[2]["data"] == expected["outputs"]["anomaly"]
    default = client.post("/v2/models/output-flowers/infer", json={"inputs": inputs}).json()["outputs"]
    assert [one["name"] for one in default] == ["predict"]
    metadata = client.get("/v2/models/output-flowers").json()["outputs"]
    assert {one["name"]: one["datatype"] for one in metadata} == {
        "predict": "FP64", "distance": "FP64", "tail_probability": "FP64", "anomaly": "BOOL"
    }  # fmt: skip


def test_rows_as_csv_or_npy_have_the_same_outputs(client):
    include = {"include": "distance,anomaly"}
    expected = client.post(DENSITY, params=include, json=body()).json()
    matrix = io.BytesIO()
    np.save(matrix, ROWS)
    lines = "\n".join([",".join(NAMES), *(",".join(map(str, row)) for row in ROWS.tolist())])
    for content, kind in ((lines, "text/csv"), (matrix.getvalue(), "application/x-npy")):
        headers = {"Content-Type": kind, "Accept": "application/json"}
        found = client.post(DENSITY, params=include, content=content, headers=headers).json()
        assert (found["predictions"], found["outputs"]) == (expected["predictions"], expected["outputs"])


def test_a_downloaded_table_of_predictions_has_them_as_columns(client, done):
    table = "\n".join([",".join(NAMES), *(",".join(map(str, row)) for row in ROWS.tolist())])
    dataset = client.post("/v1/datasets", content=table).json()["id"]
    request = {"model": "output-flowers", "dataset": dataset, "include": ["anomaly", "distance"]}
    scored = done("predict", request)["result"]["result_dataset"]
    text = client.get(f"/v1/datasets/{scored}/file", headers={"Accept": "text/csv"}).text
    rows = list(csv.DictReader(text.splitlines()))
    expected = client.post(DENSITY, params={"include": "anomaly,distance"}, json=body()).json()
    assert [row["anomaly"] == "true" for row in rows] == expected["outputs"]["anomaly"]
    assert [float(row["distance"]) for row in rows] == pytest.approx(expected["outputs"]["distance"], rel=1e-12)
    assert [float(row["prediction"]) for row in rows] == pytest.approx(expected["predictions"], rel=1e-12)


def test_bad_rows_are_null_in_every_output(client):
    rows = {"rows": [dict(zip(NAMES, ROWS[0], strict=True)), dict.fromkeys(NAMES, "wide")]}
    params = {"include": "distance", "on_error": "null"}
    found = client.post(DENSITY, params=params, json=rows).json()
    assert found["outputs"]["distance"][0] > 0
    assert found["outputs"]["distance"][1] is None
    none = client.post(DENSITY, params=params, json={"rows": rows["rows"][1:]}).json()
    assert none["outputs"] == {"distance": [None]}


def test_a_cluster_has_the_distance_to_its_centre(client):
    path = "/v1/models/output-clusters"
    found = client.post(f"{path}/predict", params={"include": "distance"}, json=body()).json()
    rows = client.post(
        f"{path}/reconstruct", json={"rows": [dict(zip(NAMES, row, strict=True)) for row in ROWS]}
    ).json()
    np.testing.assert_allclose(np.square(found["outputs"]["distance"]), rows["errors"], rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "detail"),
    [
        (
            "output-flowers",
            "The model has no output 'distanc'; did you mean 'distance'? It has anomaly, distance, tail_probability.",
        ),
        ("output-width", "This model has no outputs beside its predictions."),
    ],
)
def test_an_output_that_a_model_does_not_have_is_refused(client, model, detail):
    response = client.post(f"/v1/models/{model}/predict", params={"include": "distanc"}, json=body())
    assert response.status_code == 422
    assert [(one["pointer"], one["detail"]) for one in response.json()["errors"]] == [("/query/include", detail)]
    wrong = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP64", "data": [1, 1, 1, 1]}]}
    unknown = client.post("/v2/models/output-flowers/infer", json=wrong | {"outputs": [{"name": "distanc"}]})
    assert unknown.status_code == 400
    assert (
        unknown.json()["errors"][0]["detail"]
        == "The model's outputs are predict, distance, tail_probability, anomaly, flags."
    )
