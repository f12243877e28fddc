"""Exports over HTTP: a file that predicts as the version does, or a refusal that names the reason."""

import hashlib
import re

import numpy as np
import onnxruntime
import pytest

ROWS = [{"x": 0.5, "y": -0.25, "z": 3.0}, {"x": -1.5, "y": 0.75, "z": 6.0}]


def exported(client, name, form):
    return client.get(f"/v1/models/{name}/versions/1/artifact", params={"as": form})


@pytest.mark.parametrize("algorithm", ["logistic", "random_forest", "mlp"])
def test_onnx_predicts_as_the_service(client, numeric, algorithm):
    name = numeric(algorithm)
    response = exported(client, name, "onnx")
    assert response.status_code == 200, response.text
    session = onnxruntime.InferenceSession(response.content)
    feed = {put.name: np.array([[row[put.name]] for row in ROWS]) for put in session.get_inputs()}
    labels, shares = session.run(["predict", "predict_proba"], feed)
    body = client.post(f"/v1/models/{name}/predict", json={"rows": ROWS}).json()
    assert labels.tolist() == body["predictions"]
    np.testing.assert_allclose(shares, body["probabilities"], rtol=1e-12)


def test_a_script_predicts_as_the_service(client, numeric):
    name = numeric("ridge", "y")
    response = exported(client, name, "script")
    assert response.headers["content-disposition"] == f'attachment; filename="{name}-1.py"'
    space = {"__name__": "churn"}
    exec(compile(response.text, "churn.py", "exec"), space)
    assert space["check_golden_rows"](space["DOCUMENT"], space["ARRAYS"]) == 8
    predictions = client.post(f"/v1/models/{name}/predict", json={"rows": ROWS}).json()["predictions"]
    table = {key: [row[key] for row in ROWS] for key in ("x", "z")}
    np.testing.assert_allclose(space["predict"](table)["predict"], predictions, rtol=1e-12)


def test_the_digest_is_that_of_the_file(client, numeric):
    name = numeric("ridge", "y")
    response = exported(client, name, "onnx")
    assert response.headers["etag"] == f'"sha256:{hashlib.sha256(response.content).hexdigest()}"'
    again = client.get(
        f"/v1/models/{name}/versions/1/artifact?as=onnx", headers={"If-None-Match": response.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")


def test_a_model_without_a_graph_is_refused_by_name(client, numeric):
    response = exported(client, numeric("locally_weighted", "y"), "onnx")
    assert (response.status_code, response.json()["code"]) == (409, "export_unsupported")
    assert "locally_weighted" in response.json()["detail"]


def test_another_format_is_refused_by_name(client, numeric):
    response = exported(client, numeric("ridge", "y"), "pmml")
    assert response.status_code == 422
    assert "onnx" in response.text


def test_a_version_that_is_not_there_is_404(client, numeric):
    name = numeric("ridge", "y")
    assert client.get(f"/v1/models/{name}/versions/9/artifact?as=onnx").status_code == 404


def test_the_catalogue_names_what_can_be_exported(client):
    cards = {card["name"]: card["exportable"] for card in client.get("/v1/algorithms?limit=100").json()["items"]}
    assert cards["ridge"]
    assert cards["gradient_boosting"]
    assert not cards["locally_weighted"]


def test_without_the_package_onnx_the_remedy_is_named(client, numeric, monkeypatch):
    from app.ml.exports import onnx_writer

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(onnx_writer.importlib, "import_module", absent)
    response = exported(client, numeric("ridge", "y"), "onnx")
    assert (response.status_code, response.json()["code"]) == (409, "export_unavailable")
    assert re.search(r"valiant\[onnx\]", response.text)
