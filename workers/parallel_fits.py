"""Tasks of a fit done at once: by the trainer, and by forks of it on cores that no other job needs.

The trainer runs them alone, one after the other; what it has not begun a fork may take, as long as it holds
a core. So nobody waits for a core, and with none the trainer is merely slower. A fork has the trainer's memory, limits
and processor: what it makes is the same to the last bit. What dies with a fork is done again, and a fork dies with the
trainer. Before each task a fork gives its core up if a job waits for one, and while it is at one it leaves the
processor to trainers.

    turns     a pipe of the numbers that nobody has begun: who reads one has it
    done      a pipe of each fork's own: what it has done, and where in its file that is

Calls that release the interpreter's lock are done by threads instead, on cores that are taken for a while.
"""

import os
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar

from app.ml.contract.stage_clock import timed
from app.ml.models import safetensors_format, state_format
from app.processes.parent_process import die_with
from app.processes.processor_cores import Core, Cores

LONG_SECONDS = 0.1
"""Seconds of a fit after which its further tasks are shared: less is not worth a fork."""
HOLD_SECONDS = 0.2
"""Time for which threads keep a core before they look again whether a job waits for it."""
MAX_TASKS = 1000
"""Tasks shared at a time: the numbers of more might not fit into a pipe."""
PAUSE_MS, MAX_PAUSE_MS = 10, 250
"""Time between two looks of a fork for a core."""
NICENESS = 5
"""Niceness of a fork, on top of its trainer's: a job that begins does not wait for what helps another."""
_TURN, _DONE = struct.Struct("=H"), struct.Struct("=HQQ")

T = TypeVar("T")
Tasks: TypeAlias = Sequence[Callable[[], T]]


class Group:
    """An `app.ml.contract.algorithm.Each`, and `app.ml.contract.threads.Threads`."""

    def __init__(self, cores: Cores) -> None:
        """cores: one of them is the trainer's."""
        self._cores = cores
        self._forks = cores.size - 1 if sys.platform == "linux" else 0  # elsewhere libraries do not survive a fork
        self._shared = False
        """True if this process is within tasks that are shared: what these could do at once is done in turn."""
        self._threads = _Threads(cores)
        self.used = 1
        """Largest number of cores that computed at once."""

    def __call__(self, kind: type[T], tasks: Tasks[T], /) -> Iterator[T]:
        number, spent = 0, 0.0
        while number < len(tasks):
            batch = tasks[number : number + MAX_TASKS]
            if spent > LONG_SECONDS and not self._shared and (forks := min(self._forks, len(batch) - 1)):
                yield from self._together(kind, batch, forks)
                number += len(batch)
                continue
            begun = time.monotonic()
            made = batch[0]()
            spent += time.monotonic() - begun
            yield made
            number += 1

    def at_once(self, calls: Tasks[T], /) -> list[T]:
        """The result of each call, in their order; in threads on cores that are free."""
        if self._shared or len(calls) < 2:
            return _done(calls)
        helpers = self._threads.take(len(calls) - 1)
        self.used = max(self.used, 1 + helpers)
        return self._threads.run(calls) if helpers else _done(calls)

    @property
    def threads(self) -> int:
        """Number of threads that calls run in now, with the caller's."""
        return 1 if self._shared else 1 + self._threads.take(self._cores.size - 1)

    def close(self) -> None:
        """Give all cores back."""
        self._threads.end()

    def _together(self, kind: type[T], tasks: Tasks[T], forks: int) -> Iterator[T]:
        self._threads.end()  # a fork has none of them
        turns, self._shared = _Turns(len(tasks)), True
        helpers = list(_forked(tasks, turns, self._cores, forks))
        done: dict[int, T] = {}
        try:
            for number in range(len(tasks)):
                while number not in done:
                    mine = turns.take()
                    with timed("fitting"):  # by forks, while this process waits
                        if mine is None and not _gather(kind, helpers, done, wait=True):
                            mine = number  # the fork that had it is gone
                    if mine is not None:
                        done[mine] = tasks[mine]()
                    _gather(kind, helpers, done)
                yield done.pop(number)
        finally:
            self._shared = False
            self.used = max(self.used, 1 + sum(helper.has_helped for helper in helpers))
            for helper in helpers:
                helper.end()
            turns.end()


