"""Kernels compiled beside the first tests of a whole run, which wait for servers more than they compute.

Without it both processes of a run come to the same kernel at once, where none is on disk yet, and one of them waits.
"""

import subprocess
import sys

import pytest

_running = pytest.StashKey[subprocess.Popen]()


def pytest_sessionstart(session):
    whole = session.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not whole or hasattr(session.config, "workerinput"):
        return
    session.config.stash[_running] = subprocess.Popen([sys.executable, "-m", "app.cli", "warm"])


def pytest_sessionfinish(session):
    if (process := session.config.stash.get(_running, None)) is not None:
        process.terminate()
        process.wait()
