"""`valiant up`: the embedded stack with API and workers beside it, kept running until told to stop."""

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from app import processes
from app.disk import Reserve, free
from app.embedded import Child, Stack
from app.errors import StartFailed
from app.ports import address, listen
from app.settings import MiB, Settings
from app.store.engine import pool_size
from migrations import upgrade

LOOK_SECONDS = 0.25
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
STABLE_SECONDS = 60.0  # alive for so long, a child's earlier deaths are forgotten
SPARE_CONNECTIONS = 20
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stopped(BaseException):
    """Somebody asked us to stop."""


class Running(NamedTuple):
    settings: Settings
    children: Sequence[Child]
    reserve: Reserve

    @property
    def address(self) -> str:
        return address(self.settings)


def up(settings: Settings, *, workers: int) -> None:
    """Run everything until SIGTERM, SIGINT or SIGHUP."""
    with stopping_on_signals(), running(settings, workers=workers, to_terminal=True) as service:
        print(f"Valiant is at {service.address}, its documentation at {service.address}/docs.", file=sys.stderr)
        print(f"Data are in {service.settings.data}. Ctrl-C stops everything.", file=sys.stderr)
        keep(service)


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Leaves the block, cleaning up on the way, at the first signal to stop; later ones change nothing."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    except Stopped:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def running(settings: Settings, *, workers: int, to_terminal: bool) -> Iterator[Running]:
    """The stack, migrated, with an API that answers and `workers` workers. Stops them in the opposite order.

    On a full disk this waits until there is room.
    """
    settings = settings.model_copy(update={"port": _free_port(settings)})
    reserve = Reserve(settings.data, settings.reserve_bytes)
    while True:
        _wait_for_room(reserve)
        with ExitStack() as undo:
            try:
                stack, own = _start(settings, undo, workers=workers, to_terminal=to_terminal)
            except (StartFailed, OSError, SQLAlchemyError):
                if not reserve.short:
                    raise
                continue
            yield Running(stack.settings, [*stack.servers.values(), *own], reserve)
            return


def _start(settings: Settings, undo: ExitStack, *, workers: int, to_terminal: bool) -> tuple[Stack, list[Child]]:
    """The servers, and API and workers on them."""
    stack = undo.enter_context(Stack(settings, connections=connections(settings, workers=workers)))
    if stack.settings.database_url is None:
        raise StartFailed("There is no database.")
    upgrade(stack.settings.database_url.get_secret_value())
    own = [
        processes.api(stack.settings, stack.folder, to_terminal=to_terminal),
        *(
            processes.worker(stack.settings, stack.folder, number=number, to_terminal=to_terminal)
            for number in range(1, workers + 1)
        ),
    ]
    undo.callback(_stop, own)
    for child in own:
        child.spawn()
    for child in own:
        child.wait()
    return stack, own


def _stop(children: Sequence[Child]) -> None:
    for child in children:
        child.begin_stop()
    for child in children:
        child.stop()


def _wait_for_room(reserve: Reserve) -> None:
    reserve.release()
    if reserve.short:
        _say(
            f"The disk of {reserve.folder} is full: {free(reserve.folder) // MiB} MiB are free, and a start needs "
            f"{reserve.needed // MiB} MiB. Waiting for room; Ctrl-C ends."
        )
    while reserve.short:
        time.sleep(LOOK_SECONDS)


def _say(sentence: str) -> None:
    with suppress(OSError):  # the terminal may be a file on a full disk
        print(sentence, file=sys.stderr, flush=True)


def connections(settings: Settings, *, workers: int) -> int:
    """What one API and the workers may open together, with some to spare for migrations and people."""
    return pool_size(settings, role="api") + workers * pool_size(settings, role="worker") + SPARE_CONNECTIONS


def _free_port(settings: Settings) -> int:
    """The port to use, or StartFailed: found out here, before anything has started."""
    with listen(settings.host, settings.port) as probe:
        return int(probe.getsockname()[1])


@dataclass
class _Watched:
    child: Child
    reserve: Reserve
    pause: float = FIRST_PAUSE
    since: float = 0.0
    due: float | None = None
    """When to start it again, if it is dead."""

    def look(self, now: float) -> None:
        if self.child.alive:
            if now - self.since > STABLE_SECONDS:
                self.pause = FIRST_PAUSE
        elif self.due is None:
            _say(f"{self.child.name} ended by itself; starting it again in {self.pause} s.")
            self.due = now + self.pause
        elif now >= self.due:
            self._start_again(now)

    def _start_again(self, now: float) -> None:
        if self.reserve.release():
            _say(f"The disk of {self.reserve.folder} is full: the room that was set aside is given to the database.")
        with suppress(OSError):  # a full disk: the child is still dead at the next look
            self.child.spawn()
        self.since, self.due, self.pause = now, None, min(2 * self.pause, LONGEST_PAUSE)


def keep(service: Running) -> None:
    """Start again whatever ends, for ever, waiting longer each time it does not last."""
    watched = [_Watched(child, service.reserve) for child in service.children]
    while True:
        for each in watched:
            each.look(time.monotonic())
        service.reserve.restore()
        time.sleep(LOOK_SECONDS)
