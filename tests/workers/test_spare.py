"""The trainer in waiting."""

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from app.ml.contract.columns import TableColumn
from app.ml.job import Sheet
from workers import frames
from workers.messages import Order
from workers.spare import Spares


@pytest.fixture(scope="module")
def spares():
    os.environ["VALIANT_DATABASE_URL"] = "postgresql://user:password@host/db"  # as in a worker
    made = Spares(check_seconds=0.05)
    yield made
    made.close()
    del os.environ["VALIANT_DATABASE_URL"]


@pytest.fixture
def child(spares):
    taken = spares.take()
    yield taken
    taken.close()


def table():
    return pa.table({"x": [float(n) for n in range(40)], "y": [2.0 * n for n in range(40)]})


def fed(child, *, target="y", memory_bytes=1 << 30):
    """Give it a small job; all its answers."""
    columns = tuple(TableColumn(name, "numeric", 0, 40) for name in ("x", "y"))
    request = {"model": "m", "dataset": "0" * 32, "target": target, "algorithm": {"name": "ridge"}}
    order = Order("train", request, "abc", [Sheet("sha256:0", 40, columns)], [], memory_bytes)
    frames.write(child.inlet, frames.REQUEST, order.written())
    with suppress(BrokenPipeError):  # who has found a fault waits for no rows
        for part in (table()[:15], table()[15:]):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.schema) as writer:
                writer.write_table(part)
            frames.write(child.inlet, frames.CHUNK, sink.getvalue().to_pybytes())
        frames.write(child.inlet, frames.END)
    return list(frames.Assembler().feed(child.outlet.readall()))


def test_it_trains_what_comes_in_pieces(child):
    from app.ml.models.model import decode

    responses = fed(child)
    kinds = [frame.kind for frame in responses if frame.kind != frames.PROGRESS]
    assert kinds[0] == frames.RESULT
    assert set(kinds[1:-1]) == {frames.BLOB, frames.SEEN}
    assert kinds[-1] == frames.END
    report = json.loads(next(frame.payload for frame in responses if frame.kind == frames.RESULT))["trained"]["report"]
    assert report["rows_train"] + report["rows_test"] == 40
    blob = b"".join(frame.payload for frame in responses if frame.kind == frames.BLOB)
    assert decode(blob).name == "ridge"
    assert child.prints.read() == b""
    assert child.close() == 0


def test_a_failure_is_told_as_a_problem(child):
    failure = fed(child, target="nobody")[-1]
    assert failure.kind == frames.FAILURE
    problem = json.loads(failure.payload)
    assert (problem["code"], problem["request_id"]) == ("invalid_request", "abc")


def test_it_knows_no_addresses_and_no_passwords(child):
    environment = Path(f"/proc/{child.process.pid}/environ").read_bytes().decode()
    assert "PATH=" in environment
    assert "VALIANT" not in environment
    assert "password" not in environment


def test_it_uses_one_thread_for_linear_algebra(child):
    environment = Path(f"/proc/{child.process.pid}/environ").read_bytes().decode().split("\0")
    assert {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"} <= set(environment)


def test_a_new_one_waits_as_soon_as_one_is_taken(spares):
    first = spares.take()
    second = spares.take()
    assert first.process.pid != second.process.pid
    assert first.alive
    assert second.alive
    assert first.close() == second.close() == -signal.SIGKILL


def test_a_dead_one_is_replaced(spares):
    while not (waiting := [one for one in psutil.Process().children() if "workers.trainer" in one.cmdline()]):
        time.sleep(0.01)
    for process in waiting:
        process.kill()
    while any(process.status() != psutil.STATUS_ZOMBIE for process in waiting if process.is_running()):
        time.sleep(0.001)
    taken = spares.take()
    assert taken.alive
    assert taken.process.pid not in {process.pid for process in waiting}
    taken.close()


def test_killing_twice_and_after_the_end_is_harmless(spares):
    child = spares.take()
    child.kill()
    child.kill()
    assert child.close() == -signal.SIGKILL
    child.kill()
    assert child.close() == -signal.SIGKILL


def test_one_that_is_never_needed_ends_with_its_pipe(spares):
    child = spares.take()
    child.inlet.close()
    assert child.process.wait(60) == 0
