"""`valiant up`: the embedded stack with API and workers beside it, kept running until a signal to stop."""

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from app.base.errors import StartFailed
from app.base.settings import MiB, Settings
from app.commands import processes
from app.commands.supervising import LOOK_SECONDS, keep, report
from app.embedded.child_process import Child, stop_all
from app.embedded.stack import Stack
from app.processes.disk_space import Reserve, free
from app.processes.ports import address, demand_keys, listen
from app.processes.processor_cores import count_slots
from app.store.engine import pool_size
from migrations.schema_revision import upgrade

SPARE_CONNECTIONS = 20
GRACE_SECONDS = 2.0
"""Time that requests and jobs get to end when everything stops: who pressed Ctrl-C waits for it."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stopped(BaseException):
    """The user requested a stop."""


class Running(NamedTuple):
    settings: Settings
    children: Sequence[Child]
    reserve: Reserve

    @property
    def address(self) -> str:
        return address(self.settings)

    def keep(self) -> None:
        """Start again whatever ends or freezes, until a signal to stop."""
        keep(self.children, self.reserve, patience=self.settings.lease_seconds)


def up(settings: Settings, *, workers: int) -> None:
    """Run everything until SIGTERM, SIGINT or SIGHUP."""
    with stopping_on_signals(), running(settings, workers=workers, to_terminal=True) as service:
        print(f"Valiant is at {service.address}/console/, its guide at {service.address}/docs/guide.", file=sys.stderr)
        print(f"Data are in {service.settings.data}. Ctrl-C stops everything.", file=sys.stderr)
        service.keep()


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Leaves the block, cleaning up, at the first signal to stop; later ones change nothing."""

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
    """The stack, migrated, with an API that responds and `workers` workers. Stops them in the opposite order.

    On a full disk this waits until there is room.
    """
    settings = settings.model_copy(update={"port": _free_port(settings)})
    reserve = Reserve(settings.data, settings.reserve_bytes)
    while True:
        _wait_for_room(reserve)
        with ExitStack() as undo:
            try:
                stack, children = _start(settings, undo, workers=workers, to_terminal=to_terminal)
            except (StartFailed, OSError, SQLAlchemyError):
                if not reserve.short:
                    raise
                continue
            yield Running(stack.settings, [*stack.servers.values(), *children], reserve)
            return


def _start(settings: Settings, undo: ExitStack, *, workers: int, to_terminal: bool) -> tuple[Stack, list[Child]]:
    """The servers, and API and workers on them."""
    stack = undo.enter_context(Stack(settings, connections=connections(settings, workers=workers)))
    if stack.settings.database_url is None:
        raise StartFailed("There is no database.")
    if repaired := upgrade(stack.settings.database_url.get_secret_value()):
        report(f"The database was repaired: {repaired}.")
    hasty = _hasty(stack.settings, workers)
    children = [
        processes.api(hasty, stack.folder, to_terminal=to_terminal),
        *(
            processes.worker(hasty, stack.folder, number=number, to_terminal=to_terminal)
            for number in range(1, workers + 1)
        ),
    ]
    undo.callback(stop_all, children)
    for child in children:
        child.spawn()
    for child in children:
        child.wait()
    return stack, children


def _hasty(settings: Settings, workers: int) -> Settings:
    """The same settings, with a short grace where none is set, and the slots of the machine shared by the workers."""
    grace = {"request_grace_seconds", "worker_grace_seconds"} - settings.model_fields_set
    slots = settings.worker_concurrency or max(1, count_slots(settings) // workers)
    return settings.model_copy(update=dict.fromkeys(grace, GRACE_SECONDS) | {"worker_concurrency": slots})


def _wait_for_room(reserve: Reserve) -> None:
    reserve.release()
    if reserve.short:
        report(
            f"The disk of {reserve.folder} is full: {free(reserve.folder) // MiB} MiB are free, and a start needs "
            f"{reserve.needed // MiB} MiB. Waiting for room; Ctrl-C ends."
        )
    while reserve.short:
        time.sleep(LOOK_SECONDS)


def connections(settings: Settings, *, workers: int) -> int:
    """Connections that one API and the workers may open together, with some to spare for migrations and people."""
    return pool_size(settings, role="api") + workers * pool_size(settings, role="worker") + SPARE_CONNECTIONS


def _free_port(settings: Settings) -> int:
    """The port to use, or StartFailed: found out here, before anything has started."""
    demand_keys(settings)
    with listen(settings.host, settings.port) as probe:
        return int(probe.getsockname()[1])
