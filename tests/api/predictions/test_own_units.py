"""Coefficients in the units of the table, over HTTP: they predict from the columns as they are."""

import numpy as np
import pytest
from sklearn import datasets
from sklearn.naive_bayes import GaussianNB

DIABETES = datasets.load_diabetes(scaled=False)
NAMES = [f"x{j}" for j in range(10)]


@pytest.fixture
def dataset(client):
    lines = [",".join([*map(str, row), str(y), "low" if y < 140 else "high"]) for row, y in zip(
        DIABETES.data, DIABETES.target, strict=True
    )]  # fmt: skip
    table = "\n".join([",".join([*NAMES, "y", "level"]), *lines])
    return client.post("/v1/datasets", content=table).json()["id"]


@pytest.mark.parametrize(
    ("algorithm", "target"),
    [({"name": "lasso"}, "y"), ({"name": "linear_sgd", "loss": "squared"}, "y"), ({"name": "perceptron"}, "level")],
    ids=["lasso", "linear_sgd", "perceptron"],
)
def test_the_report_has_coefficients_in_units_of_the_table(client, done, dataset, algorithm, target):
    name = f"own-units-{algorithm['name'].replace('_', '-')}"
    body = {"model": name, "dataset": dataset, "features": NAMES, "target": target, "algorithm": algorithm}
    done("train", body | {"preprocessing": {"scaling": "standard"}})
    report = client.get(f"/v1/models/{name}/versions/1/report").json()
    own = report["unscaled"]["summary"]
    assert report["unscaled"]["columns"] == NAMES
    coef = np.reshape(own["coefficients"], (-1, 10))
    scores = DIABETES.data @ coef.T + np.ravel(own.get("intercept", own.get("intercepts")))
    sent = {"columns": NAMES, "data": DIABETES.data.tolist()}
    predicted = client.post(f"/v1/models/{name}/predict", json=sent).json()["predictions"]
    if target == "y":
        np.testing.assert_allclose(scores[:, 0], predicted, rtol=1e-9)
    else:
        signs = scores[:, 0] > 0
        assert len(set(zip(signs.tolist(), predicted, strict=True))) == 2
    if name.endswith("lasso"):
        path = own["path"]
        assert np.shape(path["coefficients"]) == (len(path["penalties"]), 10)
        chosen = path["penalties"].index(own["l1"])
        np.testing.assert_allclose(path["coefficients"][chosen], own["coefficients"], rtol=1e-9)
        assert [one["column"] for one in own["selected_columns"]] == [NAMES[j] for j in own["selected"]]


def test_means_variances_and_curves_are_in_units_of_the_table(client, done, dataset):
    body = {"dataset": dataset, "features": NAMES, "preprocessing": {"scaling": "standard"}}
    whole = {"validation": {"test_fraction": 0.0}}
    done("train", body | whole | {"model": "own-means", "target": "level", "algorithm": {"name": "generative_bayes"}})
    own = client.get("/v1/models/own-means/versions/1/report").json()["unscaled"]["summary"]
    peer = GaussianNB(var_smoothing=0).fit(DIABETES.data, np.where(DIABETES.target < 140, "low", "high"))
    assert own["classes"] == peer.classes_.tolist()
    assert [one["column"] for one in own["columns"]] == NAMES
    np.testing.assert_allclose([one["means"] for one in own["columns"]], peer.theta_.T, rtol=1e-9)
    np.testing.assert_allclose([one["variances"] for one in own["columns"]], peer.var_.T, rtol=1e-9)

    done("train", body | whole | {"model": "own-curves", "target": "y", "algorithm": {"name": "additive"}})
    own = client.get("/v1/models/own-curves/versions/1/report").json()["unscaled"]["summary"]
    rows = np.tile(DIABETES.data[0], (100, 1))
    for j, (curve, values) in enumerate(zip(own["curves"], DIABETES.data.T, strict=True)):
        assert (curve["column"], len(curve["values"])) == (NAMES[j], min(50, np.unique(values).size))
        assert (curve["values"][0], curve["values"][-1]) == pytest.approx((values.min(), values.max()))
        sent = rows[: len(curve["values"])].copy()
        sent[:, j] = curve["values"]
        predicted = client.post("/v1/models/own-curves/predict", json={"columns": NAMES, "data": sent.tolist()}).json()[
            "predictions"
        ]
        np.testing.assert_allclose(
            np.subtract(predicted, predicted[0]),
            np.subtract(curve["contributions"], curve["contributions"][0]),
            atol=1e-8,
        )
