"""From a search to an ensemble as a client takes it: by sending back what it was answered."""

import time
from pathlib import Path

import pytest

IRIS = Path(__file__).parents[2] / "app" / "samples" / "iris.csv"


@pytest.fixture
def done(client, worker):
    """`done(route, body)`: the job, when it has succeeded."""

    def run(route, body):
        job = client.post(route, json=body)
        assert job.status_code == 202, job.text
        until = time.monotonic() + 300
        while (told := client.get(job.headers["location"]).json())["state"] in {"queued", "running"}:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert told["state"] == "succeeded", told
        return told

    return run


def test_search_then_train_the_ensemble_then_predict(client, done):
    dataset = client.post("/v1/datasets", content=IRIS.read_bytes(), params={"name": "iris"}).json()
    common = {"dataset": dataset["id"], "target": dataset["columns"][-1]["name"]}
    asked = {
        **common,
        "algorithm": {"name": "knn"},
        "alternatives": [{"name": "logistic"}, {"name": "generative_bayes"}],
        "grid": [{"pointer": "/algorithm/n_neighbors", "values": [3, 9]}],
        "keep_fold_models": True,
    }
    found = done("/v1/jobs/search", asked)["result"]
    offered = found["ensemble"]
    best = found["candidates"][found["chosen"]]
    assert offered["validation"]["value"] < best["validation"]["value"]
    assert (offered["validation"]["name"], offered["gain"]["name"]) == ("log_loss", "log_loss_difference")
    wanted = {**common, "model": "together", **{key: offered[key] for key in ("algorithm", "preprocessing")}}
    assert client.post("/v1/jobs/train:validate", json=wanted).status_code == 200
    version = done("/v1/jobs/train", wanted)["version"]
    rows = [dict(zip([column["name"] for column in dataset["columns"]], [5.1, 3.5, 1.4, 0.2], strict=False))]
    answer = client.post("/v1/models/together/predict", json={"rows": rows}).json()
    assert (answer["version"], answer["predictions"]) == (version, ["setosa"])
    members = client.get(f"/v1/models/together/versions/{version}/report").json()["summary"]
    assert len(members) == 5 * len(offered["members"])
