"""Projections over HTTP: weighted pairs, ratios of pairs, random directions, and columns of the table."""

import itertools

import numpy as np
import pytest
from sklearn import datasets

NAMES = ["a", "b", "c", "d"]
IRIS = datasets.load_iris()
ROWS = {"columns": NAMES, "data": IRIS.data[:7].tolist()}


@pytest.fixture
def upload(client):
    def send(name, header, lines):
        table = "\n".join([header, *(",".join(map(str, line)) for line in lines)])
        return client.post("/v1/datasets", content=table, params={"name": name}).json()["id"]

    return send


@pytest.fixture
def flowers(upload):
    lines = [
        (f"flower {i}", *row, f"kind {code}") for i, (row, code) in enumerate(zip(IRIS.data, IRIS.target, strict=True))
    ]
    return upload("flowers", "flower,a,b,c,d,kind", lines)


@pytest.fixture
def fitted(client, done):
    """Trains, and gives the report and what rows are predicted."""

    def train(body):
        version = done("train", {"model": "four-maps", **body})["version"]
        report = client.get(f"/v1/models/four-maps/versions/{version}/report").json()
        predicted = client.post("/v1/models/four-maps/predict", params={"version": version}, json=ROWS).json()
        return report, np.array(predicted["predictions"])

    return train


def test_edges_are_the_weights_of_pairs(fitted, flowers, upload):
    pairs = [(i, j) for i, j in itertools.combinations(range(0, 150, 5), 2) if IRIS.target[i] != IRIS.target[j]]
    edges = upload("apart", "one,other,value", [(f"flower {i}", f"flower {j}", 1.0) for i, j in pairs])
    given = {"form": "edges", "dataset": edges, "first": "one", "second": "other", "value": "value"}
    body = {"dataset": flowers, "features": NAMES, "item": "flower", "relations": given | {"meaning": "dissimilarity"}}
    report, z = fitted(body | {"algorithm": {"name": "weighted_pca"}, "preprocessing": {"scaling": "none"}})
    gaps = np.array([IRIS.data[i] - IRIS.data[j] for i, j in pairs])
    directions = np.linalg.eigh(gaps.T @ gaps)[1].T[::-1][:2]
    middle = IRIS.data.mean(axis=0)
    np.testing.assert_allclose(np.abs(z), np.abs((IRIS.data[:7] - middle) @ directions.T), rtol=1e-6, atol=1e-9)
    assert sum(report["summary"]["weighted_distance_ratio"]) < 1


def test_pairs_beside_classes(fitted, flowers, upload):
    pairs = upload("pairs", "one,other,kind", [("flower 0", "flower 1", "cannot"), ("flower 2", "flower 80", "must")])
    given = {"form": "pairs", "dataset": pairs, "first": "one", "second": "other", "kind": "kind"}
    body = {"dataset": flowers, "features": NAMES, "target": "kind", "item": "flower"}
    algorithm = {"algorithm": {"name": "ratio_projection", "relation_weight": 1e5}}
    plain, _ = fitted(body | algorithm)
    beside, z = fitted(body | algorithm | {"relations": given})
    assert z.shape == (7, 2)
    assert beside["summary"]["ratio"][0] != pytest.approx(plain["summary"]["ratio"][0], rel=0.01)


def test_a_guarantee_of_distances(client, done, upload):
    x = np.random.default_rng(5).normal(size=(12, 120))
    wide = upload("wide", ",".join(f"x{j}" for j in range(120)), x.tolist())
    body = {"model": "wide", "dataset": wide, "algorithm": {"name": "random_projection", "eps": 0.9}}
    version = done("train", body)["version"]
    summary = client.get(f"/v1/models/wide/versions/{version}/report").json()["summary"]
    assert summary["guarantee"]["probability"] == 0.95
    error = summary["guarantee"]["largest_error"]
    assert 0.8 < error <= 0.9
    seen = summary["observed_factors"]
    assert 1 - error < seen["smallest"] < 1 < seen["largest"] < 1 + error


def test_named_columns_are_predicted_as_they_are(fitted, flowers):
    body = {"dataset": flowers, "features": NAMES, "preprocessing": {"scaling": "none"}}
    report, z = fitted(body | {"algorithm": {"name": "select_columns", "column_names": ["d", "b"]}})
    np.testing.assert_array_equal(z, IRIS.data[:7, [3, 1]])
    assert [one["column"] for one in report["summary"]["selected_columns"]] == ["d", "b"]
    chosen, _ = fitted(body | {"algorithm": {"name": "select_columns", "n_components": 1}})
    assert chosen["summary"]["selected_columns"][0]["column"] == "c"


@pytest.mark.parametrize(
    ("changes", "pointer", "detail"),
    [
        (
            {"algorithm": {"name": "select_columns", "column_names": ["a", "bb"]}},
            "/algorithm/column_names/1",
            "The inputs have no column 'bb'; did you mean 'b'?",
        ),
        (
            {"algorithm": {"name": "ratio_projection"}},
            "/target",
            "ratio_projection needs a target column to learn from.",
        ),
        ({"algorithm": {"name": "random_projection", "eps": 1.5}}, "/algorithm/eps", None),
        ({"algorithm": {"name": "weighted_pca"}, "target": "kind"}, "/target", None),
    ],
)
def test_what_does_not_fit_is_refused_before_the_job(client, flowers, changes, pointer, detail):
    response = client.post(
        "/v1/jobs/train", json={"model": "four-maps", "dataset": flowers, "features": NAMES} | changes
    )
    assert response.status_code == 422
    (fault,) = response.json()["errors"]
    assert fault["pointer"] == pointer
    assert detail is None or fault["detail"] == detail
