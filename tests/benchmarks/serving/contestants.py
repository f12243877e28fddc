"""Every server in turn: yields its name, its process, and what it is asked."""

import os
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

import app
from app.settings import Settings
from app.up import running

from . import bodies, mlserver
from .load import Ask
from .process import free_port, serving

HERE = Path(__file__).parent
OURS = {
    "Valiant, JSON": "v1",
    "Valiant, npy in and out": "v1",
    "Valiant, v2 JSON": "v2",
    "Valiant, v2 binary in and out": "v2",
}
FLOOR, TYPICAL = "bare ASGI on uvicorn (floor)", "FastAPI + joblib, by hand"


@contextmanager
def floor(folder):
    port = free_port()
    make = _asks(f"http://127.0.0.1:{port}/", bodies.plain)
    with serving(_uvicorn("floor", port), make(1), folder) as server:
        yield server, {FLOOR: make}


@contextmanager
def typical(folder):
    port = free_port()
    model = folder / "model.joblib"
    os.spawnl(os.P_WAIT, sys.executable, sys.executable, str(HERE / "fit.py"), str(model))
    make = _asks(f"http://127.0.0.1:{port}/predict", bodies.plain)
    with serving(_uvicorn("typical", port), make(1), folder, {"MODEL": str(model)}) as server:
        yield server, {TYPICAL: make}


@contextmanager
def rival(venv, kind, folder):
    command, port = mlserver.command(venv, folder, kind)
    make = _asks(f"http://127.0.0.1:{port}/v2/models/cancer/infer", bodies.tensor)
    with serving(command, make(1), folder) as server:
        yield server, {kind: make}


@contextmanager
def ours(folder):
    """On real servers, with a model trained through the API; the process that is measured is one of its own."""
    with tempfile.TemporaryDirectory(prefix="valiant-") as data:
        first = Settings(data=Path(data), port=0, log_level="WARNING")
        with running(first, workers=1, to_terminal=False) as service:
            names, port = _train(service.address), free_port()
            address = f"http://127.0.0.1:{port}"
            predict, infer = f"{address}/v1/models/cancer/predict", f"{address}/v2/models/cancer/infer"
            forms = [
                _asks(predict, bodies.named(names)), _asks(predict, bodies.npy),
                _asks(infer, bodies.tensor), _asks(infer, bodies.binary_tensor),
            ]  # fmt: skip
            command = [sys.executable, "-P", "-m", "app.cli", "api"]
            with serving(command, forms[0](1), folder, _environment(service.settings, port)) as server:
                yield server, dict(zip(OURS, forms, strict=True))


def _environment(settings, port):
    secrets = {name: getattr(settings, name).get_secret_value() for name in ("database_url", "broker_url", "cache_url")}
    named = {f"VALIANT_{name.upper()}": value for name, value in secrets.items()}
    return named | {"VALIANT_PORT": str(port), "VALIANT_DATA": str(settings.data)}


def _train(address):
    table = (Path(app.__file__).parent / "samples" / "breast_cancer.csv").read_bytes()
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        raw = {"Content-Type": "application/octet-stream"}
        sent = client.post("/v1/datasets", params={"name": "cancer"}, content=table, headers=raw)
        dataset = sent.raise_for_status().json()
        *names, target = (column["name"] for column in dataset["columns"])
        asked = {
            "model": "cancer", "dataset": dataset["id"], "target": target, "features": names,
            "algorithm": {"name": "logistic"},
        }  # fmt: skip
        job = client.post("/v1/jobs/train", json=asked).raise_for_status().json()
        while job["state"] in {"queued", "running"}:
            time.sleep(0.05)
            job = client.get(f"/v1/jobs/{job['id']}").raise_for_status().json()
    assert job["state"] == "succeeded", job
    return names


def _asks(url, form):
    return lambda count: Ask(url, *form(bodies.rows(count)))


def _uvicorn(module, port):
    return [
        sys.executable, "-m", "uvicorn", f"{module}:app", "--app-dir", str(HERE), "--port", str(port),
        "--no-access-log", "--log-level", "warning",
    ]  # fmt: skip
