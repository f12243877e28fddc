"""Monitors and alarms over HTTP: set up, logged by predictions, and refused where something is wrong."""

import time
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def flowers(client, done):
    content = Path("app/samples/iris.csv").read_bytes()
    dataset = client.post("/v1/datasets", params={"name": "watched-iris"}, content=content).json()["id"]
    done("train", {"model": "watched-iris", "dataset": dataset, "target": "species", "algorithm": {"name": "logistic"}})
    return "/v1/models/watched-iris"


def test_predictions_of_a_monitored_model_are_counted(client, flowers):
    assert client.get(f"{flowers}/monitor").json()["code"] == "monitor_not_found"
    made = client.put(f"{flowers}/monitor", json={"min_rows": 50})
    assert made.status_code == 200, made.text
    assert made.json()["min_rows"] == 50
    client.app.services.prediction_log.renew()
    rows = [{"sepal_length_cm": 5, "sepal_width_cm": 3, "petal_length_cm": 1.4, "petal_width_cm": None}] * 7
    assert client.post(f"{flowers}/predict", json={"rows": rows}).status_code == 200
    until = time.monotonic() + 30
    while (response := client.get(f"{flowers}/monitor").json())["rows"] < 7:
        assert time.monotonic() < until, response
        time.sleep(0.1)
    assert response["rows"] == 7
    assert client.get(f"{flowers}/monitor/drift").json() == {"items": []}
    text = client.get("/metrics").text
    assert "valiant_log_dropped_total" in text
    assert "valiant_alarms_open" in text
    assert client.delete(f"{flowers}/monitor").status_code == 204
    assert client.get(f"{flowers}/monitor").status_code == 404


def test_wrong_requests_are_refused_with_every_fault(client, flowers):
    response = client.put(f"{flowers}/monitor", json={"sample_rate": 0, "min_rows": 1, "windows": []})
    assert response.status_code == 422
    assert {error["pointer"] for error in response.json()["errors"]} == {"/sample_rate", "/min_rows", "/windows"}
    assert client.put("/v1/models/nobody/monitor", json={}).json()["code"] == "model_not_found"
    nowhere = "/v1/alarms/00000000-0000-7000-8000-000000000000"
    assert client.get(nowhere).json()["code"] == "alarm_not_found"
    assert client.patch(nowhere, json={"state": "open"}).json()["code"] == "alarm_not_found"
    assert client.patch(nowhere, json={"state": "gone"}).status_code == 422
    assert client.get("/v1/alarms", params={"model": "watched-iris"}).json() == {"items": []}
