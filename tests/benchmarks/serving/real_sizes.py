"""python -m tests.benchmarks.serving.real_sizes [--quick] [ALGORITHM …]

One-row predictions of models of real size, from 1 to 256 connections: good responses a second, refusals, and the share
of the best rate that is left with most connections. Wanted: at least 0.95. Below each line the microseconds of
processor time that the server takes for a response, which other programs on the machine change little.
"""

import argparse
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import orjson

from app.base.settings import Settings
from app.commands.processes import variables
from app.commands.up import running

from .bodies import JSON
from .contestants import await_job
from .load import Ask, drive
from .process import LOAD_CORE, free_port, pinned, serving

COLUMNS = [f"x{number}" for number in range(10)]
ROWS = {
    "random_forest": 50_000, "gradient_boosting": 50_000, "knn": 50_000, "logistic": 50_000,
    "svm": 1000, "gaussian_process": 1000, "smacof": 1000,
}  # fmt: skip
WITHOUT_TARGET = {"smacof"}
CONNECTIONS = (1, 4, 16, 32, 64, 128, 256)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.serving.real_sizes", description=__doc__)
    parser.add_argument("algorithms", nargs="*", default=[*ROWS], help=f"of {', '.join(ROWS)}; all by default")
    parser.add_argument("--quick", dest="seconds", action="store_const", const=1.0, default=3.0, help="short rounds")
    requested = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="serving-") as made,
        pinned(LOAD_CORE),
        _server(Path(made), requested) as (
            server,
            asks,
        ),
    ):
        print("algorithm           " + "".join(f"{number:>14}" for number in CONNECTIONS) + "   last / best")
        for name, ask in asks.items():
            sent = httpx.post(ask.url, content=ask.body, headers=ask.headers, timeout=60, trust_env=False)
            assert sent.is_success, sent.text
            drive(ask, 4, requested.seconds, server.pid, made)  # warm
            metrics = [drive(ask, number, requested.seconds, server.pid, made) for number in CONNECTIONS]
            cells = "".join(f"{f'{metric.rate:.0f}' + f' ({metric.failed})':>14}" for metric in metrics)
            share = metrics[-1].rate / max(metric.rate for metric in metrics)
            print(f"{name:20}{cells}{share:14.2f}", flush=True)
            costs = "".join(f"{metric.cpu:14.0f}" for metric in metrics)
            print(f"{'':20}{costs}{min(metric.cpu for metric in metrics) / metrics[-1].cpu:14.2f}", flush=True)


@contextmanager
def _server(folder, requested):
    """The process that is measured, and a request of one row for each model, of services with all of them."""
    with tempfile.TemporaryDirectory(prefix="valiant-") as data:
        first = Settings(data=Path(data), port=0, log_level="WARNING")
        with running(first, workers=1, to_terminal=False) as service:
            for name in requested.algorithms:
                _train(service.address, name)
            port = free_port()
            address, own = f"http://127.0.0.1:{port}", service.settings.model_copy(update={"port": port})
            body = orjson.dumps({"columns": COLUMNS, "data": _table(1, seed=1)[:, :-1].tolist()})
            asks = {
                name: Ask(f"{address}/v1/models/{_model(name)}/predict", JSON, body) for name in requested.algorithms
            }
            command = [sys.executable, "-P", "-m", "app.cli", "api"]
            with serving(command, asks[requested.algorithms[-1]], folder, variables(own)) as server:
                yield server, asks


def _model(algorithm):
    return algorithm.replace("_", "-")


def _table(rows, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, len(COLUMNS)))
    return np.column_stack([x, x[:, 0] * x[:, 1] + x[:, 2] + random.normal(size=rows) > 0])


def _train(address, name):
    lines = [",".join([*COLUMNS, "y"]), *(",".join(map(repr, row)) for row in _table(ROWS[name]).tolist())]
    with httpx.Client(base_url=address, timeout=600, trust_env=False) as client:
        raw = {"Content-Type": "text/csv"}
        sent = client.post("/v1/datasets", params={"name": name}, content="\n".join(lines).encode(), headers=raw)
        body = {
            "model": _model(name), "dataset": sent.raise_for_status().json()["id"], "features": COLUMNS,
            "algorithm": {"name": name}, **({} if name in WITHOUT_TARGET else {"target": "y"}),
        }  # fmt: skip
        await_job(client, client.post("/v1/jobs/train", json=body).raise_for_status().json())


if __name__ == "__main__":
    main()
