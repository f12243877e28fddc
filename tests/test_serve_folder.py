"""`valiant serve`: models of a folder in one process, with no server beside it."""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import httpx
import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from app.cli import main
from app.ports import listen

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
skl2onnx = pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("treelite")

ROOT = Path(__file__).parent.parent
X = np.random.default_rng(0).normal(size=(200, 3))
Y = (X[:, 0] > 0).astype(int)


@cache
def network():
    return MLPRegressor(hidden_layer_sizes=[4], max_iter=500, random_state=0).fit(X, X[:, 0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory, trained):
    """One model of each layout and format."""
    root = tmp_path_factory.mktemp("models")
    (root / "own" / "3").mkdir(parents=True)
    (root / "own" / "3" / "model.safetensors").write_bytes(bytes(trained().blob))
    for version, rounds in (("1", 2), ("2", 4)):
        (root / "boosted" / version).mkdir(parents=True)
        params = {"objective": "binary", "verbose": -1}
        lightgbm.train(params, lightgbm.Dataset(X, Y), rounds).save_model(root / "boosted" / version / "model.txt")
    (root / "described").mkdir()
    booster = xgboost.train({"objective": "reg:squarederror"}, xgboost.DMatrix(X, X[:, 0]), 3)
    booster.save_model(root / "described" / "weights.json")
    settings = {"name": "from-settings", "implementation": "os.system", "parameters": {"uri": "weights.json"}}
    (root / "described" / "model-settings.json").write_text(json.dumps(settings))
    booster.save_model(root / "single.ubj")
    types = [("x", skl2onnx.common.data_types.DoubleTensorType([None, 3]))]
    (root / "graph.onnx").write_bytes(skl2onnx.to_onnx(network(), initial_types=types).SerializeToString())
    (root / "broken.txt").write_text("tree\nnothing")
    (root / "README.md").write_text("no model")
    return root


@contextmanager
def serving(root, *options, **environment):
    """Base address of a process; no address of a database, cache or broker is in its environment."""
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-P", "-m", "app.cli", "serve", str(root), "--port", str(port), *options]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VALIANT_")}
    child = subprocess.Popen(command, env=kept | environment, stderr=subprocess.PIPE, text=True)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            until = time.monotonic() + 60
            while True:
                try:
                    if client.get("/livez").is_success:
                        break
                except httpx.TransportError:
                    assert child.poll() is None, child.stderr.read()
                    assert time.monotonic() < until
                    time.sleep(0.05)
            yield client
    finally:
        child.terminate()
        assert child.wait(30) == 0
        child.stderr.close()


@pytest.fixture(scope="module")
def client(folder):
    with serving(folder, "--repository-api", "--watch", "0.2") as connected:
        yield connected


def test_every_layout_is_served(client):
    assert client.get("/readyz").is_success
    assert client.get("/v1/models").json() == {"models": ["boosted", "from-settings", "graph", "own", "single"]}
    described = client.get("/v2/models/boosted").json()
    assert described["versions"] == ["1", "2"]
    states = {(one["name"], one["version"]): one for one in client.post("/v2/repository/index").json()}
    assert states["own", "3"]["state"] == "READY"
    assert states["broken", "1"]["state"] == "UNAVAILABLE"
    assert "damaged" in states["broken", "1"]["reason"]


def test_predictions_are_those_of_the_library(client, folder):
    rows = X[:5].tolist()
    for version in (1, 2):
        expected = lightgbm.Booster(model_file=folder / "boosted" / str(version) / "model.txt").predict(X[:5])
        tensor = {"name": "x", "shape": [5, 3], "datatype": "FP64", "data": rows}
        body = {"inputs": [tensor], "outputs": [{"name": "predict_proba"}]}
        found = client.post(f"/v2/models/boosted/versions/{version}/infer", json=body).json()["outputs"][0]["data"]
        np.testing.assert_allclose(np.reshape(found, (5, 2))[:, 1], expected, rtol=1e-12)
    booster = xgboost.Booster(model_file=folder / "single.ubj")
    names = [f"f{j}" for j in range(3)]
    for model in ("single", "from-settings"):
        found = client.post(f"/v1/models/{model}:predict", json={"instances": rows}).json()["predictions"]
        np.testing.assert_allclose(found, booster.predict(xgboost.DMatrix(X[:5])), rtol=1e-6)
        objects = [dict(zip(names, row, strict=True)) for row in rows]
        assert client.post(f"/v1/models/{model}:predict", json={"instances": objects}).json()["predictions"] == found
        own = client.post(f"/v1/models/{model}/predict", json={"columns": names, "data": rows}).json()
        assert own["predictions"] == found
    found = client.post("/v1/models/graph:predict", json={"instances": rows}).json()["predictions"]
    np.testing.assert_allclose(found, network().predict(X[:5]), rtol=1e-9)


