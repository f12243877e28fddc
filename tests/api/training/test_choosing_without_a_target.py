"""Searches for a density, a map and a linkage over HTTP, by the criteria of each."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture

OF_MAPS = "take trustworthiness, continuity or stress."
INSTEAD = "adjusted_rand or adjusted_mutual_information"


@pytest.fixture
def dataset(client):
    x = load_iris().data
    lines = [",".join([*map(str, row), f"kind {code // 50}"]) for code, row in enumerate(x)]
    return client.post("/v1/datasets", content="\n".join(["a,b,c,d,kind", *lines])).json()["id"]


@pytest.fixture
def searched(client, done, dataset):
    """`searched(algorithm, pointer, values, metric)`: the result of a search on the four columns of numbers."""

    def run(algorithm, pointer, values, metric, **more):
        body = {"dataset": dataset, "features": list("abcd"), "preprocessing": {"scaling": "none"}} | more
        grid = [{"pointer": f"/algorithm/{pointer}", "values": values}]
        return done("search", body | {"algorithm": algorithm, "grid": grid, "metric": metric})["result"]

    return run


def values(result):
    return [one["validation"]["value"] for one in result["candidates"]]


def test_bic_chooses_a_covariance(client, searched):
    forms = {"spherical": "spherical", "diagonal": "diag", "full": "full"}
    result = searched(
        {"name": "gaussian", "shrinkage": 0}, "covariance", list(forms), "bic", model="dense",
        validation={"method": "kfold", "test_fraction": 0},
    )  # fmt: skip
    x = load_iris().data
    expected = [GaussianMixture(1, covariance_type=form, reg_covar=0).fit(x).bic(x) for form in forms.values()]
    assert values(result) == pytest.approx(expected)
    assert (result["better"], result["chosen"]) == ("lower", 2)
    assert result["evidence"] == "3 candidates on all 150 training rows."
    report = client.get("/v1/models/dense/versions/1/report").json()
    found = {one["name"]: one for one in report["train"]}
    assert found["bic"]["value"] == pytest.approx(min(expected))
    assert found["aic"]["lower"] < found["aic"]["value"] < found["aic"]["upper"]
    assert report["summary"]["free_parameters"] == 14


def test_a_linkage_is_chosen_by_the_distances_that_it_keeps(client, done, dataset, searched):
    result = searched({"name": "agglomerative"}, "linkage", ["single", "average"], "cophenetic_correlation")
    single, average = values(result)
    assert result["chosen"] == int(average > single)
    body = {"model": "tree", "dataset": dataset, "features": list("abcd"), "algorithm": {"name": "agglomerative"}}
    done("train", body)
    report = client.get("/v1/models/tree/versions/1/report").json()
    (found,) = [one for one in report["train"] if one["name"] == "cophenetic_correlation"]
    assert found["value"] == pytest.approx(report["summary"]["cophenetic_correlation"])
    assert found["lower"] < found["value"] < found["upper"]


@pytest.mark.parametrize(("metric", "better"), [("trustworthiness", "higher"), ("stress", "lower")])
def test_a_map_is_chosen_by_what_it_keeps(searched, metric, better):
    result = searched({"name": "pca"}, "n_components", [1, 3], metric)
    one, three = values(result)
    assert (result["better"], result["chosen"]) == (better, 1)
    assert three > one if better == "higher" else three < one


@pytest.mark.parametrize(
    ("name", "more", "metric"), [("pca", {}, "trustworthiness"), ("lda", {"target": "kind"}, "separation")]
)
def test_a_projection_without_a_metric_is_ranked_by_one_that_it_has(searched, name, more, metric):
    result = searched({"name": name}, "n_components", [1, 2], None, **more)
    assert (result["metric"], result["better"]) == (metric, "higher")
    assert all(value is not None for value in values(result))


def test_clusters_are_chosen_beside_classes(searched):
    result = searched({"name": "kmeans"}, "n_clusters", [2, 3, 9], "adjusted_rand", target="kind")
    assert result["chosen"] == 1
    assert np.diff(values(result))[1] < 0


@pytest.mark.parametrize(
    ("algorithm", "metric", "detail"),
    [
        ("gaussian", "silhouette", "silhouette ranks clusterings only."),
        ("kmeans", "bic", "bic ranks densities only."),
        ("kmeans", "rmse", "rmse ranks regressions only."),
        ("pca", "log_density", "log_density ranks densities only."),
        ("kmeans", "adjusted_rand", "adjusted_rand compares clusters with classes: name their column in target."),
        ("kmeans", "purity", f"purity rises with every further cluster: take {INSTEAD}."),
        ("gaussian", "inertia", "inertia ranks clusterings only."),
        ("pca", "reconstruction_error", f"reconstruction_error falls with every further component: {OF_MAPS}"),
        ("pca", "explained_variance", f"explained_variance rises with every further component: {OF_MAPS}"),
        ("kmeans", "reconstruction_error", "reconstruction_error ranks projections only."),
    ],
)  # fmt: skip
def test_a_metric_that_cannot_rank_is_refused(client, dataset, algorithm, metric, detail):
    body = {"dataset": dataset, "features": list("abcd"), "algorithm": {"name": algorithm}, "metric": metric}
    response = client.post("/v1/jobs/search", json=body)
    assert response.status_code == 422
    assert [(fault["pointer"], fault["detail"]) for fault in response.json()["errors"]] == [("/metric", detail)]
