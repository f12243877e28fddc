"""python -m tests.benchmarks.serving [--quick] [--only NAME …] [--mlserver FOLDER] [--markdown FILE]"""

import argparse
import logging
import platform
import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path

import httpx

from . import contestants, mlserver
from .load import drive, generator
from .process import LOAD_CORE, pinned
from .tables import cells_table, ratios, servers_table

log = logging.getLogger(__name__)
CELLS = [(1, 1), (1, 16), (1, 64), (100, 1), (100, 16), (100, 64), (10_000, 1)]
"""Rows of a request, connections. Many tables of 10,000 rows at once would measure refusals."""


def main():
    logging.basicConfig(level="INFO", format="%(message)s")
    logging.getLogger("httpx").setLevel("WARNING")
    asked = _arguments()
    with tempfile.TemporaryDirectory(prefix="serving-") as made, pinned(LOAD_CORE):
        folder = Path(made)
        chosen, venv = _chosen(asked, folder)
        servers, figures = {}, {}
        for name, start in chosen.items():
            own = folder / name.replace(" ", "-")
            own.mkdir()
            try:
                with start(own) as (server, forms):
                    servers[name] = server
                    figures |= _measured(forms, server, own, asked)
            except TimeoutError:
                log.warning("%s: left out, it did not start", name)
        text = "\n\n".join([_machine(venv), cells_table(figures), *ratios(figures), servers_table(servers)])
    print(text)  # noqa: T201  what a benchmark is for
    if asked.markdown:
        asked.markdown.write_text(f"{text}\n")


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.serving")
    parser.add_argument("--quick", action="store_true", help="2 seconds a cell instead of 8")
    parser.add_argument("--only", nargs="+", default=[], help="servers whose names hold one of these words")
    parser.add_argument("--mlserver", type=Path, help="an environment that has MLServer; absent: a new one")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file, too")
    return parser.parse_args()


def _chosen(asked, folder):
    known = {"floor": contestants.floor, "Valiant": contestants.ours}
    known |= dict.fromkeys(mlserver.CONFIGURATIONS) | {"FastAPI typical": contestants.typical}
    wanted = [name for name in known if not asked.only or any(word.lower() in name.lower() for word in asked.only)]
    venv = None
    if any(name in mlserver.CONFIGURATIONS for name in wanted):
        venv = asked.mlserver.resolve() if asked.mlserver else mlserver.environment(folder)
        if venv is None:
            log.warning("MLServer: left out, its packages cannot be installed here")
            wanted = [name for name in wanted if name not in mlserver.CONFIGURATIONS]
    return {name: known[name] or partial(contestants.rival, venv, name) for name in wanted}, venv


def _measured(forms, server, folder, asked):
    seconds = 2 if asked.quick else 8
    found = {}
    for name, make in forms.items():
        if not _answers(make(1)):
            log.warning("%s: left out, it is not understood", name)
            continue
        for rows, connections in CELLS:
            ask = make(rows)
            drive(ask, connections, 1, server.pid, folder)  # warm
            found[name, rows, connections] = figure = drive(ask, connections, seconds, server.pid, folder)
            log.info("%s, rows %d, connections %d: %s", name, rows, connections, figure)
    return found


def _answers(ask):
    sent = httpx.post(ask.url, content=ask.body, headers=ask.headers, timeout=20, trust_env=False)
    return sent.status_code == 200


def _machine(venv):
    packages = [f"{name} {version(name)}" for name in ("uvicorn", "fastapi", "numpy", "scikit-learn")]
    rival = [f"MLServer {mlserver.version(venv)}"] if venv else []
    model = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    chip = model.partition(": ")[2] or platform.machine()
    return f"{chip}; Python {platform.python_version()}, {', '.join(packages + rival)}; load by {generator()}."


if __name__ == "__main__":
    main()
