"""`valiant up`: the embedded stack with API and workers beside it, kept running until told to stop."""

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple

from app import processes
from app.embedded import Child, Stack
from app.errors import StartFailed
from app.ports import address, listen
from app.settings import Settings
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

    @property
    def address(self) -> str:
        return address(self.settings)


def up(settings: Settings, *, workers: int) -> None:
    """Run everything until SIGTERM, SIGINT or SIGHUP."""
    with stopping_on_signals(), running(settings, workers=workers, to_terminal=True) as service:
        print(f"Valiant is at {service.address}, its documentation at {service.address}/docs.", file=sys.stderr)
        print(f"Data are in {service.settings.data}. Ctrl-C stops everything.", file=sys.stderr)
        keep(service.children)


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
    """The stack, migrated, with an API that answers and `workers` workers. Stops them in the opposite order."""
    settings = settings.model_copy(update={"port": _free_port(settings)})
    with Stack(settings, connections=connections(settings, workers=workers)) as stack:
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
        try:
            for child in own:
                child.spawn()
            for child in own:
                child.wait()
            yield Running(stack.settings, [*stack.servers.values(), *own])
        finally:
            for child in own:
                child.begin_stop()
            for child in own:
                child.stop()


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
    pause: float = FIRST_PAUSE
    since: float = 0.0
    due: float | None = None
    """When to start it again, if it is dead."""

    def look(self, now: float) -> None:
        if self.child.alive:
            if now - self.since > STABLE_SECONDS:
                self.pause = FIRST_PAUSE
        elif self.due is None:
            print(f"{self.child.name} ended by itself; starting it again in {self.pause} s.", file=sys.stderr)
            self.due = now + self.pause
        elif now >= self.due:
            self.child.spawn()
            self.since, self.due, self.pause = now, None, min(2 * self.pause, LONGEST_PAUSE)


def keep(children: Sequence[Child]) -> None:
    """Start again whatever ends, for ever, waiting longer each time it does not last."""
    watched = [_Watched(child) for child in children]
    while True:
        for each in watched:
            each.look(time.monotonic())
        time.sleep(LOOK_SECONDS)
