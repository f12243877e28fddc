"""A server as a child process on a core of its own, known and ended by its id."""

import os
import subprocess
import time
from contextlib import contextmanager
from typing import NamedTuple

import httpx
import psutil

from app.processes.ports import listen

SERVER_CORE, LOAD_CORE = 0, 1
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")
PATIENCE = 60.0


class Server(NamedTuple):
    pid: int
    ready_seconds: float
    idle_bytes: int
    """Of the process itself, after its first prediction."""
    family_bytes: int
    """With all its children."""


def free_port():
    with listen("127.0.0.1", 0) as free:
        return free.getsockname()[1]


@contextmanager
def pinned(core):
    """What this thread starts meanwhile runs on one core. Does nothing where there is only one."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core} if core < (os.cpu_count() or 1) else before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def serving(command, ask, folder, environment=None):
    """A `Server` that has served `ask` once."""
    threads = {f"{name}_NUM_THREADS": "1" for name in THREADS}
    log = (folder / "server.log").open("ab")
    with pinned(SERVER_CORE):
        begun = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=folder, env=os.environ | threads | (environment or {}), stdout=subprocess.DEVNULL, stderr=log
        )
    try:
        _await_response(child, ask, begun)
        ready = time.perf_counter() - begun
        server = psutil.Process(child.pid)
        own, *others = (process.memory_info().rss for process in [server, *server.children(recursive=True)])
        yield Server(child.pid, ready, own, own + sum(others))
    finally:
        _end(child)
        log.close()


def _await_response(child, ask, begun):
    while True:
        try:
            predicted = httpx.post(ask.url, content=ask.body, headers=ask.headers, timeout=20, trust_env=False)
        except httpx.TransportError:
            predicted = None
        if predicted is not None and predicted.status_code == 200:
            return
        if child.poll() is not None or time.perf_counter() - begun > PATIENCE:
            result = "" if predicted is None else predicted.text[:300]
            raise TimeoutError(f"{child.args[0]} never responded: {result}")
        time.sleep(0.02)


def _end(child):
    family = psutil.Process(child.pid).children(recursive=True) if child.poll() is None else []
    child.terminate()
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    for left in family:
        if left.is_running():
            left.kill()
