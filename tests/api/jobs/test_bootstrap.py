"""A model is fitted again on resamples, as a job like any other."""

import time

import numpy as np
import pytest

ROWS = 60


@pytest.fixture(scope="module")
def table():
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, ROWS))
    y = 1 + 2 * a - b + draw.normal(size=ROWS)
    return "a,b,y\n" + "\n".join(",".join(map(repr, map(float, row))) for row in zip(a, b, y, strict=True))


def done(client, kind, body):
    job = client.post(f"/v1/jobs/{kind}", json=body)
    assert job.status_code == 202, job.text
    until = time.monotonic() + 300  # a machine that has never compiled a kernel takes its time
    while (result := client.get(job.headers["location"]).json())["state"] in {"queued", "running"}:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert result["state"] == "succeeded", result
    return result


def test_of_a_model(client, worker, table):
    first, other = (client.post("/v1/datasets", content=table + end).json()["id"] for end in ("\n", "\n0.1,0.2,0.3\n"))
    spec = {"target": "y", "algorithm": {"name": "linear"}}
    done(client, "train", {"model": "bootstrapped", "dataset": first} | spec)
    body = {"dataset": first, "resamples": 100, "rows": [{"a": 0, "b": 0}], "seed": 3}
    by_model = done(client, "bootstrap", body | {"model": "bootstrapped"})
    assert [one["name"] for one in by_model["result"]["coefficients"]] == ["(intercept)", "a", "b"]
    assert by_model["result"]["predictions"][0]["lower"] < 1.2
    assert by_model["model"] == "bootstrapped"
    assert {curve["name"] for curve in by_model["curves"]} == {"rmse", "mae", "r2"}
    by_training = done(client, "bootstrap", body | {"training": spec})
    assert by_training["result"] == by_model["result"], "the same fits, however they are requested"
    estimate = client.post(
        "/v1/jobs/bootstrap:validate", json=body | {"model": "bootstrapped", "dataset": other}
    ).json()
    assert estimate["fits"] == 101
    assert "The model was trained on other data than these." in estimate["warnings"]


def test_what_cannot_be_done_is_reported_at_once(client, table):
    dataset = client.post("/v1/datasets", content=table).json()["id"]
    wrong = {"training": {"target": "z", "algorithm": {"name": "linear"}}, "dataset": dataset}
    response = client.post("/v1/jobs/bootstrap", json=wrong)
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/training/target")
    wrong = {
        "training": {"target": "y", "algorithm": {"name": "linear"}},
        "dataset": dataset,
        "rows": [{"a": "secret"}],
    }
    response = client.post("/v1/jobs/bootstrap", json=wrong)
    assert response.status_code == 422
    assert "secret" not in response.text
    assert client.post("/v1/jobs/bootstrap", json={"dataset": dataset}).status_code == 422
