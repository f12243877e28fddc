"""A job of the kind `suggest` over HTTP: from a dataset, from a stored Gaussian process, and refusals."""

import pytest

ROWS = [(x / 10, (x * 7 % 10) / 10) for x in range(10)]
LINES = ["heat,time,y", *(f"{a},{b},{1 - (a - 0.63) ** 2 - (b - 0.41) ** 2}" for a, b in ROWS)]


@pytest.fixture(scope="module")
def dataset(client):
    return client.post("/v1/datasets", content="\n".join(LINES)).json()["id"]


def test_experiments_are_suggested_from_a_dataset(done, dataset):
    result = done("suggest", {"dataset": dataset, "target": "y", "noise": 0, "n_suggestions": 2})["result"]
    assert (result["kind"], result["goal"], result["rows"]) == ("suggest", "maximise", 10)
    first = result["suggestions"][0]
    assert first["row"]["heat"] == pytest.approx(0.63, abs=0.1)
    assert first["lower"] <= first["prediction"] <= first["upper"]
    assert first["outside_range"] == []
    assert len(result["suggestions"]) == 2


def test_experiments_are_suggested_by_a_stored_version(done, dataset):
    done("train", {"model": "kriging", "dataset": dataset, "target": "y", "algorithm": {"name": "gaussian_process"},
                   "validation": {"test_fraction": 0}})  # fmt: skip
    body = {"surrogate": {"model": "kriging"}, "goal": "minimise", "variables": [
        {"column": "heat", "minimum": 0.0, "maximum": 0.5}], "fixed": {"time": 0.2}}  # fmt: skip
    result = done("suggest", body)["result"]
    (one,) = result["suggestions"]
    assert one["row"] == {"heat": pytest.approx(0, abs=0.05), "time": 0.2}
    assert "dataset" not in result


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"acquisition": "luck"}, ["/acquisition"]),
        ({"n_suggestions": 0, "fixed": {"cold": 1}}, ["/n_suggestions"]),
        ({"fixed": {"cold": 1}}, ["/fixed/cold"]),
        ({"target": "z"}, ["/target"]),
        ({"variables": [{"column": "heat", "minimum": 1, "values": [1]}]}, ["/variables/0"]),
        ({"constraints": [{"coefficients": {"heat": 1}}]}, ["/constraints/0"]),
        ({"constraints": [{"coefficients": {"heat": 1}, "at_least": 5}]}, ["/constraints"]),
    ],
)
def test_a_fault_has_its_pointer(client, dataset, changes, pointers):
    response = client.post("/v1/jobs/suggest:validate", json={"dataset": dataset, "target": "y"} | changes)
    assert response.status_code == 422, response.text
    assert {fault["pointer"] for fault in response.json()["errors"]} >= {*pointers}


def test_a_dry_run_without_faults(client, dataset):
    assert client.post("/v1/jobs/suggest:validate", json={"dataset": dataset, "target": "y"}).status_code == 200