class _Threads:
    """Threads of this process, one for each core that is held for them."""

    def __init__(self, cores: Cores) -> None:
        self._cores = cores
        self._held: list[Core] = []
        self._until = 0.0
        self._pool: ThreadPoolExecutor | None = None

    def take(self, count: int) -> int:
        """Number of cores that are held now, at most so many: now and then those that are free are taken, or all are
        given up for a job that waits.
        """
        if (now := time.monotonic()) >= self._until:
            self._until = now + HOLD_SECONDS
            if self._cores.is_wanted:
                self.end()
                self._until = now + HOLD_SECONDS
                return 0
            while len(self._held) < self._cores.size - 1 and (core := self._cores.take()) is not None:
                self._held.append(core)
        return min(count, len(self._held))

    def run(self, calls: Tasks[T]) -> list[T]:
        """The results of the calls, of which the first is done by the caller."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._cores.size - 1)
        step = 1 + len(self._held)
        others = [self._pool.submit(_done, calls[first::step]) for first in range(1, min(step, len(calls)))]
        results = [_done(calls[::step]), *(other.result() for other in others)]
        return [results[number % step][number // step] for number in range(len(calls))]

    def end(self) -> None:
        """Give the cores back; there is no thread afterwards."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        for core in self._held:
            core.close()
        self._held.clear()
        self._until = 0.0


def _done(calls: Tasks[T]) -> list[T]:
    return [call() for call in calls]


def _forked(tasks: Tasks[T], turns: "_Turns", cores: Cores, count: int) -> Iterator["_Fork[T]"]:
    with suppress(OSError):  # there is no room for more
        for _ in range(count):
            yield _Fork(tasks, turns, cores)


def _gather(kind: type[T], helpers: Sequence["_Fork[T]"], done: dict[int, T], *, wait: bool = False) -> bool:
    """Take in what forks have done since. False: there are none left."""
    living = [helper for helper in helpers if not helper.gone]
    if living:
        for helper in select.select(living, [], [], None if wait else 0)[0]:
            done.update(helper.news(kind))
    return bool(living)


class _Turns:
    """Numbers, each of which is had once, in whichever process."""

    def __init__(self, count: int) -> None:
        self.outlet, self._inlet = os.pipe()
        os.set_blocking(self.outlet, False)
        os.write(self._inlet, b"".join(map(_TURN.pack, range(count))))
        self._open = True

    def take(self) -> int | None:
        """The next one. None: all are taken, which idle forks receive."""
        with suppress(BlockingIOError):
            if chunk := os.read(self.outlet, _TURN.size):
                return int(_TURN.unpack(chunk)[0])
        self.close()
        return None

    def close(self) -> None:
        """When all have done so, `outlet` hangs up."""
        if self._open:
            os.close(self._inlet)
            self._open = False

    def end(self) -> None:
        self.close()
        os.close(self.outlet)


class _Fork(Generic[T]):
    """A copy of this process that waits for a core, takes turns while it has one, and ends when there are none."""

    def __init__(self, tasks: Tasks[T], turns: _Turns, cores: Cores) -> None:
        self.gone = self.has_helped = False
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._pipe, result = os.pipe()
        os.set_blocking(self._pipe, False)
        trainer = os.getpid()
        self._process = os.fork()
        if self._process:
            os.close(result)
            return
        try:
            die_with(trainer)
            turns.close()
            os.nice(NICENESS)
            while (core := _free_core(cores, turns)) is not None:
                with core:
                    self._help(tasks, turns, cores, result)
        except BaseException:  # noqa: BLE001 - the trainer meets it too, and reports it
            traceback.print_exc()
        finally:
            os._exit(0)

    def _help(self, tasks: Tasks[T], turns: _Turns, cores: Cores, result: int) -> None:
        while not cores.is_wanted and (mine := turns.take()) is not None:
            arrays: dict[str, Any] = {}
            begin, document = self._file.tell(), state_format.pack(tasks[mine](), "made", arrays)
            self._file.write(safetensors_format.write(document, arrays))
            self._file.flush()
            os.write(result, _DONE.pack(mine, begin, self._file.tell() - begin))

    def fileno(self) -> int:
        return self._pipe

    def news(self, kind: type[T]) -> Iterator[tuple[int, T]]:
        """Results since the last call, as far as it has reported."""
        with suppress(BlockingIOError):
            while chunk := os.read(self._pipe, _DONE.size):
                number, begin, size = _DONE.unpack(chunk)
                document, arrays = safetensors_format.read(os.pread(self._file.fileno(), size, begin))
                self.has_helped = True
                yield number, state_format.unpack_unchecked(kind, document, arrays)
            self.gone = True

    def end(self) -> None:
        os.kill(self._process, signal.SIGKILL)  # not reaped, so the number is still its own
        os.waitpid(self._process, 0)
        os.close(self._pipe)
        self._file.close()


def _free_core(cores: Cores, turns: _Turns) -> Core | None:
    """A core, when no job needs it. None: there is nothing left to do."""
    poll, pause = select.poll(), PAUSE_MS
    poll.register(turns.outlet, 0)  # the end of it alone
    while True:
        if not cores.is_wanted and (core := cores.take()) is not None:
            return core
        if poll.poll(pause):
            return None
        pause = min(2 * pause, MAX_PAUSE_MS)
