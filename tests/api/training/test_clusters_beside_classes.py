"""A clustering with a target over HTTP: the clusters are compared with its classes, which the fit does not see."""

import numpy as np
import pytest
from sklearn import datasets, metrics

KMEANS = {"name": "kmeans", "n_clusters": 3}


@pytest.fixture(scope="module")
def iris():
    return datasets.load_iris(return_X_y=True)


@pytest.fixture
def dataset(client, iris):
    kinds = [f"kind {code}" if i % 10 else "" for i, code in enumerate(iris[1])]
    lines = [",".join([*map(str, row), kind]) for row, kind in zip(iris[0], kinds, strict=True)]
    return client.post("/v1/datasets", content="\n".join(["a,b,c,d,kind", *lines])).json()["id"]


@pytest.fixture
def trained(client, done, dataset):
    """`trained(model, changes)`: the report and a prediction of a clustering of four columns."""

    def run(model, **changes):
        done("train", {"model": model, "dataset": dataset, "features": list("abcd"), "algorithm": KMEANS} | changes)
        return client.get(f"/v1/models/{model}/versions/1/report").json()

    return run


def by_name(found):
    return {one["name"]: one for one in found if one.get("label") is None}


def test_a_report_compares_clusters_with_a_target_that_the_fit_does_not_see(client, trained, iris):
    report, plain = trained("beside", target="kind"), trained("plain")
    assert report["summary"] == plain["summary"]
    assert (report["rows_train"], report["columns"]) == (150, plain["columns"])
    x, y = iris
    rows = {"columns": list("abcd"), "data": x.tolist()}
    one, other = (client.post(f"/v1/models/{name}/predict", json=rows).json() for name in ("beside", "plain"))
    assert one["predictions"] == other["predictions"]
    known = np.arange(150) % 10 > 0
    labels = np.array(one["predictions"])
    found = by_name(report["train"])
    assert found["adjusted_rand"]["value"] == pytest.approx(metrics.adjusted_rand_score(y[known], labels[known]))
    assert found["adjusted_mutual_information"]["value"] == pytest.approx(
        metrics.adjusted_mutual_info_score(y[known], labels[known])
    )
    for name in ("adjusted_rand", "normalized_mutual_information", "adjusted_mutual_information", "purity"):
        assert found[name]["lower"] < found[name]["value"] < found[name]["upper"]
        assert found[name]["n"] == 135
    assert "compared with the column 'kind' in 135 rows, unseen by the fit" in report["evidence"]
    assert "15 rows without a value of 'kind' are learned from, but not compared with it." in report["warnings"]
    assert set(found) - set(by_name(plain["train"])) == {
        "adjusted_rand",
        "normalized_mutual_information",
        "adjusted_mutual_information",
        "purity",
    }


def test_folds_and_held_out_rows_are_compared_too(trained):
    validation = {"method": "kfold", "folds": 3, "test_fraction": 0.3}
    report = trained("folded", target="kind", task="clustering", validation=validation)
    assert by_name(report["test"])["adjusted_rand"]["n"] < 45
    assert by_name(report["cross_validation"])["adjusted_rand"]["n"] == 3


def test_evaluate_compares_with_the_target_it_names(client, done, dataset, trained):
    trained("alone")
    body = {"model": "alone", "dataset": dataset, "rows": "all"}
    result = done("evaluate", body | {"target": "kind"})["result"]
    assert by_name(result["metrics"])["adjusted_rand"]["n"] == 135
    assert "compared with the column 'kind' in 135 rows" in result["evidence"]
    assert "adjusted_rand" not in by_name(done("evaluate", body)["result"]["metrics"])
    response = client.post("/v1/jobs/evaluate", json=body | {"target": "kin"})
    assert [fault["pointer"] for fault in response.json()["errors"]] == ["/target"]


def test_the_catalogue_declares_the_use_of_a_target(client):
    found = {name: client.get(f"/v1/algorithms/{name}").json()["targets"] for name in ("kmeans", "lda", "pca", "ridge")}
    assert found == {
        "kmeans": {"clustering": "optional"},
        "lda": {"projection": "needed"},
        "pca": {"projection": "never"},
        "ridge": {"classification": "needed", "regression": "needed"},
    }


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"target": "kin"}, "/target"),
        ({"target": "kind", "features": ["a", "kind"]}, "/features/1"),
        ({"target": "kind", "task": "classification"}, "/task"),
        ({"target": "kind", "preprocessing": {"categories": "target"}}, "/preprocessing/categories"),
        ({"target": "kind", "validation": {"method": "loo"}}, "/validation/method"),
        ({"target": "kind", "class_weight": "balanced"}, "/class_weight"),
    ],
)
def test_what_does_not_fit_is_refused(client, dataset, changes, pointer):
    body = {"model": "refused", "dataset": dataset, "algorithm": KMEANS} | changes
    response = client.post("/v1/jobs/train", json=body)
    assert response.status_code == 422
    assert [fault["pointer"] for fault in response.json()["errors"]] == [pointer]
