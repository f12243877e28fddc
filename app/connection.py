"""A connection of the API: a request that came whole and is answered directly begins where it arrives.

uvicorn gives every request a task of the event loop, which costs as much as a small prediction, and writes an answer's
head and body apart, which costs more. Here a task is made only of what has to wait, and what is written in one turn of
the loop is sent together.
"""

import asyncio
from contextvars import copy_context
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.api.arriving import Begun
from app.api.direct import WHOLE, Application


class Connection(HttpToolsProtocol):
    """uvicorn's, which parses, and tells the application."""

    _arriving = False
    _whole: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        self._out = Gathering(transport, self.loop)
        super().connection_made(self._out)  # type: ignore[arg-type]  # all that is asked of a transport

    def data_received(self, data: bytes) -> None:
        self._arriving = True
        super().data_received(data)
        self._arriving = False
        if self._whole is not None:
            cycle, self._whole = self._whole, None
            self._begin(cycle)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Called when a head has arrived, or when the turn of a request has come."""
        scope: Any = cycle.scope
        if self._arriving and isinstance(app, Application) and app.answers_directly(scope):
            self._whole = cycle  # unless its body is still to come
        else:
            super()._start_asgi_task(cycle, app)

    def _begin(self, cycle: RequestResponseCycle) -> None:
        if cycle.more_body:
            super()._start_asgi_task(cycle, self.app)
            return
        scope: Any = cycle.scope
        scope[WHOLE] = bytes(cycle.body)
        context = copy_context()
        self._out.hold()
        begun: Begun[None] = context.run(Begun, cycle.run_asgi(self.app))  # raises nothing: uvicorn answers with 500
        self._out.send()
        if not begun.done:
            task = self.loop.create_task(_ended(begun), context=context)
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)


async def _ended(begun: Begun[None]) -> None:
    await begun


class Gathering:
    """A transport that sends what is written in one turn of the event loop as one piece."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._pieces: list[bytes] = []
        self._holds = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def hold(self) -> None:
        """What is written from now on waits for `send`."""
        self._holds = True

    def send(self) -> None:
        self._holds = False
        if self._pieces:
            self._transport.writelines(self._pieces)
            self._pieces = []

    def write(self, piece: bytes) -> None:
        if not (self._pieces or self._holds):
            self._loop.call_soon(self.send)
        self._pieces.append(piece)

    def close(self) -> None:
        self.send()
        self._transport.close()
