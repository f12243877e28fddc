"""From a search to an ensemble as a client takes it: by sending back what it received."""

from pathlib import Path

IRIS = Path(__file__).parents[2] / "app" / "samples" / "iris.csv"


def test_search_then_train_the_ensemble_then_predict(client, done):
    dataset = client.post("/v1/datasets", content=IRIS.read_bytes(), params={"name": "iris"}).json()
    common = {"dataset": dataset["id"], "target": dataset["columns"][-1]["name"]}
    requested = {
        **common,
        "algorithm": {"name": "knn"},
        "alternatives": [{"name": "logistic"}, {"name": "generative_bayes"}],
        "grid": [{"pointer": "/algorithm/n_neighbors", "values": [3, 9]}],
        "keep_fold_models": True,
    }
    found = done("search", requested)["result"]
    offered = found["ensemble"]
    best = found["candidates"][found["chosen"]]
    assert offered["validation"]["value"] < best["validation"]["value"]
    assert (offered["validation"]["name"], offered["gain"]["name"]) == ("log_loss", "log_loss_difference")
    expected = {**common, "model": "together", **{key: offered[key] for key in ("algorithm", "preprocessing")}}
    assert client.post("/v1/jobs/train:validate", json=expected).status_code == 200
    version = done("train", expected)["version"]
    rows = [dict(zip([column["name"] for column in dataset["columns"]], [5.1, 3.5, 1.4, 0.2], strict=False))]
    response = client.post("/v1/models/together/predict", json={"rows": rows}).json()
    assert (response["version"], response["predictions"]) == (version, ["setosa"])
    members = client.get(f"/v1/models/together/versions/{version}/report").json()["summary"]
    assert len(members) == 5 * len(offered["members"])
