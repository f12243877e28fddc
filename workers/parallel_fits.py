"""Members of a learner fitted at once: by the trainer, and by forks of it to which the worker lends free slots.

The trainer runs them alone, one after the other; what it has not begun a fork may take, as long as it holds
a slot. So nobody waits for a slot, and with none the trainer is merely slower. A fork has the trainer's memory, limits
and processor: what it makes is the same to the last bit. What dies with a fork is done again, and a fork dies with the
trainer.

    turns     a pipe of the numbers that nobody has begun: who reads one has it
    grants    a socket by which slots come: each is the end of a pipe, and closing it gives the slot back
    done      a pipe of each fork's own: what it has done, and where in its file that is
"""

import os
import select
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar

from app.ml.models import safetensors_format, state_format
from app.parent_process import die_with

LONG = 0.2
"""Seconds of CPU time after which more slots are requested: less is not worth a fork."""
SLICE = 1.0
"""Seconds after which a fork gives its slot back, for others may wait for one."""
MOST = 1000
"""Tasks shared at a time: the numbers of more might not fit into a pipe."""
TAKEN = b"t"
"""The byte that a fork writes into a slot that it takes."""
_TURN, _DONE = struct.Struct("=H"), struct.Struct("=HQQ")

T = TypeVar("T")
Tasks: TypeAlias = Sequence[Callable[[], T]]


class Group:
    """An `app.ml.contract.algorithm.Each`."""

    def __init__(self, grants: socket.socket, forks: int, request: Callable[[int], None]) -> None:
        """grants: the source of slots. forks: their largest number. request: sends how many slots are of use now."""
        grants.setblocking(False)  # forks race for what comes
        self._grants = grants
        self._forks = forks if sys.platform == "linux" else 0  # elsewhere libraries do not survive a fork
        self._request = request
        self._shared = False
        """True if this process is within tasks that are shared: what these could do at once is done in turn."""

    def __call__(self, kind: type[T], tasks: Tasks[T], /) -> Iterator[T]:
        place, spent = 0, 0.0
        while place < len(tasks):
            rest = tasks[place : place + MOST]
            if spent > LONG and not self._shared and (forks := min(self._forks, len(rest) - 1)):
                yield from self._together(kind, rest, forks)
                place += len(rest)
                continue
            begun = time.monotonic()
            made = rest[0]()
            spent += time.monotonic() - begun
            yield made
            place += 1

    def _together(self, kind: type[T], tasks: Tasks[T], forks: int) -> Iterator[T]:
        turns, self._shared = _Turns(len(tasks)), True
        helpers = list(_forked(tasks, turns, self._grants, forks))
        done: dict[int, T] = {}
        self._request(len(helpers))
        try:
            for place in range(len(tasks)):
                while place not in done:
                    mine = turns.take()
                    if mine is None and not _gather(kind, helpers, done, wait=True):
                        mine = place  # who had it is gone
                    if mine is not None:
                        done[mine] = tasks[mine]()
                    _gather(kind, helpers, done)
                yield done.pop(place)
        finally:
            self._shared = False
            self._request(0)
            for helper in helpers:
                helper.end()
            turns.end()


def _forked(tasks: Tasks[T], turns: "_Turns", grants: socket.socket, count: int) -> Iterator["_Fork[T]"]:
    with suppress(OSError):  # there is no room for more
        for _ in range(count):
            yield _Fork(tasks, turns, grants)


def _gather(kind: type[T], helpers: Sequence["_Fork[T]"], done: dict[int, T], *, wait: bool = False) -> bool:
    """Take in what forks have done since. False: there are none left."""
    living = [one for one in helpers if not one.gone]
    if living:
        for one in select.select(living, [], [], None if wait else 0)[0]:
            done.update(one.news(kind))
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
    """A copy of this process that waits for a slot, takes turns while it has one, and ends when there are none."""

    def __init__(self, tasks: Tasks[T], turns: _Turns, grants: socket.socket) -> None:
        self.gone = False
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
            while (slot := _granted(grants, turns)) is not None:
                self._help(tasks, turns, result)
                os.close(slot)
        except BaseException:  # noqa: BLE001 - the trainer meets it too, and reports it
            traceback.print_exc()
        finally:
            os._exit(0)

    def _help(self, tasks: Tasks[T], turns: _Turns, result: int) -> None:
        until = time.monotonic() + SLICE
        while time.monotonic() < until and (mine := turns.take()) is not None:
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
                place, begin, size = _DONE.unpack(chunk)
                document, arrays = safetensors_format.read(os.pread(self._file.fileno(), size, begin))
                yield place, state_format.unpack_unchecked(kind, document, arrays)
            self.gone = True

    def end(self) -> None:
        os.kill(self._process, signal.SIGKILL)  # not reaped, so the number is still its own
        os.waitpid(self._process, 0)
        os.close(self._pipe)
        self._file.close()


def _granted(grants: socket.socket, turns: _Turns) -> int | None:
    """A slot, when there is one. None: there is nothing left to do."""
    poll = select.poll()
    poll.register(grants, select.POLLIN)
    poll.register(turns.outlet, 0)  # the end of it alone
    while turns.outlet not in dict(poll.poll()):
        with suppress(BlockingIOError):  # another fork was faster
            (slot,) = socket.recv_fds(grants, 1, 1)[1]
            try:
                os.write(slot, TAKEN)
            except BrokenPipeError:  # whoever lent it has not waited
                os.close(slot)
            else:
                return slot
    return None
