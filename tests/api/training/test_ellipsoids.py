"""The query of ellipsoids over HTTP: in the units of the table, and what is refused."""

import numpy as np
import pytest
from scipy import stats
from sklearn import datasets

IRIS = datasets.load_iris().data
NAMES = ["a", "b", "c", "d"]


@pytest.fixture(autouse=True, scope="module")
def models(client, done):
    table = "\n".join([",".join(NAMES), *(",".join(map(str, row)) for row in IRIS.tolist())])
    dataset = client.post("/v1/datasets", content=table).json()["id"]
    algorithms = {
        "cloud": {"name": "gaussian", "shrinkage": 0},
        "clouds": {"name": "gmm", "n_components": 2},
        "plain": {"name": "pca"},
        "centred": {"name": "kmeans", "n_clusters": 2},
        "halves": {"name": "bisecting_kmeans", "n_clusters": 4},
        "merged": {"name": "agglomerative", "n_clusters": 4},
    }
    for model, algorithm in algorithms.items():
        done(
            "train",
            {
                "model": f"ellipsoid-{model}",
                "dataset": dataset,
                "algorithm": algorithm,
                "validation": {"test_fraction": 0},
            },
        )


def ellipsoids_of(client, model, **body):
    return client.post(f"/v1/models/ellipsoid-{model}/ellipsoids", json=body)


def test_a_gaussian_has_the_ellipse_of_the_rows_in_their_own_units(client):
    found = ellipsoids_of(client, "cloud", columns=["d", "a"]).json()
    (one,), rows = found["components"], IRIS[:, [3, 0]]
    np.testing.assert_allclose(one["centre"], rows.mean(axis=0))
    matrix = np.array(one["matrix"])
    np.testing.assert_allclose(matrix[:2, :2] @ matrix[:2, :2], np.cov(rows.T, bias=True))
    np.testing.assert_allclose(matrix[2], [*rows.mean(axis=0), 1])
    np.testing.assert_allclose(found["whole"]["matrix"], one["matrix"])
    assert (one["share"], found["radius"]) == (1, 1)


def test_as_many_rows_lie_within_as_is_probable(client):
    found = ellipsoids_of(client, "cloud", columns=["a", "b"], probability=0.8).json()
    matrix, rows = np.array(found["whole"]["matrix"]), IRIS[:, :2]
    unit = (rows - rows.mean(axis=0)) @ np.linalg.inv(matrix[:2, :2])
    assert (np.square(unit).sum(axis=1) < 1).mean() == pytest.approx(0.8, abs=0.06)
    assert found["radius"] ** 2 == pytest.approx(stats.chi2(2).ppf(0.8))


def test_a_mixture_splits_from_the_whole_into_its_components(client):
    begin, middle, end = (ellipsoids_of(client, "clouds", split=split).json() for split in (0, 0.5, 1))
    assert end["columns"] == NAMES[:3]
    np.testing.assert_allclose(end["whole"]["centre"], IRIS[:, :3].mean(axis=0), rtol=1e-6)
    assert sum(one["share"] for one in end["components"]) == pytest.approx(1)
    for j in range(2):
        first, half, last = (np.array(one["components"][j]["matrix"]) for one in (begin, middle, end))
        np.testing.assert_allclose(first, end["whole"]["matrix"])
        np.testing.assert_allclose(half, (first + last) / 2)


def test_columns_that_the_model_does_not_have_and_other_models_are_refused(client):
    refused = ellipsoids_of(client, "clouds", columns=["a", "e", "a"])
    assert refused.status_code == 422
    assert [one["pointer"] for one in refused.json()["errors"]] == ["/columns/1", "/columns/2"]
    for body in ({"columns": []}, {"columns": NAMES}, {"probability": 1}, {"split": 2}, {"split": None}):
        assert ellipsoids_of(client, "clouds", **body).status_code == 422, body
    for model, body in {"clouds": {"principal": True, "columns": ["a"]}, "centred": {"parents": 1}}.items():
        assert ellipsoids_of(client, model, **body).status_code == 422
    assert ellipsoids_of(client, "halves", parents=5).json()["errors"][0]["pointer"] == "/parents"
    other = ellipsoids_of(client, "plain")
    assert (other.status_code, other.json()["code"]) == (409, "not_offered")


