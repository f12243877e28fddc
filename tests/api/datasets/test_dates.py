"""Dates over HTTP: their parts are found in the target, named in the report, and the same in every form of a body."""

import time
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

from app.ml.preparation.date_parts import LABELS

DAYS = 300
ARROW = "application/vnd.apache.arrow.stream"
WEEK, NAMES = ["weekday", "cyclic_weekday"], ["weekday", "weekday sine", "weekday cosine"]
TIMES = np.array(["2024-03-02", "2024-03-06T23:59:59", "NaT"], "M8[us]")


@pytest.fixture
def dataset(client):
    """Sold by weekday, more on the last two."""
    rng = np.random.default_rng(0)
    days = [date(2023, 12, 30) + timedelta(days=day) for day in range(DAYS)]
    lines = [f"{day},{20 + 10 * (day.weekday() > 4) + rng.normal():.3f},{rng.normal():.3f}" for day in days]
    lines[7] = lines[7].replace(str(days[7]), "")
    created = client.post("/v1/datasets", content="\n".join(["sold_at,sold,size", *lines])).json()
    assert {column["name"]: column["kind"] for column in created["columns"]}["sold_at"] == "datetime"
    return created["id"]


def body(dataset, model, dates, **more):
    requested = {"model": model, "dataset": dataset, "target": "sold", "algorithm": {"name": "ridge"}}
    return requested | {"preprocessing": {"dates": dates}} | more


def test_ridge_finds_the_weekday_in_parts_of_dates_and_not_without(client, done, dataset):
    scores = {}
    for model, dates in (("dated", WEEK), ("undated", [])):
        job = done("train", body(dataset, model, dates))
        report = client.get(f"/v1/models/{model}/versions/{job['version']}/report").json()
        scores[model] = next(metric["value"] for metric in report["test"] if metric["name"] == "r2")
        if dates:
            assert report["columns"] == ["size", *(f"sold_at: {part}" for part in NAMES)]
            assert report["unscaled"]["columns"] == report["columns"]
    assert scores["undated"] < 0.1
    assert scores["dated"] > 0.8
    rows = [
        {"sold_at": "2024-03-02", "size": 0},
        {"sold_at": "2024-03-06T23:59:59Z", "size": 0},
        {"sold_at": None, "size": 1},
    ]
    path = "/v1/models/dated/predict"
    found = client.post(path, json={"rows": rows}).json()
    saturday, wednesday, _ = found["predictions"]
    assert saturday > wednesday + 5
    assert [(flag["code"], flag["column"], flag["rows"]) for flag in found["flags"]] == [("imputed", "sold_at", [2])]
    table = pa.table({"sold_at": pa.array(TIMES, pa.timestamp("us", "UTC")), "size": [0.0, 0.0, 1.0]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    arrow = client.post(path, content=sink.getvalue().to_pybytes(), headers={"Content-Type": ARROW, "Accept": ARROW})
    columns = {"columns": ["size", "sold_at"], "data": [[row["size"], row["sold_at"]] for row in rows]}
    assert pa.ipc.open_stream(arrow.content).read_all()["prediction"].to_pylist() == found["predictions"]
    assert client.post(path, json=columns).json()["predictions"] == found["predictions"]
    assert [client.post(path, json={"rows": [row]}).json()["predictions"][0] for row in rows] == found["predictions"]


def test_reconstructed_dates_are_those_of_the_elapsed_days(client, done, dataset):
    parts = ["elapsed_days", "cyclic_weekday"]
    pca = body(dataset, "dated-map", {"sold_at": parts}, algorithm={"name": "pca", "n_components": 5})
    del pca["target"]
    done("train", pca)
    row = {"sold_at": "2024-02-29", "size": 0.5, "sold": 20}
    (again,) = client.post("/v1/models/dated-map/reconstruct", json={"rows": [row]}).json()["rows"]
    assert again["values"]["sold_at"].startswith(("2024-02-29T00:00:00", "2024-02-28T23:59:59.9"))
    assert again["values"]["sold"] == pytest.approx(20)


def test_what_is_no_part_of_a_date_is_refused(client, worker, dataset):
    for dates, at, detail in (
        ({"sold_ta": ["year"]}, "/sold_ta", "The features have no column 'sold_ta'; did you mean 'sold_at'?"),
        ({"sold_at": []}, "/sold_at", "Must have 1 or more items."),
        (
            ["year", "wekday"],
            "/1",
            f"Must be one of {', '.join(LABELS)}; did you mean 'weekday'?",
        ),
        ("year", "", "Must be an array, not a string; or must be an object, not a string."),
    ):
        response = client.post("/v1/jobs/train", json=body(dataset, "refused", dates))
        assert response.status_code == 422
        faults = [(fault["pointer"], fault["detail"]) for fault in response.json()["errors"]]
        assert faults == [(f"/preprocessing/dates{at}", detail)]
    job = client.post("/v1/jobs/train", json=body(dataset, "refused", {"sold_at": ["hour"]})).json()
    while (job := client.get(f"/v1/jobs/{job['id']}").json())["state"] not in {"succeeded", "failed"}:
        time.sleep(0.05)
    assert (job["state"], job["error"]["status"]) == ("failed", 422)
    (fault,) = job["error"]["errors"]
    assert fault["pointer"] == "/preprocessing/dates/sold_at"
    assert fault["detail"] == "The dates of 'sold_at' have no time of day: leave out hour."
