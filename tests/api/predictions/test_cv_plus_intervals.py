"""Intervals by the fits of folds over HTTP, of a model that a worker trained."""

import io
import time
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

ARROW = "application/vnd.apache.arrow.stream"


def flats(n, seed):
    rng = np.random.default_rng(seed)
    area, place = rng.uniform(30, 150, n), rng.choice(["hill", "dale"], n)
    rent = 100 + 9 * area + 90 * (place == "hill") + 40 * rng.normal(size=n)
    return pa.table({"area": area, "place": pa.array(place.tolist()), "rent": rent})


@pytest.fixture(scope="module")
def done(client):
    """`done(kind, request)`: what a job of this kind made."""

    def run(kind, request):
        job = client.post(f"/v1/jobs/{kind}", json=request).raise_for_status().json()
        deadline = time.monotonic() + 120
        while (job := client.get(f"/v1/jobs/{job['id']}").json())["state"] not in {"succeeded", "failed"}:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert job["state"] == "succeeded", job
        return job

    return run


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_every_way_in_gives_the_same(client, services, add_table, done):
    name, dataset = f"cv-{uuid4()}", str(add_table(services.work, flats(50, 0)))
    request = {"model": name, "dataset": dataset, "target": "rent", "algorithm": {"name": "decision_tree"}}
    done("train", request | {"validation": {"method": "kfold", "folds": 5}})
    report = client.get(f"/v1/models/{name}/versions/1/report").json()["intervals"]
    assert (report["interval"], report["coverage"]["n"]) == ("cv-plus", 10)
    assert "With 40 rows in 5 folds 95 % intervals surely cover" in report["guarantee"]

    rows = [*flats(20, 1).drop_columns(["rent"]).to_pylist(), {"area": None, "place": "elsewhere"}]
    url, body = f"/v1/models/{name}/predict?confidence=0.9", {"rows": rows}
    plain = client.post(f"/v1/models/{name}/predict", json=body).json()
    predicted = client.post(url, json=body).json()
    assert predicted["interval"] == "cv-plus"
    assert predicted["predictions"] == plain["predictions"]
    lower, upper = zip(*predicted["intervals"], strict=True)
    assert all(low < value < high for low, value, high in zip(lower, plain["predictions"], upper, strict=True))
    columns = client.post(f"/v1/models/{name}/intervals?confidence=0.9", json=body).json()
    assert (columns["interval"], columns["lower"], columns["upper"]) == ("cv-plus", [*lower], [*upper])
    stream = client.post(url, json=body, headers={"Accept": ARROW}).content
    arrow = pa.ipc.open_stream(io.BytesIO(stream)).read_all()
    assert (arrow["lower"].to_pylist(), arrow["upper"].to_pylist()) == ([*lower], [*upper])
    explained = client.post(f"/v1/models/{name}/explain", json=body)
    assert explained.json()["predictions"] == plain["predictions"]

    fresh = str(add_table(services.work, flats(60, 2)))
    evaluated = done("evaluate", {"model": name, "dataset": fresh})["result"]["intervals"]
    assert evaluated["interval"] == "cv-plus"
    assert evaluated["coverage"]["value"] > 0.8
    done("combine", {"model": f"{name}-team", "dataset": fresh, "members": [{"model": name}, {"model": name}]})
    team = client.post(f"/v1/models/{name}-team/predict?confidence=0.9", json=body).json()
    assert team["interval"] == "split-conformal"
    np.testing.assert_allclose(team["predictions"], plain["predictions"], rtol=1e-12)
