"""A job of the kind `compare` over HTTP: regressions by paired differences, clusterings by agreement, and refusals."""

import numpy as np
import pytest
from sklearn import metrics

WIDTHS = [["a"], ["b"]]


@pytest.fixture(scope="module")
def dataset(client):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 120)) + rng.integers(0, 2, 120) * 6
    lines = [f"{x},{y},{2 * x + 0.3 * y}" for x, y in zip(a.round(3), b.round(3), strict=True)]
    return client.post("/v1/datasets", content="\n".join(["a,b,y", *lines])).json()["id"]


@pytest.fixture(scope="module")
def trained(done, dataset):
    for features in WIDTHS:
        body = {"model": "compared-slopes", "dataset": dataset, "target": "y", "features": features}
        done("train", body | {"algorithm": {"name": "linear"}})
    for k in (2, 3):
        body = {"model": "compared-groups", "dataset": dataset, "features": ["a", "b"]}
        done("train", body | {"algorithm": {"name": "kmeans", "n_clusters": k}})


def value(own, name):
    return next(one["value"] for one in own["metrics"] if one["name"] == name)


def both(model):
    return [{"model": model, "version": version} for version in (1, 2)]


def test_versions_of_one_training_table_are_compared_on_the_rows_held_out(done, dataset, trained):
    job = done("compare", {"dataset": dataset, "versions": both("compared-slopes")})
    result = job["result"]
    assert (result["kind"], result["metric"], result["target"], result["rows"]) == ("compare", "rmse", "y", 24)
    assert [one["version"] for one in result["versions"]] == [1, 2]
    assert result["reuse"]["uses"] == 3  # two trainings, and this comparison
    (pair,) = result["pairs"]
    errors = [value(own, "rmse") for own in result["versions"]]
    assert pair["difference"]["value"] == pytest.approx(errors[0] - errors[1])
    assert pair["difference"]["lower"] < pair["difference"]["upper"] < 0
    assert pair["better"] == 0


def test_clusterings_are_compared_without_a_truth(client, done, dataset, trained):
    result = done("compare", {"dataset": dataset, "versions": both("compared-groups")})["result"]
    data = client.get(f"/v1/datasets/{dataset}/rows?limit=120").json()["data"]
    rows = {"columns": ["a", "b"], "data": [row[:2] for row in data]}
    labels = [
        client.post(f"/v1/models/compared-groups/predict?version={version}", json=rows).json()["predictions"]
        for version in (1, 2)
    ]
    found = {one["name"]: one["value"] for one in result["pairs"][0]["agreement"]}
    assert found["adjusted_rand"] == pytest.approx(metrics.adjusted_rand_score(*labels))
    assert found["normalized_mutual_information"] == pytest.approx(metrics.normalized_mutual_info_score(*labels))
    assert found["variation_of_information"] > 0
    assert "no ground truth" in result["evidence"]
    two, three = (value(own, "silhouette") for own in result["versions"])
    assert two > three


def test_a_version_may_stand_beside_itself(done, dataset, trained):
    (pair,) = done("compare", {"dataset": dataset, "versions": both("compared-groups")[:1] * 2})["result"]["pairs"]
    assert [one["value"] for one in pair["agreement"]] == [1, pytest.approx(1), 0]


def test_numbers_are_compared_by_the_metric_of_the_request(done, dataset, trained):
    result = done("compare", {"dataset": dataset, "versions": both("compared-slopes"), "metric": "mae"})["result"]
    errors = [value(own, "mae") for own in result["versions"]]
    (pair,) = result["pairs"]
    assert (result["metric"], pair["difference"]["name"], pair["better"]) == ("mae", "mae_difference", 0)
    assert pair["difference"]["value"] == pytest.approx(errors[0] - errors[1])


def test_classes_are_compared_by_the_metric_of_the_request(client, done):
    x = np.random.default_rng(3).normal(size=(200, 2))
    lines = [f"{a:.3f},{b:.3f},{'up' if a + b > 0 else 'down'}" for a, b in x.tolist()]
    dataset = client.post("/v1/datasets", content="\n".join(["a,b,y", *lines])).json()["id"]
    for features in (["a", "b"], ["a"]):
        body = {"model": "compared-classes", "dataset": dataset, "target": "y", "features": features}
        done("train", body | {"algorithm": {"name": "logistic"}})
    for metric, better in (("accuracy", 1), ("log_loss", -1)):
        given = {"dataset": dataset, "versions": both("compared-classes"), "metric": metric}
        result = done("compare", given)["result"]
        scores = [value(own, metric) for own in result["versions"]]
        (pair,) = result["pairs"]
        assert result["metric"] == metric
        assert pair["difference"]["value"] == pytest.approx(scores[0] - scores[1])
        assert better * pair["difference"]["value"] > 0
        assert not any("compared by" in one for one in result["warnings"])


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"metric": "log_loss"}, ["/metric"]),
        ({"metric": "auc"}, ["/metric"]),
        ({"versions": [{"model": "compared-groups"}] * 2, "metric": "rmse"}, ["/metric"]),
        ({"versions": [{"model": "compared-slopes"}, {"model": "compared-groups"}]}, ["/versions/1/model"]),
        ({"versions": [{"model": "compared-slopes"}]}, ["/versions"]),
        ({"versions": [{"model": "compared-slopes"}] * 21}, ["/versions"]),
        ({"versions": [{"model": "compared-groups"}] * 2, "target": "y"}, ["/target"]),
        ({"target": "z", "rows": "some"}, ["/target", "/rows"]),
        ({"target": "z"}, ["/target"]),
        (
            {"versions": [{"model": "compared-slopes", "version": 1, "alias": "b"}] * 2},
            ["/versions/0/alias", "/versions/1/alias"],
        ),
    ],
)
def test_a_fault_has_its_pointer(client, dataset, trained, changes, pointers):
    body = {"dataset": dataset, "versions": both("compared-slopes")} | changes
    response = client.post("/v1/jobs/compare:validate", json=body)
    assert response.status_code == 422, response.text
    assert [fault["pointer"] for fault in response.json()["errors"]] == pointers


def test_models_and_datasets_that_do_not_exist_are_not_found(client, dataset, trained):
    for changes in ({"versions": [{"model": "compared-slopes"}, {"model": "nothing"}]}, {"dataset": "nothing"}):
        response = client.post(
            "/v1/jobs/compare", json={"dataset": dataset, "versions": both("compared-slopes")} | changes
        )
        assert response.status_code in {404, 422}, response.text
