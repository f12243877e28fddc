"""Every server in turn: yields its process, and its requests: {(name, model): rows → Ask}."""

import os
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

import app
from app.base.settings import Settings
from app.commands.processes import variables
from app.commands.up import running

from . import bodies, mlserver
from .load import Ask
from .process import free_port, serving

HERE = Path(__file__).parent
MODELS = ("logistic", "forest")
ALGORITHMS = {"logistic": {"name": "logistic"}, "forest": {"name": "random_forest", "n_estimators": 100}}
JSON, NPY, TENSOR, BINARY = "Valiant, JSON", "Valiant, npy", "Valiant, v2 JSON", "Valiant, v2 binary"
BATCHING = "Valiant, JSON, batching"
FLOOR, TYPICAL = "bare ASGI on uvicorn (floor)", "FastAPI + joblib, by hand"


@contextmanager
def floor(folder):
    port = free_port()
    make = _asks(f"http://127.0.0.1:{port}/", bodies.plain)
    with serving(_uvicorn("floor", port), make(1), folder) as server:
        yield server, {(FLOOR, "logistic"): make}


@contextmanager
def typical(folder):
    port = free_port()
    os.spawnl(os.P_WAIT, sys.executable, sys.executable, str(HERE / "fit.py"), str(folder))
    forms = {(TYPICAL, model): _asks(f"http://127.0.0.1:{port}/predict/{model}", bodies.plain) for model in MODELS}
    with serving(_uvicorn("typical", port), forms[TYPICAL, "logistic"](1), folder, {"MODELS": str(folder)}) as server:
        yield server, forms


@contextmanager
def rival(venv, kind, folder):
    command, port = mlserver.command(venv, folder, kind, mlserver.fitted(venv, folder, MODELS))
    forms = {
        (kind, model): _asks(f"http://127.0.0.1:{port}/v2/models/{model}/infer", bodies.tensor) for model in MODELS
    }
    with serving(command, forms[kind, "forest"](1), folder) as server:  # the last to be loaded
        yield server, forms


@contextmanager
def ours(folder, **settings):
    """On real servers, with models trained through the API; the process that is measured is one of its own."""
    with tempfile.TemporaryDirectory(prefix="valiant-") as data:
        first = Settings(data=Path(data), port=0, log_level="WARNING", **settings)
        with running(first, workers=1, to_terminal=False) as service:
            columns, port = _train(service.address), free_port()
            address, own = f"http://127.0.0.1:{port}", service.settings.model_copy(update={"port": port})
            forms = {
                (name, model): make
                for model, names in columns.items()
                for name, make in _forms(address, model, names).items()
            }
            command = [sys.executable, "-P", "-m", "app.cli", "api"]
            with serving(command, forms[JSON, "logistic"](1), folder, variables(own)) as server:
                yield server, forms


@contextmanager
def ours_batching(folder):
    with ours(folder, batch_rows=64) as (server, forms):
        yield server, {(BATCHING, model): make for (name, model), make in forms.items() if name == JSON}


def _forms(address, model, columns):
    predict, infer = f"{address}/v1/models/{model}/predict", f"{address}/v2/models/{model}/infer"
    return {
        JSON: _asks(predict, bodies.named(columns)), NPY: _asks(predict, bodies.npy),
        TENSOR: _asks(infer, bodies.tensor), BINARY: _asks(infer, bodies.binary_tensor),
    }  # fmt: skip


def _train(address):
    """The columns of each model that could be trained: an algorithm may not be there."""
    table = (Path(app.__file__).parent / "samples" / "breast_cancer.csv").read_bytes()
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        raw = {"Content-Type": "application/octet-stream"}
        sent = client.post("/v1/datasets", params={"name": "cancer"}, content=table, headers=raw)
        dataset = sent.raise_for_status().json()
        *names, target = (column["name"] for column in dataset["columns"])
        known = {one["name"] for one in client.get("/v1/algorithms", params={"limit": 200}).json()["items"]}
        there = {model: algorithm for model, algorithm in ALGORITHMS.items() if algorithm["name"] in known}
        for model, algorithm in there.items():
            requested = {
                "model": model, "dataset": dataset["id"], "target": target, "features": names, "algorithm": algorithm,
            }  # fmt: skip
            await_job(client, client.post("/v1/jobs/train", json=requested).raise_for_status().json())
    return dict.fromkeys(there, names)


def await_job(client, job):
    while job["state"] in {"queued", "running"}:
        time.sleep(0.05)
        job = client.get(f"/v1/jobs/{job['id']}").raise_for_status().json()
    assert job["state"] == "succeeded", job


def _asks(url, form):
    return lambda count: Ask(url, *form(bodies.rows(count)))


def _uvicorn(module, port):
    return [
        sys.executable, "-m", "uvicorn", f"{module}:app", "--app-dir", str(HERE), "--port", str(port),
        "--no-access-log", "--log-level", "warning",
    ]  # fmt: skip
