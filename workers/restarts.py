"""Signs that something starts this worker again when it ends."""

import os

from app.base.settings import Settings

INIT = 1
"""Process id of the first process of a machine or a container."""


def is_supervised(settings: Settings) -> bool:
    """True under `valiant up`, systemd or supervisord, and as the first process of a container or the child of it."""
    by_systemd = "INVOCATION_ID" in os.environ and os.environ.get("SYSTEMD_EXEC_PID", _own_pid()) == _own_pid()
    by_init = os.getpid() == INIT or os.getppid() == INIT
    return settings.beat_file is not None or by_systemd or by_init or "SUPERVISOR_ENABLED" in os.environ


def _own_pid() -> str:
    """Also the name that systemd gives: shells of a desktop inherit that of another process."""
    return str(os.getpid())
