"""Jobs on a learner behind a projection that was fitted before: they are those on a table of its coordinates."""

from pathlib import Path

import pytest

IRIS = (Path(__file__).parents[3] / "app" / "samples" / "iris.csv").read_text().strip().splitlines()
COORDINATES = ["coordinate 1", "coordinate 2"]
AS_THEY_ARE = {"preprocessing": {"scaling": "none"}}
FRONT = {"projection": {"model": "behind-axes"}}
FIXED = "It stays the same in every fit, so metrics and errors are of the learner behind it alone"


@pytest.fixture(scope="module")
def tables(client, done):
    """Ids of the table and of its coordinates."""
    names = IRIS[0].split(",")
    table = client.post("/v1/datasets", content="\n".join(IRIS)).json()["id"]
    algorithm = {"name": "pca", "n_components": 2}
    done("train", {"model": "behind-axes", "dataset": table, "features": names[:-1], "algorithm": algorithm})
    rows = [line.split(",") for line in IRIS[1:]]
    body = {"columns": names[:-1], "data": [[float(cell) for cell in row[:-1]] for row in rows]}
    found = client.post("/v1/models/behind-axes/predict", json=body).json()["predictions"]
    lines = (f"{x!r},{y!r},{row[-1]}" for (x, y), row in zip(found, rows, strict=True))
    flat = client.post("/v1/datasets", content="\n".join([",".join([*COORDINATES, "species"]), *lines])).json()["id"]
    return table, flat


@pytest.fixture(scope="module")
def model(tables, done):
    """The name of a model behind the projection."""
    body = {"model": "behind-species", "dataset": tables[0], "target": "species", "algorithm": {"name": "logistic"}}
    done("train", body | {"preprocessing": FRONT})
    return body["model"]


def metrics(found):
    return {(metric["name"], metric.get("label")): metric["value"] for metric in found}


def test_a_search_behind_it_is_that_of_the_coordinates(client, tables, done):
    body = {"target": "species", "algorithm": {"name": "logistic"}, "alternatives": [{"name": "knn"}]}
    body |= {"grid": [{"pointer": "/algorithm/l2", "values": [1.0, 0.01]}], "validation": {"folds": 3}}
    body["validation"]["method"] = "kfold"
    behind = body | {"dataset": tables[0], "preprocessing": FRONT, "model": "behind-searched"}
    dry = client.post("/v1/jobs/search:validate", json=behind).json()
    assert any(FIXED in warning for warning in dry["warnings"])
    job, other = done("search", behind), done("search", body | {"dataset": tables[1]} | AS_THEY_ARE)
    found, expected = job["result"], other["result"]
    assert [one["folds"] for one in found["candidates"]] == [
        pytest.approx(one["folds"], rel=1e-9) for one in expected["candidates"]
    ]
    assert found["chosen"] == expected["chosen"]
    assert any(FIXED in warning for warning in found["warnings"])
    version = client.get("/v1/models/behind-searched/versions/1").json()
    assert version["receipt"]["projection"]["model"] == "behind-axes"
    assert len(version["inputs"]) == 4
    refused = client.delete("/v1/models/behind-axes/versions/1").json()
    assert refused["code"] == "version_in_use"


def test_candidates_have_one_projection(client, tables):
    body = {"dataset": tables[0], "target": "species", "algorithm": {"name": "logistic"}, "preprocessing": FRONT}
    body["grid"] = [{"pointer": "/preprocessing/projection/version", "values": [1, 2]}]
    refused = client.post("/v1/jobs/search", json=body)
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/grid/0/pointer"]


def test_a_bootstrap_behind_it_is_that_of_the_coordinates(client, tables, model, done):
    spec = {"target": "species", "algorithm": {"name": "logistic"}}
    body = {"resamples": 50, "confidence": 0.8}
    row = dict(zip(IRIS[0].split(",")[:-1], [5.1, 3.5, 1.4, 0.2], strict=True))
    (place,) = client.post("/v1/models/behind-axes/predict", json={"rows": [row]}).json()["predictions"]
    by_training = body | {"dataset": tables[0], "training": spec | {"preprocessing": FRONT}, "rows": [row]}
    by_model = body | {"dataset": tables[0], "model": model, "rows": [row]}
    places = [dict(zip(COORDINATES, place, strict=True))]
    flat = body | {"dataset": tables[1], "training": spec | AS_THEY_ARE, "rows": places}
    one, two, plain = (done("bootstrap", request)["result"] for request in (by_training, by_model, flat))
    assert one == two
    assert any(FIXED in warning for warning in one["warnings"])
    for part in ("coefficients", "predictions", "measures"):
        found = [(number["name"], number["lower"], number["upper"]) for number in one[part]]
        wanted = [(number["name"], number["lower"], number["upper"]) for number in plain[part]]
        assert [name for name, *_ in found] == [name for name, *_ in wanted]
        assert [ends for _, *ends in found] == [pytest.approx(ends, rel=1e-6) for _, *ends in wanted]


def test_it_is_evaluated_compared_and_calibrated(client, tables, model, done):
    report = client.get(f"/v1/models/{model}/versions/1/report").json()
    assert any(FIXED in warning for warning in report["warnings"])
    result = done("evaluate", {"model": model, "version": 1, "dataset": tables[0]})["result"]
    assert metrics(result["metrics"]) == pytest.approx(metrics(report["test"]))
    body = {"model": model, "dataset": tables[0], "new_model": "behind-calibrated", "store_worse": True}
    made = done("calibrate", body)
    assert (made["result"]["rows_fit"], made["result"]["rows_test"]) == (15, 15)
    receipt = client.get("/v1/models/behind-calibrated/versions/1").json()["receipt"]
    assert receipt["projection"]["model"] == "behind-axes"
    versions = [{"model": model, "version": 1}, {"model": "behind-calibrated", "version": 1}]
    compared = done("compare", {"versions": versions, "dataset": tables[0], "rows": "all"})["result"]
    assert compared["kind"] == "compare"


def test_folds_and_stability_are_of_the_learner_alone(client, tables, done):
    """A clustering of the coordinates has the stability of one behind the projection."""
    body = {"algorithm": {"name": "kmeans", "n_clusters": 3}}
    done("train", body | {"model": "behind-clusters", "dataset": tables[0], "preprocessing": FRONT})
    done("train", body | {"model": "behind-flat", "dataset": tables[1], "features": COORDINATES} | AS_THEY_ARE)
    behind, flat = (
        client.get(f"/v1/models/{name}/versions/1/report").json() for name in ("behind-clusters", "behind-flat")
    )
    assert behind["stability"]["value"] == pytest.approx(flat["stability"]["value"])
    assert metrics(behind["train"]) == pytest.approx(metrics(flat["train"]))
