"""Values that a report and an explanation name, over HTTP: rows of a confusion matrix, a path, effective rows."""

from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets
from sklearn.linear_model import lasso_path

SAMPLES = Path(__file__).parents[3] / "app" / "samples"
NAMES = ["a", "b", "c", "d"]
X, Y = datasets.load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def flowers(client):
    lines = [",".join([*map(str, row), f"kind {code}"]) for row, code in zip(X, Y, strict=True)]
    return client.post("/v1/datasets", content="\n".join([",".join([*NAMES, "kind"]), *lines])).json()["id"]


@pytest.fixture(scope="module")
def trained(client, done):
    def train(model, **body):
        done("train", {"model": model, **body})
        return client.get(f"/v1/models/{model}/versions/1/report").json()

    return train


def test_coordinates_of_a_projection_with_a_target_assign_the_classes_of_one_shared_covariance(
    client, trained, flowers
):
    """In the coordinates of `lda` the classes have unit covariance: the nearest centre, by the shares of the classes,
    is the class of the model of Bayes whose densities share their covariance.
    """
    body = {"dataset": flowers, "target": "kind", "preprocessing": {"scaling": "none"}}
    centres = trained("map-of-classes", **body, algorithm={"name": "lda"})["summary"]["centres"]
    shared = {"name": "generative_bayes", "density": "shared_covariance"}
    trained("shared-covariance", **body, algorithm=shared, validation={"test_fraction": 0})
    rows = {"columns": NAMES, "data": X.tolist()}
    found = client.post("/v1/models/map-of-classes/predict", json=rows).json()["predictions"]
    places = np.array([centre["coordinates"] for centre in centres])
    nearest = ((np.array(found)[:, None] - places) ** 2).sum(axis=2).argmin(axis=1)
    expected = client.post("/v1/models/shared-covariance/predict", json=rows).json()["predictions"]
    assert [centres[place]["class"] for place in nearest] == expected
    assert (np.array(expected) != [f"kind {code}" for code in Y]).sum() == 3, "Fisher's three"


def test_cells_of_a_confusion_matrix_name_their_rows_in_the_dataset(client, trained, flowers):
    body = {"dataset": flowers, "target": "kind", "algorithm": {"name": "decision_tree", "max_depth": 1}}
    report = trained("drill-down", **body)
    matrix = report["confusion_matrix"]
    shown = client.get(f"/v1/datasets/{flowers}/rows", params={"limit": 150}).json()["data"]
    assert sum(map(sum, matrix["counts"])) == report["rows_test"]
    classes = matrix["classes"]
    assert any(cell["truth"] != cell["assigned"] for cell in matrix["cells"])
    for cell in matrix["cells"]:
        truth, assigned = classes[cell["truth"]], classes[cell["assigned"]]
        rows = {"columns": NAMES, "data": [shown[number][:4] for number in cell["rows"]]}
        assert {shown[number][4] for number in cell["rows"]} == {truth}
        assert {*client.post("/v1/models/drill-down/predict", json=rows).json()["predictions"]} == {assigned}


def test_the_path_of_the_lasso_is_that_of_scikit_learn(client, trained):
    dataset = client.post("/v1/datasets", content=(SAMPLES / "diabetes.csv").read_bytes()).json()["id"]
    validation = {"test_fraction": 0}
    report = trained("path", dataset=dataset, target="progression", algorithm={"name": "lasso"}, validation=validation)
    path, columns = report["summary"]["path"], report["columns"]
    wanted = {"limit": 442, "columns": [*columns, "progression"]}
    rows = client.get(f"/v1/datasets/{dataset}/rows", params=wanted).json()["data"]
    x, y = np.array(rows, float)[:, :-1], np.array(rows, float)[:, -1]
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    _, expected, _ = lasso_path(z, y - y.mean(), alphas=path["penalties"], tol=1e-10)
    np.testing.assert_allclose(path["coefficients"], expected.T, atol=1e-4)
    assert path["selected"] == (np.array(path["coefficients"]) != 0).sum(axis=1).tolist()
    assert path["selected"][0] == 0


@pytest.mark.parametrize("name", ["locally_weighted", "bayesian_locally_weighted"])
def test_an_explanation_has_the_effective_number_of_rows(client, trained, flowers, name):
    """(Σ wᵢ)²/Σ wᵢ² of the squared weights of the training rows, each exp(-d²/width)."""
    body = {"dataset": flowers, "features": ["c"], "target": "d", "algorithm": {"name": name, "width": 0.5}}
    model = f"effective-{name.replace('_', '-')}"
    trained(model, **body, validation={"test_fraction": 0}, preprocessing={"scaling": "none"})
    rows = {"columns": ["c"], "data": [[1.4], [4.0]]}
    found = client.post(f"/v1/models/{model}/explain", json=rows).json()["explanations"]
    weights = np.exp(-((X[:, 2] - [[1.4], [4.0]]) ** 2) / 0.5) ** 2
    expected = weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)
    assert [one["effective_rows"] for one in found] == pytest.approx(expected.tolist(), rel=1e-9)
