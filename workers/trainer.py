"""The trainer: a process that runs one job and ends.

It is forked from the template and reads its order from a pipe. It has no credentials, no database and no broker; it may
crash, hang or fill its memory without taking anyone with it.
"""

import faulthandler
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from app.base.errors import OutOfMemory, ValiantError
from app.ml.contract.stage_clock import CLOCK, StageClock, timed
from app.ml.contract.threads import THREADS
from app.ml.contract.timed_tasks import in_turn_within
from app.ml.kinds.job import Outcome
from app.ml.numerics import jit
from app.ml.numerics.compiled_kernels import describe, missing
from app.ml.operations import kind_records
from app.processes.parent_process import die_with
from app.processes.process_memory import limit
from app.schemas.problems import Problem
from workers import trainer_frames as frames
from workers.curves import Curves
from workers.journal_frames import StoredJournal
from workers.parallel_fits import Group
from workers.timed_forks import TimedForks
from workers.trainer_messages import Order, read_inputs, write_outcome

REPORT_SECONDS = 0.1
"""Seconds between two reports of progress, at least."""


def main(template: int, inlet_fd: int, outlet_fd: int, beyond: int) -> int:
    """One job, from its order to its outcome. template: the process that this one dies with. beyond: bytes of memory
    that the template has written and that do not count as the job's.
    """
    inlet, outlet = os.fdopen(inlet_fd, "rb"), os.fdopen(outlet_fd, "wb")
    _protect(template, inlet_fd, outlet_fd)
    try:
        order = Order.read(frames.read(inlet).payload)
    except EOFError:
        return 0  # its worker has gone
    limit(order.memory_bytes + beyond)
    group, clock = Group(order.cores), StageClock("reading")
    CLOCK.set(clock)
    THREADS.set(group)
    progress = _Progress(outlet, group, clock)
    try:
        outcome = _work(order, inlet, outlet, group, progress)
        with timed("storing"):
            write_outcome(outlet, outcome, order.stored, progress.finish)
    except MemoryError:
        _send_failure(outlet, OutOfMemory(), order, progress)
    except ValiantError as error:
        _send_failure(outlet, error, order, progress)
    except Exception:  # noqa: BLE001 - whatever it raises ends this job and no other
        traceback.print_exc()  # for the log; the client gets no details of ours
        _send_failure(outlet, ValiantError("The job failed unexpectedly."), order, progress)
    return 0


def _protect(parent: int, *pipes: int) -> None:
    """Die with the template, leave no core dump, be the first the kernel ends when memory is short."""
    die_with(parent)
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for pipe in pipes:  # whatever a fit may start has no business here
        os.set_inheritable(pipe, False)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _work(order: Order, inlet: IO[bytes], outlet: IO[bytes], group: Group, progress: "_Progress") -> Outcome:
    records = kind_records()
    kind = records[order.kind]
    within = TimedForks(order.cores, group.close) if sys.platform == "linux" else in_turn_within
    inputs = read_inputs(order, inlet)._replace(each=group, each_within=within, kinds=records)
    if isinstance(inputs.journal, StoredJournal):
        inputs = inputs._replace(journal=inputs.journal.writing_to(outlet))
    jit.on_compiling = progress.compiling
    with timed("evaluating"):
        return kind.run(kind.request.model_validate(order.request), inputs, progress)


class _Progress:
    """Sends the newest state to the supervisor, now and then."""

    def __init__(self, outlet: IO[bytes], group: Group, clock: StageClock) -> None:
        self._outlet, self._group, self._clock = outlet, group, clock
        self._curves = Curves()
        self._due = 0.0
        self._fraction = 0.0

    def compiling(self, kernel: jit.Kernel[..., Any]) -> None:
        """Report that the job waits for a kernel, and have the others of its family compiled meanwhile."""
        kernel.want()
        left = [each for each in missing() if each.family == kernel.family]
        self._send(str(describe(left) or ""))

    def __call__(self, fraction: float, message: str, measures: Mapping[str, float]) -> None:
        self._curves.add(measures)
        now = time.monotonic()
        if now < self._due and fraction < 1:
            return
        self._due = now + REPORT_SECONDS
        self._fraction = min(max(fraction, 0.0), 1.0)
        self._send(message)

    def finish(self) -> None:
        """Report for the last time."""
        self._send("")

    def _send(self, message: str) -> None:
        effort = {"stages": self._clock.seconds(), "cores": self._group.used}
        result = {"fraction": self._fraction, "message": message[:200], "curves": self._curves.values, **effort}
        frames.write(self._outlet, frames.PROGRESS, json.dumps(result).encode())


def _send_failure(outlet: IO[bytes], error: ValiantError, order: Order, progress: _Progress) -> None:
    progress.finish()
    problem = Problem.of(error, request_id=order.request_id)
    frames.write(outlet, frames.FAILURE, problem.model_dump_json().encode())
