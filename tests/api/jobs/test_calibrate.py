"""A job of the kind `calibrate`: a new version whose probabilities are calibrated, in every format of a response."""

import io

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

NAIVE = {"name": "generative_bayes"}


def text(columns, rows, labels):
    lines = [
        ",".join([*columns, "label"]),
        *(",".join([*map(str, row), label]) for row, label in zip(rows, labels, strict=True)),
    ]
    return "\n".join(lines).encode()


@pytest.fixture(scope="module")
def tumours(client, done):
    """A model of one half of the rows, the other half as a dataset, and some of its rows."""
    found = load_breast_cancer()
    names, labels = [f"x{place}" for place in range(10)], found.target_names[found.target]
    halves = [text(names, found.data[start::2, :10], labels[start::2]) for start in (0, 1)]
    ids = [client.post("/v1/datasets", content=half).json()["id"] for half in halves]
    done("train", {"model": "tumours", "dataset": ids[0], "target": "label", "algorithm": NAIVE})
    return ids[1], {"columns": names, "data": found.data[1:60:2, :10].tolist()}


@pytest.fixture(scope="module")
def calibrated(client, done, tumours):
    body = {"model": "tumours", "version": 1, "dataset": tumours[0], "n_bins": 5}
    assert client.post("/v1/jobs/calibrate:validate", json=body).json()["warnings"] == []
    return done("calibrate", body)


def errors(side):
    return {metric["name"]: metric for metric in side["metrics"]}


def test_probabilities_of_new_rows_are_less_wrong_than_before(client, calibrated):
    before, after = errors(calibrated["result"]["before"]), errors(calibrated["result"]["after"])
    assert (calibrated["version"], calibrated["result"]["base_version"]) == (2, 1)
    assert list(after) == ["expected_calibration_error", "log_loss", "brier"]
    assert all(after[name]["value"] < before[name]["value"] for name in ("log_loss", "brier"))
    assert all(0 <= one["lower"] <= one["value"] <= one["upper"] for one in (*before.values(), *after.values()))
    (curve,) = calibrated["result"]["after"]["curves"]
    assert curve["label"] == "malignant"
    assert sum(one["rows"] for one in curve["bins"]) == calibrated["result"]["rows_test"] == 142
    assert all(one["observed_share"]["lower"] <= one["observed_share"]["upper"] for one in curve["bins"])
    old, new = (client.get(f"/v1/models/tumours/versions/{version}").json() for version in (1, 2))
    assert new["inputs"] == old["inputs"]
    assert new["receipt"]["base"]["digest"] == old["digest"]
    report = client.get("/v1/models/tumours/versions/2/report").json()
    assert errors({"metrics": report["test"]})["log_loss"]["value"] == after["log_loss"]["value"]


def test_every_format_holds_the_same_calibrated_probabilities(client, tumours, calibrated):
    _, body = tumours
    url = "/v1/models/tumours/predict"
    raw = client.post(f"{url}?version=1", json=body).json()["probabilities"]
    found = client.post(f"{url}?version=2", json=body).json()
    expected = np.array(found["probabilities"])
    assert np.abs(expected - raw).max() > 0.01
    np.testing.assert_allclose(expected.sum(axis=1), 1, rtol=1e-12)
    x = io.BytesIO()
    np.save(x, np.array(body["data"]))
    headers = {"Content-Type": "application/x-npy", "Accept": "application/x-npy"}
    npy = client.post(f"{url}?version=2", content=x.getvalue(), headers=headers)
    np.testing.assert_array_equal(np.load(io.BytesIO(npy.content)), expected)
    arrow = client.post(f"{url}?version=2", json=body, headers={"Accept": "application/vnd.apache.arrow.stream"})
    table = pa.ipc.open_stream(arrow.content).read_all()
    columns = [name for name in table.column_names if "malignant" in name]
    np.testing.assert_array_equal(table.column(columns[0]).to_numpy(), expected[:, 1])
    lines = [",".join(body["columns"]), *(",".join(map(str, row)) for row in body["data"])]
    csv = client.post(f"{url}?version=2", content="\n".join(lines), headers={"Content-Type": "text/csv"})
    assert csv.json()["probabilities"] == found["probabilities"]
    tensor = {"name": "x", "shape": [30, 10], "datatype": "FP64", "data": body["data"]}
    response = client.post(
        "/v2/models/tumours/versions/2/infer", json={"inputs": [tensor], "outputs": [{"name": "predict_proba"}]}
    ).json()
    (shares,) = [one for one in response["outputs"] if one["name"] == "predict_proba"]
    np.testing.assert_array_equal(np.reshape(shares["data"], (30, 2)), expected)
    rejected = client.post(f"{url}?version=2&min_probability=0.9", json=body).json()["decisions"]
    assert rejected == ["accepted" if row.max() >= 0.9 else "rejected" for row in expected]


