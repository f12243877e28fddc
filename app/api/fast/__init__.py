"""The shortcut of the routes that are called most: past the framework, on private parts of uvicorn and FastAPI."""

from importlib.metadata import version

import structlog

from app.base.settings import Settings

TESTED = ("0.54",)
"""Versions of uvicorn, up to the minor one, whose private parts the shortcut was tested with."""
_log = structlog.get_logger("app.api")


def is_on(settings: Settings) -> bool:
    """True if the shortcut is switched on, and uvicorn is of a version that it was tested with; else logs a warning."""
    installed = version("uvicorn")
    tested = installed.rpartition(".")[0] in TESTED
    if settings.fast_path and not tested:
        _log.warning("fast_path_off", uvicorn=installed, tested=TESTED)
    return settings.fast_path and tested
