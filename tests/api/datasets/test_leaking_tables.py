"""A dry run and a report warn of leaks in the rows; a request without a column to learn from names every column."""

import numpy as np
import pytest

from app.services.datasets import datasets

RNG = np.random.default_rng(0)
N = 300
A, B = RNG.normal(size=(2, N))
Y = A + RNG.normal(size=N)
LEAKING = "a,b,copy,y\n" + "\n".join(f"{a:.4f},{b:.4f},{y:.4f},{y:.4f}" for a, b, y in zip(A, B, Y, strict=True))


@pytest.fixture(scope="module")
def leaking(client):
    return client.post("/v1/datasets", content=LEAKING, params={"name": "leaking"}).json()["id"]


def test_a_dry_run_and_the_report_name_a_copy_of_the_target(client, done, leaking):
    body = {"model": "leaking", "dataset": leaking, "target": "y", "algorithm": {"name": "linear"}}
    (warning,) = client.post("/v1/jobs/train:validate", json=body).json()["warnings"]
    assert "Column 'copy' equals the target 'y', in all 300 rows compared" in warning
    done("train", body)
    assert warning in client.get("/v1/models/leaking/versions/1/report").json()["warnings"]
    for kind in ("search", "select"):
        estimate = client.post(f"/v1/jobs/{kind}:validate", json=body | {"validation": {"method": "kfold"}}).json()
        assert warning in estimate["warnings"]
    assert client.post("/v1/jobs/train:validate", json=body | {"features": ["a", "b"]}).json()["warnings"] == []
    training = {"target": "y", "algorithm": {"name": "linear"}}
    for kind, alike in (("rank", {"target": "y"}), ("bootstrap", {"training": training})):
        estimate = client.post(f"/v1/jobs/{kind}:validate", json={"dataset": leaking} | alike).json()
        assert warning in estimate["warnings"]


def test_a_dry_run_looks_at_a_sample_of_a_larger_dataset(client, leaking, monkeypatch):
    monkeypatch.setattr(datasets, "SMALL_CELLS", 400)
    monkeypatch.setattr(datasets, "MIN_SAMPLED_ROWS", 50)
    body = {"model": "m", "dataset": leaking, "target": "y", "algorithm": {"name": "linear"}}
    warnings = client.post("/v1/jobs/train:validate", json=body).json()["warnings"]
    assert any("Column 'copy' equals the target 'y', in all 100 rows compared" in text for text in warnings)
    assert warnings[-1] == "Rows were looked at in a sample, 100 of 300: the report is about all."


def test_a_request_without_a_column_to_learn_from_names_every_column(client):
    rows = "".join(f"{n},{100 + n / 2}\n" for n in range(1, 41))
    dataset = client.post("/v1/datasets", content="day,sales\n" + rows, params={"name": "days"}).json()["id"]
    body = {"model": "m", "dataset": dataset, "target": "sales", "algorithm": {"name": "linear"}}
    (fault,) = client.post("/v1/jobs/train:validate", json=body).json()["errors"]
    assert fault["pointer"] == "/features"
    assert "Column 'sales' is the target." in fault["detail"]
    assert "Column 'day' looks like an identifier and was left out; to learn from it, name it in" in fault["detail"]
    assert client.post("/v1/jobs/train:validate", json=body | {"features": ["day"]}).status_code == 200


def test_zero_and_one_are_classes_over_http(client, done):
    rows = "".join(f"{a:.3f},{int(a > 0)}\n" for a in A[:80])
    dataset = client.post("/v1/datasets", content="a,won\n" + rows, params={"name": "won"}).json()["id"]
    body = {"model": "won", "dataset": dataset, "target": "won", "algorithm": {"name": "gradient_boosting"}}
    estimate = client.post("/v1/jobs/train:validate", json=body).json()
    assert estimate["task"] == "classification"
    assert any("set task to regression" in text for text in estimate["warnings"])
    numbers = client.post("/v1/jobs/train:validate", json=body | {"algorithm": {"name": "ridge"}}).json()
    assert numbers["task"] == "regression"
    assert any("set task to classification" in text for text in numbers["warnings"])
