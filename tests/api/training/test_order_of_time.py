"""Splits in order of time over HTTP: a table with dates, whose latest rows test the model."""

from datetime import date, timedelta

import numpy as np
import pytest

DAYS = 300


@pytest.fixture(scope="module")
def sales():
    """A trend that bends: rows drawn at random flatter a straight line, later ones do not."""
    rng = np.random.default_rng(0)
    day = np.arange(DAYS)
    return day, np.where(day < 200, day, 400 - day) + rng.normal(size=DAYS), rng.permutation(DAYS)


@pytest.fixture
def dataset(client, sales):
    day, sold, order = sales
    dates = [date(2025, 1, 1) + timedelta(days=int(one)) for one in day]
    lines = [f"{dates[i]},{day[i]},{sold[i]},{'up' if day[i] < 250 else 'down'},{i % 7}" for i in order]
    response = client.post("/v1/datasets", content="\n".join(["date,day,sold,trend,weekday", *lines]))
    kinds = {column["name"]: column["kind"] for column in response.json()["columns"]}
    assert kinds["date"] == "datetime"
    return response.json()["id"]


def report_of(client, done, model, body):
    job = done("train", body | {"model": model})
    return client.get(f"/v1/models/{model}/versions/{job['version']}/report").json()


def metric(metrics, name):
    return next(one["value"] for one in metrics if one["name"] == name)


def test_the_latest_rows_are_held_out_and_predicted_by_what_came_before(client, done, dataset):
    body = {"dataset": dataset, "target": "sold", "features": ["day"], "algorithm": {"name": "linear"}}
    later = report_of(client, done, "later", body | {"validation": {"time": "date"}})
    assert (later["rows_train"], later["rows_test"]) == (240, 60)
    assert later["evidence"] == (
        "The metrics rest on the 60 latest rows by column 'date', from 2025-08-29 00:00:00.000000Z on; the model was "
        "fitted on the 240 before."
    )
    anywhere = report_of(client, done, "anywhere", body)
    assert metric(later["test"], "rmse") > 2 * metric(anywhere["test"], "rmse")
    result = done("evaluate", {"model": "later", "dataset": dataset, "rows": "held_out"})["result"]
    assert result["rows"] == 60
    assert metric(result["metrics"], "rmse") == pytest.approx(metric(later["test"], "rmse"))
    assert result["reuse"]["uses"] == 2


def test_folds_and_a_search_go_forward_in_time(client, done, dataset):
    validation = {"method": "kfold", "folds": 4, "time": "date"}
    body = {"dataset": dataset, "target": "sold", "features": ["day", "weekday"], "algorithm": {"name": "ridge"}}
    report = report_of(client, done, "folded", body | {"validation": validation})
    assert [fold["rows"] for fold in report["folds"]] == [48] * 4
    assert "4 folds in order of time, each tested by a fit of all rows before it" in report["evidence"]
    errors = [metric(fold["metrics"], "rmse") for fold in report["folds"]]
    assert errors[-1] > 5 * errors[0], "the bend lies in the last fold"
    grid = [{"pointer": "/algorithm/l2", "values": [0.1, 10.0]}]
    result = done("search", body | {"grid": grid, "validation": validation})["result"]
    assert len(result["candidates"][0]["folds"]) == 4
    assert result.get("ensemble") is None


def test_a_class_that_comes_later_is_missed_honestly(client, done, dataset):
    body = {"dataset": dataset, "target": "trend", "features": ["day", "weekday"], "algorithm": {"name": "logistic"}}
    report = report_of(client, done, "unforeseen", body | {"validation": {"time": "date"}})
    assert metric(report["test"], "accuracy") == pytest.approx(10 / 60)


@pytest.mark.parametrize(
    ("validation", "pointer", "detail"),
    [
        ({"time": "dat"}, "/validation/time", "The dataset has no column 'dat'; did you mean 'date'?"),
        ({"time": "trend"}, "/validation/time", "Rows are ordered by dates or numbers; this column is categorical."),
        ({"time": "sold"}, "/validation/time", "The target cannot order the rows too: name another column."),
        (
            {"time": "date", "group": "weekday"},
            "/validation/time",
            "Rows are split by groups or in order of time, not both: leave out one of them.",
        ),
        (
            {"time": "date", "method": "loo"},
            "/validation/method",
            "In order of time rows are validated by holdout or kfold, not by loo.",
        ),
    ],
)
def test_what_cannot_be_ordered_is_refused(client, dataset, validation, pointer, detail):
    body = {"model": "refused", "dataset": dataset, "target": "sold", "algorithm": {"name": "linear"}}
    response = client.post("/v1/jobs/train", json=body | {"validation": validation})
    assert response.status_code == 422
    assert [(fault["pointer"], fault["detail"]) for fault in response.json()["errors"]] == [(pointer, detail)]
