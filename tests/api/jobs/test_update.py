"""A job of the kind `update`: a new version from one more batch, and the faults of batches that do not fit."""

import numpy as np
import pytest

SPEC = {"target": "y", "algorithm": {"name": "linear_sgd", "solver": "online"}}


@pytest.fixture(scope="module")
def tables(client):
    rng = np.random.default_rng(0)

    def upload(name, columns, rows):
        x = rng.normal(size=(rows, len(columns)))
        lines = [",".join([*columns, "y"]), *(",".join(f"{v:.6f}" for v in [*row, row[0] + 2]) for row in x)]
        return client.post("/v1/datasets", content="\n".join(lines).encode(), params={"name": name}).json()["id"]

    return upload("update-1", "ab", 200), upload("update-2", "ab", 50), upload("update-3", "abc", 50)


def test_a_batch_makes_a_new_version_with_a_receipt_of_both_datasets(client, done, tables):
    first, second, wider = tables
    done("train", {"model": "learns-on", "dataset": first} | SPEC)
    body = {"model": "learns-on", "dataset": second}
    assert client.post("/v1/jobs/update:validate", json=body).status_code == 200
    job = done("update", body)
    assert (job["version"], job["result"]["base_version"], job["result"]["rows"]) == (2, 1, 50)
    old, new = (client.get(f"/v1/models/learns-on/versions/{version}").json() for version in (1, 2))
    receipt = new["receipt"]
    assert (receipt["base"]["version"], receipt["base"]["digest"]) == (1, old["digest"])
    assert receipt["base"]["data_digest"] == old["receipt"]["data_digest"] != receipt["data_digest"]
    before = {metric["name"]: metric for metric in job["result"]["before"]}
    evaluated = done("evaluate", {"model": "learns-on", "version": 1, "dataset": second})["result"]["metrics"]
    assert before["rmse"]["value"] == next(one["value"] for one in evaluated if one["name"] == "rmse")
    assert client.post("/v1/models/learns-on/predict?version=2", json={"rows": [{"a": 1, "b": 0}]}).status_code == 200
    assert client.post("/v1/models/learns-on/intervals?version=1", json={"rows": [{"a": 1, "b": 0}]}).status_code == 200
    refused = client.post("/v1/models/learns-on/intervals?version=2", json={"rows": [{"a": 1, "b": 0}]})
    assert refused.json()["code"] == "no_interval"
    (fault,) = client.post("/v1/jobs/update", json=body | {"dataset": wider}).json()["errors"]
    assert (fault["pointer"], fault["code"]) == ("/dataset", "unknown_column")
    assert done("update", body | {"dataset": wider, "ignored_columns": ["c"]})["version"] == 3


@pytest.mark.parametrize("role", ["item", "group", "time", "difficulty"])
def test_a_batch_may_have_the_columns_that_had_a_role_in_the_training(client, done, role):
    """Such columns are no inputs of the model, though a training without the role would learn from them."""
    rng = np.random.default_rng(1)

    def upload(rows):
        x = rng.normal(size=(rows, 2))
        lines = ["a,role,y", *(f"{a:.6f},{b:.6f},{a + 2:.6f}" for a, b in x)]
        return client.post("/v1/datasets", content="\n".join(lines)).json()["id"]

    given = {"validation": {role: "role"}} if role in {"group", "time"} else {role: "role"}
    name = f"learns-with-{role}"
    done("train", SPEC | {"model": name, "dataset": upload(100)} | given)
    assert [one["name"] for one in client.get(f"/v1/models/{name}/versions/1").json()["inputs"]] == ["a"]
    assert done("update", {"model": name, "dataset": upload(30)})["version"] == 2


def test_a_model_that_cannot_learn_on_is_refused_with_those_that_can(client, done, tables):
    done("train", {"model": "learns-once", "dataset": tables[0]} | SPEC | {"algorithm": {"name": "ridge"}})
    refused = client.post("/v1/jobs/update", json={"model": "learns-once", "dataset": tables[1]})
    (fault,) = refused.json()["errors"]
    assert (refused.status_code, fault["pointer"], fault["code"]) == (422, "/model", "not_offered")
    assert "linear_sgd, mlp, perceptron" in fault["detail"]
