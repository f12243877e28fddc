"""python -m tests.benchmarks.serving.imported [--seconds 3] [--mlserver FOLDER]

A LightGBM model of 500 trees from a folder: `valiant serve` and MLServer in turn on one core, the load on the other,
requests of one row from 64 connections, neither with a log of requests: the Open Inference Protocol for both, and the
rows by name that only ours takes. Goals: ten times the rate of MLServer's best configuration, a first
prediction within 2 s of the start, and 180 MB.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import lightgbm
from sklearn.datasets import load_breast_cancer

from . import bodies, mlserver
from .load import Ask, best, drive
from .process import LOAD_CORE, free_port, pinned, serving

CONNECTIONS, ROUNDS, TREES = 64, 3, 500
V1 = "/v1/models/trees/predict", bodies.named([f"Column_{place}" for place in range(30)])
V2 = "/v2/models/trees/infer", bodies.tensor


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--mlserver", type=Path, help="environment with MLServer (default: a new one)")
    requested = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="imported-") as made, pinned(LOAD_CORE):
        folder = Path(made)
        (folder / "models").mkdir()
        file = folder / "models" / "trees.txt"
        data = load_breast_cancer()
        params = {"objective": "binary", "verbose": -1}
        lightgbm.train(params, lightgbm.Dataset(data.data, data.target), TREES).save_model(file)
        ours = {
            name: _run(_own(file.parent), folder, requested.seconds, name, protocol)
            for name, protocol in {"Valiant, v2 JSON": V2, "Valiant, JSON": V1}.items()
        }
        venv = requested.mlserver or mlserver.environment(folder, "mlserver-lightgbm")
        rates = []
        for kind in mlserver.CONFIGURATIONS:
            own = folder / kind.replace(" ", "-").replace(",", "")
            own.mkdir()
            started = mlserver.command(venv, own, kind, {"trees": ("mlserver_lightgbm.LightGBMModel", file)})
            rates.append(_run(started, own, requested.seconds, kind, V2))
    for name, rate in ours.items():
        print(f"{name}: {rate / max(rates):.1f} times MLServer's best")


def _own(models):
    port = free_port()
    return [sys.executable, "-P", "-m", "app.cli", "serve", str(models), "--port", str(port)], port


def _run(started, folder, seconds, name, protocol):
    """Requests a second."""
    (command, port), (path, form) = started, protocol
    ask = Ask(f"http://127.0.0.1:{port}{path}", *form(bodies.rows(1)))
    with serving(command, ask, folder, {"VALIANT_LOG_LEVEL": "WARNING"}) as server:
        drive(ask, CONNECTIONS, seconds / 2, server.pid, folder)  # warm
        found = best([drive(ask, CONNECTIONS, seconds, server.pid, folder) for _ in range(ROUNDS)])
        started = f"ready after {server.ready_seconds:.2f} s, {server.idle_bytes / 1e6:.0f} MB"
        family = f"with its children {server.family_bytes / 1e6:.0f}"
    print(f"{name:28}{found.rate:9.0f} a second, {started}, {family}, {found.failed} failed")
    return found.rate


if __name__ == "__main__":
    main()
