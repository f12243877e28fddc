"""The service's own two processes, API and worker, as children on an embedded stack."""

import os
import sys

from app.base.settings import Settings
from app.embedded.child_process import Child
from app.embedded.data_folder import Folder
from app.processes.health import responds
from app.processes.ports import address

API_LOOP_SECONDS = 30.0
"""Processor time that an API may spend without its event loop: nothing there takes a second."""


def api(settings: Settings, folder: Folder, *, to_terminal: bool) -> Child:
    beat = folder.run / f"api-{settings.port}.beat"
    child = _process("api", settings.model_copy(update={"beat_file": beat}), folder, to_terminal=to_terminal)
    child.ready = lambda: responds(f"{address(settings)}/livez")
    child.beat, child.loop_seconds = beat, API_LOOP_SECONDS
    return child


def worker(settings: Settings, folder: Folder, *, number: int = 1, to_terminal: bool = False) -> Child:
    port = settings.worker_metrics_port
    beat = folder.run / f"worker-{number}.beat"
    worker_settings = settings.model_copy(update={"worker_metrics_port": port and port + number - 1, "beat_file": beat})
    child = _process("worker", worker_settings, folder, number=number, to_terminal=to_terminal)
    child.ready, child.beat = lambda: child.seen_at is not None, beat
    return child


def _process(command: str, settings: Settings, folder: Folder, *, to_terminal: bool, number: int = 1) -> Child:
    return Child(
        name=command if number == 1 else f"{command}-{number}",
        command=[sys.executable, "-P", "-m", "app.cli", command],
        folder=folder,
        cwd=folder.run,  # by which the next start recognises it
        ready=lambda: False,
        environment=os.environ | variables(settings),
        to_terminal=to_terminal,
    )


def variables(settings: Settings) -> dict[str, str]:
    """Every setting as the environment variable that sets it."""
    plain = settings.model_dump(mode="json", exclude_none=True)
    secrets = {name: getattr(settings, name).get_secret_value() for name in plain if name.endswith("_url")}
    return {f"VALIANT_{name.upper()}": str(value) for name, value in (plain | secrets).items()}
