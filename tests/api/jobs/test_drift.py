"""A job of the kind `drift` over HTTP: two datasets, a version's stored reference, and refusals."""

import numpy as np
import pytest


def csv(rows, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows)) + np.array([[shift], [0.0]])
    lines = [f"{x},{y},{2 * x + y}" for x, y in zip(a.round(3), b.round(3), strict=True)]
    return "\n".join(["a,b,y", *lines])


@pytest.fixture(scope="module")
def datasets(client):
    tables = {"then": csv(1500), "now": csv(1200, seed=1), "moved": csv(1200, shift=1.0, seed=2)}
    for name, text in tables.items():
        client.post("/v1/datasets", params={"name": f"drift-{name}"}, content=text)
    return {name: f"drift-{name}" for name in tables}


def drifted(job):
    return {(each["column"], each["aspect"]) for each in job["result"]["columns"] if each["drifted"]}


def test_two_datasets(done, datasets):
    assert drifted(done("drift", {"reference": datasets["then"], "current": datasets["now"]})) == set()
    job = done("drift", {"reference": datasets["then"], "current": datasets["moved"]})
    assert drifted(job) == {("a", "values"), ("y", "values")}


def test_reference_is_stored_with_the_version(client, done, datasets):
    body = {"model": "watched", "dataset": datasets["then"], "target": "y", "algorithm": {"name": "linear"}}
    done("train", body)
    body = {"model": {"model": "watched"}, "current": datasets["moved"]}
    job = done("drift", body)
    assert drifted(job) == {("a", "values"), ("prediction", "prediction")}
    result = job["result"]
    assert (result["model"], result["version"], result["reference_rows"]) == ("watched", 1, 1200)
    assert result["columns"][0]["prediction_change"] == pytest.approx(2.0, rel=0.05)
    assert {pair["name"] for pair in result["quality"]} >= {"rmse", "mae", "r2"}
    client.delete("/v1/models/watched/versions/1")


def test_every_fault_is_listed_before_the_job_exists(client, datasets):
    body = {"current": datasets["now"], "columns": ["a", "bb"], "tolerance_psi": -1}
    response = client.post("/v1/jobs/drift:validate", json=body)
    assert response.status_code == 422
    assert {error["pointer"] for error in response.json()["errors"]} >= {"/tolerance_psi"}
    body = {"current": datasets["now"], "columns": ["a", "bb"]}
    response = client.post("/v1/jobs/drift", json=body)
    assert response.status_code == 422
    assert {error["pointer"] for error in response.json()["errors"]} == {"/reference", "/columns/1"}