@pytest.mark.parametrize(
    ("path", "body", "status", "problem"),
    [
        ("/v1/models/none:predict", {"instances": []}, 404, "model_not_found"),
        ("/v1/models/single:predict", {}, 422, "invalid_request"),
        ("/v1/models/single:predict", {"instances": [[1, 2]]}, 422, None),
        ("/v1/models/single:predict", {"instances": [[1, 2, 3], {}]}, 422, "invalid_request"),
        ("/v1/models/single/predict?version=9", {"rows": []}, 404, "version_not_found"),
        ("/v1/models/single/predict?alias=champion", {"rows": []}, 404, "alias_not_found"),
        ("/v1/models/own/predict?review=true&min_probability=0.99", {"rows": [{}]}, 409, "not_offered"),
        ("/v2/repository/models/none/load", None, 404, "model_not_found"),
    ],
)
def test_what_cannot_be_is_a_problem(client, path, body, status, problem):
    response = client.post(path, json=body)
    assert response.status_code == status, response.text
    assert problem in {None, response.json()["code"]}


def until(holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_newer_file_is_served_and_a_broken_one_is_not(tmp_path, folder):
    file = tmp_path / "live.txt"
    shutil.copy(folder / "boosted" / "1" / "model.txt", file)
    with serving(tmp_path, "--watch", "0.1") as client:

        def predicted():
            return client.post(
                "/v1/models/live/predict",
                json={"columns": ["Column_0", "Column_1", "Column_2"], "data": X[:2].tolist()},
            )

        before = predicted().json()
        whole = file.read_text()
        (tmp_path / "next").write_text(whole[: whole.rindex("Tree=")])
        (tmp_path / "next").rename(file)
        time.sleep(0.5)
        assert predicted().json() == before
        shutil.copy(folder / "boosted" / "2" / "model.txt", tmp_path / "next")
        (tmp_path / "next").rename(file)
        until(lambda: predicted().json()["digest"] != before["digest"])
        file.unlink()
        until(lambda: predicted().status_code == 404)
        assert client.get("/readyz").status_code == 503


def test_models_are_loaded_and_unloaded(client):
    assert client.post("/v2/repository/models/single/unload").is_success
    assert client.get("/v2/models/single").status_code == 404
    assert client.post("/v2/repository/models/single/load").is_success
    assert client.get("/v2/models/single/ready").is_success


def test_one_file_has_the_name_of_the_environment(folder):
    with serving(folder / "single.ubj", MODEL_NAME="prices") as client:
        assert client.get("/v1/models").json() == {"models": ["prices"]}
        assert client.post("/v2/repository/index").status_code == 404


@pytest.mark.slow
def test_more_models_than_memory_are_served(folder):
    with serving(folder, VALIANT_MODEL_MEMORY_BYTES="1") as client:
        for model in ("single", "from-settings", "single"):
            assert client.post(f"/v1/models/{model}:predict", json={"instances": X[:2].tolist()}).is_success


def test_other_machines_and_missing_folders_are_refused(folder, capsys):
    assert main(["serve", str(folder), "--host", "0.0.0.0"]) == 1
    assert "needs keys" in capsys.readouterr().err
    assert main(["serve", str(folder / "none")]) == 1
    assert main(["serve"]) == 1
    assert "Give the folder" in capsys.readouterr().err.splitlines()[-1]


def test_the_runtime_of_kserve_starts_what_exists():
    import yaml

    from app import cli

    runtime = yaml.safe_load((ROOT / "app" / "deployment" / "kserve.yaml").read_text())
    assert runtime["spec"]["multiModel"] is False
    (container,) = runtime["spec"]["containers"]
    options = vars(cli._parser(container["args"]).parse_args(container["args"]))
    assert str(options["model_dir"]) == "/mnt/models"
    assert options["port"] == container["ports"][0]["containerPort"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
