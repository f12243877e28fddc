"""From a search to an ensemble as a client takes it: by sending back what it received."""

from pathlib import Path

SAMPLES = Path(__file__).parents[3] / "app" / "samples"
IRIS = SAMPLES / "iris.csv"


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


def test_the_least_structural_risk_is_trained(client, done):
    tumours = (SAMPLES / "breast_cancer.csv").read_bytes()
    dataset = client.post("/v1/datasets", content=tumours, params={"name": "tumours"}).json()["id"]
    requested = {
        "model": "least-risk",
        "dataset": dataset,
        "target": "diagnosis",
        "algorithm": {"name": "svm", "kernel": "linear", "cv": None},
        "alternatives": [{"name": "logistic"}],
        "grid": [{"pointer": "/algorithm/C", "values": [1e-5, 1e-4, 1e-3]}],
        "metric": "structural_risk",
    }
    job = done("search", requested)
    result = job["result"]
    assert (result["metric"], result["better"]) == ("structural_risk", "lower")
    assert result["evidence"] == "4 candidates on all 455 training rows."
    *machines, plane = result["candidates"]
    assert plane["capacity"]["dimension"] == 31
    assert [one["capacity"]["dimension"] for one in machines] == sorted(
        one["capacity"]["dimension"] for one in machines
    )
    for one in result["candidates"]:
        parts = one["capacity"]["empirical_risk"] + one["capacity"]["confidence"]
        assert abs(one["validation"]["value"] - parts) < 1e-9
    values = [one["validation"]["value"] for one in result["candidates"]]
    assert values[result["chosen"]] == min(values)
    assert job["version"] == 1
    refused = client.post("/v1/jobs/search", json=requested | {"alternatives": [{"name": "knn"}]})
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/metric"]
