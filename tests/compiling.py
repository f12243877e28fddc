"""Kernels compiled beside the first tests of a whole run, which wait for servers more than they compute.

Without it both processes of a run come to the same kernel at once, where none is on disk yet, and one of them waits.
"""

import subprocess
import sys

import pytest

COMPILE = """
import app.ml.numerics.trees.compiled.growth
from app.ml.numerics.compiled_kernels import compile_all
from app.ml.operations import kinds

kinds()
compile_all()
"""
"""In order of import: the kernels that take longest come first, and workers begin with others meanwhile."""
_running = pytest.StashKey[subprocess.Popen]()


def pytest_sessionstart(session):
    whole = session.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not whole or hasattr(session.config, "workerinput"):
        return
    session.config.stash[_running] = subprocess.Popen([sys.executable, "-c", COMPILE])


def pytest_sessionfinish(session):
    if (process := session.config.stash.get(_running, None)) is not None:
        process.kill()
        process.wait()