def test_a_gaussian_has_a_tail_probability(client):
    params = {"include": "distance,tail_probability"}
    body = {"columns": NAMES, "data": IRIS[:5].tolist()}
    found = client.post("/v1/models/ellipsoid-cloud/predict", params=params, json=body).json()["outputs"]
    squares = np.square(found["distance"])
    np.testing.assert_allclose(found["tail_probability"], stats.chi2(4).sf(squares), rtol=1e-9)
    report = client.get("/v1/models/ellipsoid-cloud/versions/1/report").json()
    np.testing.assert_allclose(report["unscaled"]["summary"]["mean"], IRIS.mean(axis=0))


@pytest.mark.parametrize("model", ["centred", "halves", "merged"])
def test_clusters_have_the_ellipses_of_their_rows(client, model):
    body = {"columns": NAMES, "data": IRIS.tolist()}
    labels = np.array(client.post(f"/v1/models/ellipsoid-{model}/predict", json=body).json()["predictions"])
    for one in ellipsoids_of(client, model, columns=["b", "c", "d"]).json()["components"]:
        rows = IRIS[labels == one["component"]][:, 1:]
        matrix = np.array(one["matrix"])
        np.testing.assert_allclose(one["centre"], rows.mean(axis=0))
        np.testing.assert_allclose(matrix[:3, :3] @ matrix[:3, :3], np.cov(rows.T, bias=True), atol=1e-9)
        sphere = np.random.default_rng(0).normal(size=(9, 3))
        points = sphere / np.linalg.norm(sphere, axis=1, keepdims=True) @ matrix[:3, :3]
        inverse = np.linalg.inv(np.cov(rows.T, bias=True))
        np.testing.assert_allclose(np.einsum("ni,ij,nj->n", points, inverse, points), 1)


@pytest.mark.parametrize("model", ["halves", "merged"])
def test_clusters_split_from_the_ellipsoids_of_their_parents(client, model):
    body = {"columns": NAMES, "data": IRIS.tolist()}
    labels = np.array(client.post(f"/v1/models/ellipsoid-{model}/predict", json=body).json()["predictions"])
    begin, end = (ellipsoids_of(client, model, parents=2, split=split).json()["components"] for split in (0, 1))
    parents = np.array([one["parent"] for one in begin])
    assert sorted(set(parents.tolist())) == [0, 1]
    for one, last in zip(begin, end, strict=True):
        rows = IRIS[parents[labels] == one["parent"]][:, :3]
        matrix = np.array(one["matrix"])
        np.testing.assert_allclose(one["centre"], rows.mean(axis=0))
        np.testing.assert_allclose(matrix[:3, :3] @ matrix[:3, :3], np.cov(rows.T, bias=True), atol=1e-9)
        np.testing.assert_allclose(last["centre"], IRIS[labels == one["component"]][:, :3].mean(axis=0))


def test_principal_coordinates_are_those_of_all_rows(client):
    found = ellipsoids_of(client, "merged", principal=True).json()
    centred = (IRIS - IRIS.mean(axis=0)) / IRIS.std(axis=0)
    values = np.linalg.eigvalsh(np.cov(centred.T, bias=True))[::-1][:3]
    assert found["columns"] == ["principal 1", "principal 2", "principal 3"]
    matrix = np.array(found["whole"]["matrix"])
    np.testing.assert_allclose(matrix, np.diag([*np.sqrt(values), 1]), atol=1e-7)
    directions = np.array([[row[name] for name in NAMES] for row in found["directions"]])
    np.testing.assert_allclose(np.var(centred @ directions.T, axis=0), values)
