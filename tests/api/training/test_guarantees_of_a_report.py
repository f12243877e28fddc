"""Guarantees of a version over HTTP, trained by a real worker: a second use of the same test rows withdraws one."""

import pytest


@pytest.fixture(scope="module")
def dataset(services, add_iris):
    return str(add_iris(services.work))


def guarantees(client, ended, dataset, model, seed=3):
    body = {
        "model": model,
        "dataset": dataset,
        "target": "species",
        "seed": seed,
        "algorithm": {"name": "decision_tree"},
    }
    job = ended("train", body)
    assert job["state"] == "succeeded", job
    return client.get(f"/v1/models/{model}/versions/1/report").json()["guarantees"]


def test_a_report_has_bounds_until_its_test_rows_are_used_again(client, ended, dataset):
    first = guarantees(client, ended, dataset, "guaranteed-once")
    assert first["tightest"] == "holdout"
    assert {one["name"] for one in first["certificates"]} == {"holdout", "labellings"}
    assert all(one["statement"] and one["source"] for one in first["certificates"])
    second = guarantees(client, ended, dataset, "guaranteed-twice")
    assert [one["name"] for one in second["certificates"]] == ["labellings"]
    assert [one["name"] for one in second["withheld"]] == ["holdout"]
