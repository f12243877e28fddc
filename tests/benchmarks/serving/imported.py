"""python -m tests.benchmarks.serving.imported [--seconds 3] [--mlserver FOLDER]

A LightGBM model of 500 trees from a folder: `valiant serve` and MLServer in turn on one core, the load on the other, the
same request of one row from 64 connections. Goals: ten times the rate of MLServer's best configuration, a first
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--mlserver", type=Path, help="an environment that has MLServer; absent: a new one")
    requested = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="imported-") as made, pinned(LOAD_CORE):
        folder = Path(made)
        (folder / "models").mkdir()
        file = folder / "models" / "trees.txt"
        data = load_breast_cancer()
        params = {"objective": "binary", "verbose": -1}
        lightgbm.train(params, lightgbm.Dataset(data.data, data.target), TREES).save_model(file)
        ours = _run(_own(file.parent), folder, requested.seconds, "Valiant")
        venv = requested.mlserver or mlserver.environment(folder, "mlserver-lightgbm")
        rates = []
        for kind in mlserver.CONFIGURATIONS:
            own = folder / kind.replace(" ", "-").replace(",", "")
            own.mkdir()
            started = mlserver.command(venv, own, kind, {"trees": ("mlserver_lightgbm.LightGBMModel", file)})
            rates.append(_run(started, own, requested.seconds, kind))
    print(f"ratio to MLServer's best: {ours / max(rates):.1f}")


def _own(models):
    port = free_port()
    return [sys.executable, "-P", "-m", "app.cli", "serve", str(models), "--port", str(port)], port


def _run(started, folder, seconds, name):
    """Requests a second."""
    command, port = started
    ask = Ask(f"http://127.0.0.1:{port}/v2/models/trees/infer", *bodies.tensor(bodies.rows(1)))
    with serving(command, ask, folder) as server:
        drive(ask, CONNECTIONS, seconds / 2, server.pid, folder)  # warm
        found = best([drive(ask, CONNECTIONS, seconds, server.pid, folder) for _ in range(ROUNDS)])
        size = f"{server.idle_bytes / 1e6:.0f} MB, with its children {server.family_bytes / 1e6:.0f}"
        print(
            f"{name:28}{found.rate:9.0f} a second, ready after {server.ready_seconds:.2f} s, {size}, {found.failed} failed"
        )
    return found.rate


if __name__ == "__main__":
    main()