def test_the_version_that_was_calibrated_may_be_deleted(client, done, tumours, calibrated):
    body = {"model": "tumours", "version": 1, "dataset": tumours[0], "method": "isotonic", "new_model": "tumours-sure"}
    assert done("calibrate", body)["version"] == 1
    assert client.delete("/v1/models/tumours/versions/1").status_code == 204
    for model, version in (("tumours-sure", 1), ("tumours", 2)):
        rows = {"columns": tumours[1]["columns"], "data": tumours[1]["data"][:1]}
        assert client.post(f"/v1/models/{model}/predict?version={version}", json=rows).status_code == 200


def test_three_classes_behind_a_projection_are_calibrated_on_rows_held_out(client, done):
    found = load_iris()
    content = text("abcd", found.data, found.target_names[found.target])
    dataset = client.post("/v1/datasets", content=content).json()["id"]
    done(
        "train",
        {"model": "three-petals-map", "dataset": dataset, "features": list("abcd"), "algorithm": {"name": "pca"}},
    )
    projection = {"projection": {"model": "three-petals-map", "version": 1}}
    training = {
        "model": "three-petals",
        "dataset": dataset,
        "target": "label",
        "algorithm": NAIVE,
        "preprocessing": projection,
    }
    done("train", training | {"validation": {"test_fraction": 0.4}})
    job = done("calibrate", {"model": "three-petals", "dataset": dataset, "store_worse": True})
    assert (job["result"]["rows_fit"], job["result"]["rows_test"]) == (30, 30)
    assert [curve["label"] for curve in job["result"]["after"]["curves"]] == ["setosa", "versicolor", "virginica"]
    evaluated = done("evaluate", {"model": "three-petals", "version": 2, "dataset": dataset})["result"]
    assert evaluated["rows"] == 30
    probabilities = client.post(
        "/v1/models/three-petals/predict", json={"columns": list("abcd"), "data": found.data.tolist()}
    )
    np.testing.assert_allclose(np.sum(probabilities.json()["probabilities"], axis=1), 1, rtol=1e-12)
    assert client.delete("/v1/models/three-petals-map/versions/1").status_code == 409


def test_a_regression_and_a_dataset_without_the_columns_are_refused(client, done, tumours, calibrated):
    content = "\n".join(["a,y", *(f"{value % 7},{2 * value}" for value in range(40))])
    other = client.post("/v1/datasets", content=content).json()["id"]
    done("train", {"model": "line", "dataset": other, "target": "y", "algorithm": {"name": "ridge"}})
    refused = client.post("/v1/jobs/calibrate", json={"model": "line", "dataset": other})
    (fault,) = refused.json()["errors"]
    assert (refused.status_code, fault["pointer"], fault["code"]) == (422, "/model", "not_offered")
    assert "regression" in fault["detail"]
    refused = client.post("/v1/jobs/calibrate", json={"model": "tumours", "version": 2, "dataset": other})
    assert {fault["code"] for fault in refused.json()["errors"]} == {"missing_column", "unknown_column"}
    assert refused.status_code == 422
