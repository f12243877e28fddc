"""A projection with a target over HTTP: it learns from classes, and predicts coordinates."""

import numpy as np
import pytest
from sklearn import datasets
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis


@pytest.fixture(scope="module")
def iris():
    return datasets.load_iris(return_X_y=True)


@pytest.fixture
def dataset(client, iris):
    lines = [",".join([*map(str, row), f"kind {code}"]) for row, code in zip(*iris, strict=True)]
    table = "\n".join(["a,b,c,d,kind", *lines])
    return client.post("/v1/datasets", content=table, params={"name": "flowers"}).json()["id"]


def test_classes_separate_the_coordinates(client, dataset, done, iris):
    body = {"model": "lda-map", "dataset": dataset, "target": "kind", "algorithm": {"name": "lda"}}
    job = done("train", body)
    version = client.get(f"/v1/models/lda-map/versions/{job['version']}").json()
    assert (version["task"], version["target"], version.get("classes")) == ("projection", "kind", None)
    report = client.get(f"/v1/models/lda-map/versions/{job['version']}/report").json()
    assert (report["rows_train"], report["rows_test"], report["test"]) == (150, 0, [])
    assert [one["name"] for one in report["train"]] == ["separation", "trustworthiness", "continuity", "stress"]
    assert all(one["lower"] < one["value"] < one["upper"] for one in report["train"])
    assert [centre["class"] for centre in report["summary"]["centres"]] == ["kind 0", "kind 1", "kind 2"]
    x, y = iris
    predicted = client.post(
        "/v1/models/lda-map/predict",
        params={"version": job["version"]},
        json={"columns": list("abcd"), "data": x.tolist()},
    ).json()
    found = np.array(predicted["predictions"])
    expected = LinearDiscriminantAnalysis().fit(x, y).transform(x)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("changes", "pointer", "detail"),
    [
        ({}, "/target", "lda needs a target column to learn from."),
        ({"target": "a", "task": "classification"}, "/task", "lda does projection, not classification."),
        ({"target": "kin"}, "/target", "The dataset has no column 'kin'; did you mean 'kind'?"),
        ({"target": "kind", "algorithm": {"name": "pca"}}, "/target", "pca learns without a target: leave it out."),
        ({"target": "kind", "validation": {"method": "loo"}}, "/validation/method", None),
    ],
)
def test_what_does_not_fit_is_refused_before_the_job(client, dataset, changes, pointer, detail):
    body = {"model": "lda-map", "dataset": dataset, "algorithm": {"name": "lda"}} | changes
    response = client.post("/v1/jobs/train", json=body)
    assert response.status_code == 422
    (fault,) = response.json()["errors"]
    assert fault["pointer"] == pointer
    assert detail is None or fault["detail"] == detail
