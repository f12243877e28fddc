"""A job of the kind `select` over HTTP: columns are chosen, a version is trained on them, and refusals."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def dataset(client):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 5)).round(4)
    where = rng.choice(["north", "south", "east"], 150)
    y = 3 * x[:, 1] - 2 * x[:, 3] + 2 * (where == "north") + 0.3 * rng.normal(size=150)
    lines = [",".join([*map(str, row), place, str(target)]) for row, place, target in zip(x, where, y, strict=True)]
    return client.post("/v1/datasets", content="\n".join(["a,b,c,d,e,where,y", *lines])).json()["id"]


@pytest.mark.parametrize("strategy", ["forward", "recursive_elimination"])
def test_a_version_is_trained_on_the_chosen_columns(client, done, dataset, strategy):
    model = f"selected-{strategy.partition('_')[0]}"
    body = {
        "model": model, "dataset": dataset, "target": "y", "algorithm": {"name": "linear"}, "strategy": strategy,
        "resamples": 4,
    }  # fmt: skip
    dry = client.post("/v1/jobs/select:validate", json=body).json()
    assert (dry["columns"], dry["fits"] > 40) == (6, True)
    job = done("select", body)
    result = job["result"]
    assert (job["model"], job["version"], result["kind"]) == (model, 1, "select")
    assert result["chosen"] == ["b", "d", "where"]
    assert result["left_out"] == ["a", "c", "e"]
    assert result["stability"]["resamples"] == 4
    chosen = next(step for step in result["steps"] if step["columns"] == 3)
    assert chosen["validation"]["lower"] < chosen["validation"]["value"] < chosen["validation"]["upper"]
    version = client.get(f"/v1/models/{model}/versions/1").json()
    assert [column["name"] for column in version["inputs"]] == ["b", "d", "where"]
    report = client.get(f"/v1/models/{model}/versions/1/report").json()
    assert (report["rows_test"], report["reuse"]["rows"]) == (30, "0.2 held out with seed 0, target 'y'")


def test_without_a_model_no_version_is_trained(done, dataset):
    body = {"dataset": dataset, "target": "y", "algorithm": {"name": "ridge"}, "max_columns": 2, "resamples": 0}
    job = done("select", body)
    assert "version" not in job or job["version"] is None
    assert job["result"]["chosen"] == ["b", "d"]
    assert job["result"].get("stability") is None


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"algorithm": {"name": "knn"}, "strategy": "recursive_elimination"}, ["/algorithm/name"]),
        ({"strategy": "sideways", "min_columns": 0}, ["/strategy", "/min_columns"]),
        ({"metric": "acuracy", "features": ["a", "z"]}, ["/metric", "/features/1"]),
        ({"resamples": 1, "min_columns": 5, "max_columns": 4}, ["/max_columns", "/resamples"]),
        ({"validation": {"method": "loo"}}, ["/validation/method"]),
        ({"algorithm": {"name": "kmeans"}, "target": None}, ["/algorithm/name"]),
        ({"algorithm": {"name": "linear", "beta": 1}}, ["/algorithm/beta"]),
    ],
)
def test_a_fault_has_its_pointer(client, dataset, changes, pointers):
    body = {"dataset": dataset, "target": "y", "algorithm": {"name": "linear"}} | changes
    response = client.post("/v1/jobs/select:validate", json=body)
    assert response.status_code == 422, response.text
    assert sorted(fault["pointer"] for fault in response.json()["errors"]) == sorted(pointers)
