"""`valiant serve`: models of a folder in one process, with no server beside it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import httpx
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPRegressor

from app.api import folder_routes, routes
from app.base.settings import Settings
from app.cli import main
from app.commands.serve_folder import ROOMS
from app.ml.contract.model_reference import VersionRef
from app.processes.ports import listen
from app.services.models.folder_models import FolderModels
from valiant.fitted_estimator import write_estimator

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
skl2onnx = pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("treelite")

ROOT = Path(__file__).parents[2]
X = np.random.default_rng(0).normal(size=(200, 3))
Y = (X[:, 0] > 0).astype(int)


@cache
def network():
    return MLPRegressor(hidden_layer_sizes=[4], max_iter=500, random_state=0).fit(X, X[:, 0])


@cache
def stopped():
    """A booster with rounds beyond its best one."""
    noisy = X[:, 0] + np.random.default_rng(1).normal(size=200)
    split = [(xgboost.DMatrix(X[:100], noisy[:100]), "valid")]
    params = {"nthread": 1, "max_depth": 5}
    rows = xgboost.DMatrix(X[100:], noisy[100:])
    return xgboost.train(params, rows, 30, split, early_stopping_rounds=3, verbose_eval=False)


BEST = json.dumps({"parameters": {"extra": {"iterations": "best"}}})


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
    (root / "stopped").mkdir()
    stopped().save_model(root / "stopped" / "model.ubj")
    (root / "stopped" / "model-settings.json").write_text(BEST)
    (root / "graph-rounds").mkdir()
    (root / "graph-rounds" / "model-settings.json").write_text(BEST)
    types = [("x", skl2onnx.common.data_types.DoubleTensorType([None, 3]))]
    (root / "graph.onnx").write_bytes(skl2onnx.to_onnx(network(), initial_types=types).SerializeToString())
    shutil.copy(root / "graph.onnx", root / "graph-rounds" / "model.onnx")
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, np.where(Y, "yes", "no"))
    write_estimator(forest, root / "forest.json")
    (root / "iris").mkdir()
    shutil.copy(root / "boosted" / "1" / "model.txt", root / "iris" / "iris-lightgbm.bst")
    (root / "iris" / "model-settings.json").write_text(json.dumps(MLSERVERS_EXAMPLE))
    (root / "broken.txt").write_text("tree\nnothing")
    (root / "pickled.joblib").write_bytes(b"\x80\x04.")
    (root / "mixed").mkdir()
    (root / "mixed" / "1").mkdir()
    shutil.copy(root / "single.ubj", root / "mixed" / "1" / "xgboost.ubj")
    (root / "mixed" / "2").mkdir()
    (root / "README.md").write_text("no model")
    return root


MLSERVERS_EXAMPLE = {
    "name": "iris-lgb",
    "implementation": "mlserver_lightgbm.LightGBMModel",
    "parameters": {"uri": "./iris-lightgbm.bst", "version": "v0.1.0"},
}


@contextmanager
def serving(root, *options, log=None, **environment):
    """Client of a process; no address of a database, cache or broker is in its environment.

    log: file for what it logs. Kernels are compiled or loaded where a model needs them, unless `environment` warms.
    """
    environment = {"VALIANT_WARM": "false"} | environment
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-P", "-m", "app.cli", "serve", str(root), "--port", str(port), *options]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VALIANT_")}
    with tempfile.TemporaryFile("w+") if log is None else nullcontext(log) as stderr:
        child = subprocess.Popen(command, env=kept | environment, stderr=stderr)
        yield from _connected(child, port, stderr, environment)


def _connected(child, port, stderr, environment):
    try:
        scheme = "https" if "VALIANT_TLS_CERT" in environment else "http"
        with httpx.Client(base_url=f"{scheme}://127.0.0.1:{port}", timeout=60, verify=False) as client:
            until = time.monotonic() + 180
            while True:
                try:
                    if client.get("/livez").is_success:
                        break
                except httpx.TransportError:
                    assert child.poll() is None, stderr.seek(0) or stderr.read()
                    assert time.monotonic() < until
                    time.sleep(0.05)
            yield client
    finally:
        child.terminate()
        assert child.wait(30) == 0


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    with (tmp_path_factory.mktemp("log") / "log").open("w+") as file:
        yield file


@pytest.fixture(scope="module")
def client(folder, log):
    with serving(folder, "--repository-api", "--watch", "0.2", log=log) as connected:
        yield connected


MODELS = ["boosted", "forest", "from-settings", "graph", "iris-lgb", "mixed", "own", "single", "stopped"]
UNSERVED = {
    ("broken", "1"): "damaged",
    ("graph-rounds", "1"): "parameters.extra.iterations: Only files of LightGBM and XGBoost",
    ("mixed", "2"): "holds no file",
    ("pickled", "1"): "valiant convert",
}


def test_every_layout_is_served(client):
    assert client.get("/v1/models").json() == {"models": MODELS}
    described = client.get("/v2/models/boosted").json()
    assert described["versions"] == ["1", "2"]
    states = {(one["name"], one["version"]): one for one in client.post("/v2/repository/index").json()}
    assert states["own", "3"] == {"name": "own", "version": "3", "state": "READY", "reason": ""}
    assert client.get("/v2/models/iris-lgb").json()["parameters"] == {"version": "v0.1.0", "warnings": []}


def test_what_is_not_served_has_its_reason_wherever_it_is_looked_for(client, log):
    ready = client.get("/readyz")
    assert ready.is_success  # for the others
    [detail] = [check["detail"] for check in ready.json()["checks"] if check["name"] == "models"]
    states = {(one["name"], one["version"]): one for one in client.post("/v2/repository/index").json()}
    log.seek(0)
    lines = [line for line in map(json.loads, log) if line["event"] == "model_not_served"]
    assert {(line["model"], line["version"]) for line in lines} == set(UNSERVED)
    assert len(lines) == len(UNSERVED)  # though the folder is read five times a second
    for (model, version), reason in UNSERVED.items():
        assert states[model, version]["state"] == "UNAVAILABLE"
        assert reason in states[model, version]["reason"]
        assert f"{model} {version}: {states[model, version]['reason']}" in detail
        for refused in (
            client.get(f"/v2/models/{model}/versions/{version}/ready"),
            client.post(f"/v1/models/{model}/predict?version={version}", json={"rows": [{}]}),
        ):
            assert (refused.status_code, refused.json()["code"]) == (503, "model_unavailable")
            assert refused.json()["detail"] == states[model, version]["reason"]
    assert client.get("/v2/models/mixed/ready").is_success
    assert client.get("/v1/models/broken").status_code == 503


def test_an_estimator_of_scikit_learn_has_its_labels(client):
    rows = {"instances": X[:20].tolist()}
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, np.where(Y, "yes", "no"))
    predictions = client.post("/v1/models/forest:predict", json=rows).json()["predictions"]
    assert predictions == forest.predict(X[:20]).tolist()


ROUTES = sorted(
    {
        (method, route.path)
        for router in (*routes.routers(ROOMS), folder_routes.kserve, folder_routes.repository)
        for route in router.routes
        for method in route.methods
        if not route.path.endswith("/unload")
    }
)


BODIES = (None, "{}", '{"rows": [{}], "instances": [[1, 2, 3]]}', "[")


@pytest.mark.parametrize("model", ["own", "broken", "none", "My.Model"])
def test_no_request_is_a_fault_of_the_service(client, model):
    for method, path in ROUTES:
        if model == "own" or "{model}" in path:
            address = path.replace("{model}", model).replace("{version}", "1")
            for body in BODIES if method == "POST" else [None]:
                headers = {} if body is None else {"Content-Type": "application/json"}
                response = client.request(method, address, content=body, headers=headers)
                refused = response.status_code == 503 and response.json()["code"] == "model_unavailable"
                assert response.status_code < 500 or refused, (method, address, body, response.text)


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


def test_settings_choose_the_rounds_of_an_early_stopped_booster(client, tmp_path, folder):
    """The best ones, as XGBClassifier predicts; a change of the settings alone is served."""
    best, trees = stopped().best_iteration + 1, stopped().num_boosted_rounds()
    assert best < trees
    parameters = client.get("/v2/models/stopped").json()["parameters"]
    assert parameters["iterations"] == "best"
    [warning] = parameters["warnings"]
    assert warning == f"{best} of the {trees} trees of the file are used; its best_iteration is {best - 1}."
    rows, loaded = xgboost.DMatrix(X), {}
    served = client.post("/v1/models/stopped:predict", json={"instances": X.tolist()}).json()["predictions"]
    np.testing.assert_allclose(served, stopped().predict(rows, iteration_range=(0, best)), rtol=1e-6)
    shutil.copytree(folder / "stopped", tmp_path / "m")
    models = FolderModels(tmp_path, Settings())
    models.keep = loaded.__setitem__
    for iterations, rounds, fact in ((2, 2, "2"), (None, trees, None)):
        settings = {"parameters": {"extra": {"iterations": iterations}}}
        (tmp_path / "m" / "model-settings.json").write_text(json.dumps(settings))
        models.refresh()
        pointer = models.at_hand(VersionRef("m")).pointer
        assert pointer.facts.get("iterations") == fact
        predicted = loaded[pointer.digest].predict_raw(X).values
        np.testing.assert_allclose(predicted, stopped().predict(rows, iteration_range=(0, rounds)), rtol=1e-6)
    assert len(loaded) == 2


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
    end = time.monotonic() + 120
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
        (tmp_path / ".next").write_text(whole[: whole.rindex("Tree=")])
        (tmp_path / ".next").rename(file)
        time.sleep(0.5)
        assert predicted().json() == before
        shutil.copy(folder / "boosted" / "2" / "model.txt", tmp_path / ".next")
        (tmp_path / ".next").rename(file)
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


@pytest.mark.parametrize(
    ("options", "environment", "reason"),
    [
        (["--host", "0.0.0.0"], {}, "needs keys"),
        (["--anonymous"], {"VALIANT_AUTH": "keys"}, "VALIANT_AUTH=keys: keys are in a database"),
        ([], {"VALIANT_OIDC_ISSUER": "https://a.b", "VALIANT_OIDC_AUDIENCE": "c"}, "VALIANT_OIDC_ISSUER"),
        (["--model_name", "My.Model"], {}, "My.Model"),
        ([], {"MODEL_NAME": "a b"}, "MODEL_NAME"),
    ],
)
def test_what_needs_a_database_is_refused_at_the_start(capsys, monkeypatch, options, environment, reason):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["serve", str(ROOT), *options]) == 1
    assert reason in capsys.readouterr().err.splitlines()[-1]


def test_missing_folders_and_senseless_options_are_refused(folder, capsys):
    assert main(["serve", str(folder / "none")]) == 1
    assert main(["serve"]) == 1
    assert "Give the folder" in capsys.readouterr().err.splitlines()[-1]
    for seconds in ("-1", "nan", "inf", "x"):
        with pytest.raises(SystemExit):
            main(["serve", str(folder), "--watch", seconds])
