"""A search for the number of clusters over HTTP, on a table whose number is known."""

import numpy as np
import pytest
from sklearn import datasets


@pytest.fixture(scope="module")
def blobs():
    """Four clusters of 60 rows, far apart for their width."""
    rng = np.random.default_rng(4)
    centres = np.array([[0, 0], [8, 0], [0, 8], [8, 8]])
    return (centres[:, None] + rng.normal(size=(4, 60, 2))).reshape(-1, 2)


@pytest.fixture
def request_body(client, blobs):
    table = "\n".join(["a,b", *(f"{a},{b}" for a, b in np.random.default_rng(0).permutation(blobs))])
    dataset = client.post("/v1/datasets", content=table).json()["id"]
    grid = [{"pointer": "/algorithm/n_clusters", "values": [1, 2, 3, 4, 5, 6, 8]}]
    return {"dataset": dataset, "algorithm": {"name": "kmeans"}, "grid": grid}


@pytest.mark.parametrize("metric", [None, "davies_bouldin", "gap", "stability"])
def test_the_number_of_clusters_is_found(done, request_body, metric):
    result = done("search", request_body | ({"metric": metric} if metric else {}))["result"]
    assert result["metric"] == (metric or "silhouette")
    assert result["better"] == ("lower" if metric == "davies_bouldin" else "higher")
    chosen = result["candidates"][result["chosen"]]
    assert chosen["settings"] == [{"pointer": "/algorithm/n_clusters", "value": 4}]
    assert chosen["validation"]["lower"] <= chosen["validation"]["value"] <= chosen["validation"]["upper"]
    assert len(chosen["folds"]) == 5
    single = result["candidates"][0]
    assert ("rank" not in single) == (metric != "gap"), "one cluster has no other to be compared with"


def test_the_number_of_crescents_is_found_by_stability_of_a_graph(client, done):
    """Their clusters are not round, so that silhouettes prefer other ones."""
    x, _ = datasets.make_moons(160, noise=0.04, random_state=0)
    table = "\n".join(["a,b", *(f"{a},{b}" for a, b in x)])
    dataset = client.post("/v1/datasets", content=table).json()["id"]
    grid = [{"pointer": "/algorithm/n_clusters", "values": [2, 3, 4]}]
    body = {"dataset": dataset, "algorithm": {"name": "spectral", "n_neighbors": 6}, "grid": grid}
    result = done("search", body | {"metric": "stability"})["result"]
    assert result["candidates"][result["chosen"]]["settings"] == [{"pointer": "/algorithm/n_clusters", "value": 2}]


@pytest.mark.parametrize("metric", ["inertia", "mean_inertia"])
def test_a_metric_that_every_further_cluster_improves_is_refused(client, request_body, metric):
    response = client.post("/v1/jobs/search", json=request_body | {"metric": metric})
    assert response.status_code == 422
    (fault,) = response.json()["errors"]
    assert fault["pointer"] == "/metric"
    assert fault["detail"] == (
        f"{metric} falls with every further cluster: take silhouette, davies_bouldin, stability or gap."
    )


def test_a_criterion_of_clusterings_is_refused_for_other_tasks(client, request_body):
    body = request_body | {"target": "a", "algorithm": {"name": "ridge"}, "grid": [], "metric": "stability"}
    response = client.post("/v1/jobs/search", json=body)
    assert response.status_code == 422
    assert [fault["detail"] for fault in response.json()["errors"]] == ["stability ranks clusterings only."]


def test_a_report_has_the_metrics_of_the_clusters_with_intervals(client, done, request_body):
    body = {name: request_body[name] for name in ("dataset", "algorithm")}
    job = done("train", body | {"model": "four", "algorithm": {"name": "kmeans", "n_clusters": 4}})
    report = client.get(f"/v1/models/four/versions/{job['version']}/report").json()
    found = {metric["name"]: metric for metric in report["train"] if metric.get("label") is None}
    for name in ("silhouette", "calinski_harabasz", "davies_bouldin", "inertia"):
        assert found[name]["lower"] < found[name]["value"] < found[name]["upper"]
    assert (report["stability"]["value"], report["stability"]["name"]) == (1.0, "stability")
    assert report["stability"]["lower"] < report["stability"]["upper"]
    assert 0.6 < found["silhouette"]["value"] < 0.9
