"""k-means and its relatives over HTTP: starts, distortions, a tree of splits, soft memberships' free energy."""

import numpy as np
import pytest


@pytest.fixture
def groups(client):
    """Two pairs of groups of 40 rows, far apart for their width."""
    rng = np.random.default_rng(4)
    centres = np.array([[0, 0], [8, 0], [60, 0], [68, 0]])
    rows = rng.permutation((centres[:, None] + rng.normal(size=(4, 40, 2))).reshape(-1, 2))
    dataset = client.post("/v1/datasets", content="\n".join(["a,b", *(f"{a},{b}" for a, b in rows)])).json()["id"]
    return dataset, np.array([[float(f"{a}"), float(f"{b}")] for a, b in rows])


@pytest.fixture
def model_of(client, done, groups):
    def train(algorithm):
        request = {
            "model": algorithm["name"],
            "dataset": groups[0],
            "preprocessing": {"scaling": "none"},
            "algorithm": algorithm,
        }
        version = done("train", request)["version"]
        report = client.get(f"/v1/models/{algorithm['name']}/versions/{version}/report").json()
        rows = {"columns": ["a", "b"], "data": groups[1].tolist()}
        path = f"/v1/models/{algorithm['name']}/predict"
        return report, client.post(path, json=rows, params={"version": version}).json()["predictions"]

    return train


@pytest.mark.parametrize("init", ["split", "random-partition"])
def test_distortions_are_those_of_all_pairs(model_of, groups, init):
    report, labels = model_of({"name": "kmeans", "n_clusters": 4, "init": init, "shift": True})
    for cluster in report["summary"]["clusters"]:
        rows = groups[1][np.array(labels) == cluster["cluster"]]
        pairs = np.linalg.norm(rows[:, None] - rows, axis=2)
        assert cluster["size"] == 40
        assert cluster["pairwise"] == pytest.approx((pairs**2).sum() / 2)
        assert cluster["pairwise"] == pytest.approx(40 * cluster["inertia"])
        assert cluster["diameter"] == pytest.approx(pairs.max())


def test_splits_are_a_tree(model_of, client):
    report, labels = model_of({"name": "bisecting_kmeans", "n_clusters": 4})
    nodes = report["summary"]["nodes"]
    assert [node["size"] for node in nodes] == [160, 80, 80, 40, 40, 40, 40]
    assert [node["cluster"] for node in nodes] == [None, None, None, 0, 1, 2, 3]
    assert np.bincount(labels).tolist() == [40] * 4
    decoded = client.post("/v1/models/bisecting_kmeans/decode", json={"predictions": [0]}).json()["rows"][0]["values"]
    assert [decoded["a"], decoded["b"]] == pytest.approx(nodes[3]["centre"])


@pytest.mark.parametrize("solver", ["batch", "online"])
def test_soft_clusters_share_all_rows(model_of, solver):
    report, labels = model_of({"name": "soft_kmeans", "n_clusters": 4, "solver": solver})
    assert np.bincount(labels).tolist() == [40] * 4
    assert sum(cluster["mass"] for cluster in report["summary"]["clusters"]) == pytest.approx(160)


@pytest.mark.parametrize(
    ("algorithm", "pointers"),
    [
        ({"name": "kmeans", "init": "rows", "shift": 2}, {"/algorithm/init", "/algorithm/shift"}),
        (
            {"name": "bisecting_kmeans", "max_depth": 0, "n_clusters": 0},
            {"/algorithm/max_depth", "/algorithm/n_clusters"},
        ),
        (
            {"name": "soft_kmeans", "stiffness": 0, "learning_rate": 1},
            {"/algorithm/stiffness", "/algorithm/learning_rate"},
        ),
    ],
)
def test_every_bad_parameter_is_named(client, groups, algorithm, pointers):
    response = client.post("/v1/jobs/train", json={"model": "m", "dataset": groups[0], "algorithm": algorithm})
    assert response.status_code == 422
    assert {fault["pointer"] for fault in response.json()["errors"]} == pointers
