"""Tasks in forks of the trainer that are ended when their time is up, at most one on each core that no job needs.

A fit does not look at a clock, and a thread cannot be ended. A fork can: it has the trainer's memory, and what it makes
is the same to the last bit. The first fork runs on the trainer's own core, which waits meanwhile.
"""

import os
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from app.ml.contract.stage_clock import timed
from app.ml.contract.threads import THREADS, OneThread
from app.ml.contract.timed_tasks import Timed
from app.ml.models import safetensors_format, state_format
from app.processes.parent_process import die_with
from app.processes.processor_cores import Core, Cores

MAX_WAIT_SECONDS = 0.25
"""Time after which a further core is looked for."""

T = TypeVar("T")


class TimedForks:
    """An `app.ml.contract.timed_tasks.EachWithin`."""

    def __init__(self, cores: Cores, release: Callable[[], object]) -> None:
        """cores: one of them is the trainer's. release: ends the trainer's threads, which a fork would lack."""
        self.cores, self._release = cores, release

    def __call__(
        self, kind: type[T], tasks: Sequence[Callable[[], T]], seconds: Callable[[int], float], /
    ) -> Iterator[Timed[T]]:
        self._release()
        waiting, living, done = [*range(len(tasks))], dict[int, _TimedFork[T]](), dict[int, Timed[T]]()
        try:
            for number in range(len(tasks)):
                while number not in done:
                    self._begin(tasks, waiting, living, done, seconds)
                    if number not in done:
                        _gather(kind, living, done)
                yield done.pop(number)
        finally:
            for fork in living.values():
                fork.end()

    def _begin(
        self,
        tasks: Sequence[Callable[[], T]],
        waiting: list[int],
        living: "dict[int, _TimedFork[T]]",
        done: dict[int, Timed[T]],
        seconds: Callable[[int], float],
    ) -> None:
        """Begin the tasks whose turn it is, as far as there are cores."""
        while waiting:
            core = None
            is_own_used = any(fork.core is None for fork in living.values())
            if is_own_used and (self.cores.is_wanted or (core := self.cores.take()) is None):
                return
            number = waiting.pop(0)
            limit = seconds(number)
            if limit > 0:
                living[number] = _TimedFork(tasks[number], limit, core)
                continue
            done[number] = Timed(None, 0.0, begun=False)
            if core is not None:
                core.close()


class _TimedFork(Generic[T]):
    """A process that does one task."""

    def __init__(self, task: Callable[[], T], limit: float, core: Core | None) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self.core, self._begun = core, time.monotonic()
        self.deadline = self._begun + limit
        self._pipe, end = os.pipe()
        trainer = os.getpid()
        self._process = os.fork()
        if self._process:
            os.close(end)
            return
        try:
            die_with(trainer)
            THREADS.set(OneThread())
            arrays: dict[str, Any] = {}
            document = state_format.pack(task(), "made", arrays)
            self._file.write(safetensors_format.write(document, arrays))
            self._file.flush()
            os.write(end, b"1")
        except BaseException:  # noqa: BLE001 - the trainer reports that the process died
            traceback.print_exc()
        finally:
            os._exit(0)

    def fileno(self) -> int:
        return self._pipe

    def outcome(self, kind: type[T]) -> Timed[T]:
        """The outcome, when there is news or time is up; the process is gone afterwards."""
        seconds = time.monotonic() - self._begun
        late = time.monotonic() >= self.deadline
        written = b""
        if select.select([self], [], [], 0)[0]:
            with suppress(OSError):
                written = os.read(self._pipe, 1)
        result = None
        if written:
            self._file.seek(0)
            result = state_format.unpack_unchecked(kind, *safetensors_format.read(self._file.read()))
        self.end()
        return Timed(result, seconds, late=late and result is None)

    def end(self) -> None:
        os.kill(self._process, signal.SIGKILL)  # not reaped, so the number is still its own
        os.waitpid(self._process, 0)
        os.close(self._pipe)
        self._file.close()
        if self.core is not None:
            self.core.close()


def _gather(kind: type[T], living: dict[int, _TimedFork[T]], done: dict[int, Timed[T]]) -> None:
    """Wait until a fork has news or its time is up, and take in what there is."""
    left = min(fork.deadline for fork in living.values()) - time.monotonic()
    with timed("fitting"):
        ready = select.select([*living.values()], [], [], max(0.0, min(left, MAX_WAIT_SECONDS)))[0]
    for number, fork in [*living.items()]:
        if fork in ready or time.monotonic() >= fork.deadline:
            done[number] = fork.outcome(kind)
            del living[number]
