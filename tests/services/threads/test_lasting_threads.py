"""Threads that live as long as their process."""

import ast
import threading
from pathlib import Path

import pytest

from app.services.threads.lasting_threads import repeat

ROOT = Path(__file__).parents[3]
KERNEL_LOADING = "app/services/kernels/kernel_loading.py"
ENDING = {
    f"{KERNEL_LOADING}: _fetch": "ends when compiled code is fetched; without it predictions are as right",
    f"{KERNEL_LOADING}: _warm": "ends when all is loaded; what is not is loaded with its first request",
    "workers/compiler.py: _compile": "ends when all is compiled; jobs compile what they need without it",
    "workers/main.py: _report_ready": "ends when the worker is ready; one that never is, is replaced",
    "workers/periodic_duties.py: _stand_in": "ends with the last queued job; the next sweep starts another",
    "workers/supervisor.py: _thread": "ends with its job, whose lease another worker takes over otherwise",
}
"""Threads that need not live as long as their process: the files and functions that start or run them."""


@pytest.mark.parametrize("error", [ValueError, OSError, MemoryError, RuntimeError, AssertionError])
def test_an_action_that_fails_is_run_again(error, capsys):
    stopped, calls, again = threading.Event(), [], threading.Event()

    def fail():
        calls.append(None)
        if len(calls) == 3:
            again.set()
        raise error("hidden")

    thread = repeat(fail, 0.001, stopped, name="failing")
    assert again.wait(30)
    stopped.set()
    thread.join(30)
    assert not thread.is_alive()
    assert "thread_failed" in capsys.readouterr().out


def test_the_followers_of_keys_survive_what_they_do_not_expect(services, settings, monkeypatch):
    from app.services.access.access import Access
    from app.services.access.request_rates import RequestRates

    access = Access(services.work, RequestRates(services.cache), settings.model_copy(update={"auth": "keys"}))
    access._settings = access._settings.model_copy(update={"revocation_seconds": 0.01})
    refresh, calls, read = access.refresh, [], threading.Event()

    def fail_first():
        calls.append(None)
        if len(calls) < 3:
            raise KeyError("a row that this release does not know")
        refresh()
        read.set()

    monkeypatch.setattr(access, "refresh", fail_first)
    access.start()
    try:
        assert read.wait(30)
        assert access._seen is not None
    finally:
        access.close()


def targets():
    """File and target of each thread that the service starts."""
    for folder in ("app", "workers"):
        for path in (ROOT / folder).rglob("*.py"):
            if "Thread(" not in (source := path.read_text()) or "client" in path.parts:
                continue
            for call in ast.walk(ast.parse(source)):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "threading.Thread":
                    (target,) = [each.value for each in call.keywords if each.arg == "target"]
                    yield path, ast.unparse(target).removeprefix("self.")


def test_every_thread_survives_its_failures_or_says_why_it_may_end():
    """A lasting loop catches every Exception within its loop."""
    for path, target in targets():
        name = str(path.relative_to(ROOT))
        if (
            name == "app/services/threads/lasting_threads.py"
            or {f"{name}: {target}", f"{name}: _thread"} & ENDING.keys()
        ):
            continue
        functions = {
            each.name: each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.FunctionDef)
        }
        loops = [each for each in ast.walk(functions[target]) if isinstance(each, ast.While)]
        handled = [
            ast.unparse(handler.type)
            for loop in loops
            for each in ast.walk(loop)
            if isinstance(each, ast.Try)
            for handler in each.handlers
            if handler.type is not None
        ]
        assert "Exception" in handled, f"{name}: {target}"
