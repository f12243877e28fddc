"""python -m tests.benchmarks.serving [--quick] [--only WORD …] [--mlserver FOLDER] [--guide]

Starts every server in turn on one core, drives it from the other, and compares. --guide writes what was measured into
the guide, between its marks.
"""

import argparse
import logging
import os
import platform
import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path

import httpx

from . import contestants, mlserver
from .load import best, drive, generator
from .process import LOAD_CORE, pinned
from .tables import cells_table, servers_table, targets_table

log = logging.getLogger(__name__)
PAGE = Path(__file__).parents[3] / "app" / "docs" / "performance.md"
MARKS = "<!-- serving -->\n", "<!-- /serving -->\n"
CELLS = {
    "logistic": [(1, 1), (1, 16), (1, 64), (100, 1), (100, 16), (100, 64), (10_000, 1), (10_000, 16)],
    "forest": [(1, 1), (1, 64), (10_000, 1), (10_000, 16)],
}
"""Rows of a request, connections. 64 tables of 10,000 rows at once would measure refusals."""
ROUNDS = 3
"""Of each cell, not one after the other: what else the machine does spoils one of them, not all."""


def main():
    logging.basicConfig(level="INFO", format="%(message)s")
    logging.getLogger("httpx").setLevel("WARNING")
    requested, busy = _arguments(), os.getloadavg()[1] / (os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(prefix="serving-") as made, pinned(LOAD_CORE):
        folder = Path(made)
        chosen, venv = _chosen(requested, folder)
        servers, metrics = {}, {}
        for name, start in chosen.items():
            own = folder / name.replace(" ", "-").replace(",", "")
            own.mkdir()
            try:
                with start(own) as (server, forms):
                    servers[name] = server
                    metrics |= _measured(forms, server, own, requested.seconds)
            except TimeoutError as error:
                log.warning("%s: left out, it did not start: %s", name, error)
        machine = _machine(venv, busy)
    details = ["## All measurements", cells_table(metrics), servers_table(servers)]
    text = "\n\n".join([machine, targets_table(metrics, servers), *details])
    print(text)
    if requested.guide:
        _write(text)


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.serving", description=__doc__)
    parser.add_argument("--quick", dest="seconds", action="store_const", const=0.7, default=2.0, help="short rounds")
    parser.add_argument("--only", nargs="+", default=[], help="servers whose names hold one of these words")
    parser.add_argument("--mlserver", type=Path, help="environment with MLServer (default: a new one)")
    parser.add_argument("--guide", action="store_true", help="write the tables into the guide")
    return parser.parse_args()


def _chosen(options, folder):
    known = {"floor": contestants.floor, "Valiant": contestants.ours, "Valiant, batching": contestants.ours_batching}
    known |= dict.fromkeys(mlserver.CONFIGURATIONS) | {"FastAPI + joblib": contestants.typical}
    expected = [
        name for name in known if not options.only or any(word.lower() in name.lower() for word in options.only)
    ]
    venv = None
    if any(name in mlserver.CONFIGURATIONS for name in expected):
        venv = options.mlserver.resolve() if options.mlserver else mlserver.environment(folder)
        if venv is None:
            log.warning("MLServer: left out, its packages cannot be installed here")
            expected = [name for name in expected if name not in mlserver.CONFIGURATIONS]
    return {name: known[name] or partial(contestants.rival, venv, name) for name in expected}, venv


def _measured(forms, server, folder, seconds):
    """Measurements by (name, model, rows, connections)."""
    rounds = {}
    understood = {form: make for form, make in forms.items() if _responds(form, make(1))}
    for turn in range(ROUNDS):
        for (name, model), make in understood.items():
            for rows, connections in CELLS[model]:
                ask = make(rows)
                if not turn:
                    drive(ask, connections, seconds / 2, server.pid, folder)  # warm
                found = rounds.setdefault((name, model, rows, connections), [])
                found.append(drive(ask, connections, seconds, server.pid, folder))
    metrics = {cell: best(found) for cell, found in rounds.items()}
    for cell, metric in metrics.items():
        log.info("%s, %s, rows %d, connections %d: %s", *cell, metric)
    return metrics


def _responds(form, ask):
    status = httpx.post(ask.url, content=ask.body, headers=ask.headers, timeout=20, trust_env=False).status_code
    if status != 200:
        log.warning("%s, %s: left out, its status is %d", *form, status)
    return status == 200


def _machine(venv, busy):
    packages = [f"{name} {version(name)}" for name in ("uvicorn", "fastapi", "numpy", "scikit-learn")]
    rival = [f"MLServer {mlserver.version(venv)}"] if venv else []
    model = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    chip = model.partition(": ")[2] or platform.machine()
    measured = f"{chip}; Python {platform.python_version()}, {', '.join(packages + rival)}; load by {generator()}."
    quiet = f"Before it began, the machine had {busy:.1f} other tasks a core to do; on a quiet one that is 0.0."
    return f"{measured} One process on one core, the load on another; breast_cancer, 30 numbers a row. {quiet}"


def _write(text):
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    assert after, "the guide has lost its marks"
    PAGE.write_text(f"{before}{MARKS[0]}{text}\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
