"""Difficulty over HTTP: a column orders the rows of a training, and predictions and further batches do without it."""

import numpy as np
import pytest

LINES = [f"{x:.3f},{abs(x):.2f},{3 * x + 1:.3f}" for x in np.random.default_rng(0).normal(size=80)]
ONLINE = {"name": "linear_sgd", "solver": "online"}


@pytest.fixture
def upload(client):
    def create(*lines):
        return client.post("/v1/datasets", content="\n".join(lines).encode()).json()["id"]

    return create


def test_rows_are_learned_in_stages_and_further_batches_need_no_difficulty(client, done, upload):
    dataset = upload("x,hard,y", *LINES)
    request = {"dataset": dataset, "target": "y", "algorithm": ONLINE, "difficulty": "hard"}
    done("train", request | {"model": "staged", "difficulty_stages": 3})
    version = client.get("/v1/models/staged/versions/1").json()
    assert [column["name"] for column in version["inputs"]] == ["x"]
    report = client.get("/v1/models/staged/versions/1/report").json()
    assert report["iterations"] == 3 * 20, "three stages of as many epochs"
    (value,) = client.post("/v1/models/staged/predict", json={"rows": [{"x": 1}]}).json()["predictions"]
    assert value == pytest.approx(4, abs=0.2)
    for number, batch in enumerate((upload("x,y", "1,4", "2,7"), upload("x,hard,y", "1,1,4", "2,2,7")), 2):
        assert done("update", {"model": "staged", "version": 1, "dataset": batch})["version"] == number
    found = done(
        "search", request | {"model": "staged-search", "grid": [{"pointer": "/algorithm/l2", "values": [0, 10]}]}
    )
    assert found["version"] == 1


def test_other_learners_refuse_it_by_name(client, upload):
    request = {"model": "m", "dataset": upload("x,hard,y", *LINES), "target": "y", "difficulty": "hard"}
    response = client.post("/v1/jobs/train", json=request | {"algorithm": {"name": "knn"}})
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/difficulty", "not_offered")
    assert error["detail"] == "knn does not learn rows in an order. Algorithms that do: linear_sgd, mlp, perceptron."
    assert client.post("/v1/jobs/train", json=request | {"difficulty_stages": 0}).status_code == 422
