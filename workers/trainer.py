"""The trainer: a process that fits once and ends.

It starts ahead of its job, imports what a fit needs, and waits at a pipe. It has no credentials,
no database and no broker; it may crash, hang or fill its memory without taking anyone with it.
"""

import ctypes
import faulthandler
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from app.errors import OutOfMemory, ValiantError
from app.ml.schema import TableColumn
from app.ml.training import Trained, train
from app.schemas.jobs import TrainRequest
from app.schemas.problems import Problem
from workers import frames
from workers.curves import Curves

REPORT_SECONDS = 0.1
"""Progress is told at most so often."""
BLOB_BYTES = 4 << 20
_PR_SET_PDEATHSIG = 1


def main() -> int:
    parent, inlet_fd, outlet_fd = map(int, sys.argv[1:])
    inlet, outlet = os.fdopen(inlet_fd, "rb"), os.fdopen(outlet_fd, "wb")
    _protect(parent, inlet_fd, outlet_fd)
    try:
        request = json.loads(frames.read(inlet).payload)
    except EOFError:
        return 0  # never needed
    _limit_memory(request["memory_bytes"])
    try:
        _send_result(outlet, _train(request, inlet, outlet))
    except MemoryError:
        _send_failure(outlet, OutOfMemory(), request)
    except ValiantError as error:
        _send_failure(outlet, error, request)
    except Exception:  # noqa: BLE001 - whatever a fit raises ends this job and no other
        traceback.print_exc()  # for the log; the client gets no details of ours
        _send_failure(outlet, ValiantError("The training failed in a way nobody foresaw."), request)
    return 0


def _protect(parent: int, *pipes: int) -> None:
    """Die with the worker, leave no core dump, be the first the kernel ends when memory is short."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("The worker is gone.")
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for pipe in pipes:  # whatever a fit may start has no business here
        os.set_inheritable(pipe, False)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _limit_memory(size: int) -> None:
    """By RLIMIT_DATA, not RLIMIT_AS: what can be written, not the address space that libraries reserve."""
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _train(request: Mapping[str, Any], inlet: IO[bytes], outlet: IO[bytes]) -> Trained:
    return train(
        TrainRequest.model_validate(request["request"]),
        _table(inlet),
        columns=[TableColumn(*column) for column in request["columns"]],
        data_digest=request["data_digest"],
        progress=_Progress(outlet),
    )


def _table(inlet: IO[bytes]) -> pa.Table:
    parts = []
    while (frame := frames.read(inlet)).kind == frames.CHUNK:
        with pa.ipc.open_stream(frame.payload) as stream:
            parts.append(stream.read_all())
    return pa.concat_tables(parts)


class _Progress:
    """Tells the supervisor the newest state of things, now and then."""

    def __init__(self, outlet: IO[bytes]) -> None:
        self._outlet = outlet
        self._curves = Curves()
        self._due = 0.0

    def __call__(self, fraction: float, message: str, measures: Mapping[str, float]) -> None:
        self._curves.add(measures)
        now = time.monotonic()
        if now < self._due and fraction < 1:
            return
        self._due = now + REPORT_SECONDS
        told = {"fraction": min(max(fraction, 0.0), 1.0), "message": message[:200], "curves": self._curves.values}
        frames.write(self._outlet, frames.PROGRESS, json.dumps(told).encode())


def _send_result(outlet: IO[bytes], trained: Trained) -> None:
    head = {"report": trained.report.model_dump(mode="json"), "golden": trained.golden}
    frames.write(outlet, frames.RESULT, json.dumps(head).encode())
    blob = memoryview(trained.blob)
    for start in range(0, len(blob), BLOB_BYTES):
        frames.write(outlet, frames.BLOB, blob[start : start + BLOB_BYTES])
    frames.write(outlet, frames.END)


def _send_failure(outlet: IO[bytes], error: ValiantError, request: Mapping[str, Any]) -> None:
    problem = Problem.of(error, request_id=request["request_id"])
    frames.write(outlet, frames.FAILURE, problem.model_dump_json().encode())


if __name__ == "__main__":
    sys.exit(main())
