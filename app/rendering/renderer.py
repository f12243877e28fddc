"""The service's side of rendering: one child process, started by the first picture, that ends when none is requested.

The library holds the interpreter's lock while it draws, hence a process of its own: a picture never keeps a prediction
waiting. Pictures take turns; a child that is too slow, or dies, is replaced.
"""

import threading

import structlog

from app.base.errors import RenderingFailed
from app.processes.liveness import PATIENCE_SECONDS, Looping, Patience, Unresponsive
from app.processes.socket_child import SocketChild, start
from app.rendering.protocol import Order, PictureFormat, receive, send

MiB = 1 << 20
MOST_BYTES = 4 * MiB
"""Bytes of a specification, and of an SVG picture."""
MOST_PIXELS = 16 * MiB
"""Pixels of a PNG picture."""
SCALE = 2.0
"""Pixels of a PNG for each pixel of the specification: sharp on displays of high density."""
IDLE_SECONDS = 60.0
DRAWN = b"\x00"
MODULE = "app.rendering.rendering_child"
log = structlog.get_logger(__name__)


class Renderer:
    def __init__(self, seconds: float, memory_bytes: int) -> None:
        self._seconds, self._memory_bytes = seconds, memory_bytes
        self._turn = threading.Lock()
        self._child: SocketChild | None = None
        self._closed = False

    def close(self) -> None:
        """Ends the child at once; a picture that it draws fails."""
        self._closed = True
        if (child := self._child) is not None:
            child.process.kill()
        with self._turn:
            self._end()

    def render(self, specification: str, picture_format: PictureFormat) -> bytes:
        """Blocks until the picture is drawn. Raises RenderingFailed."""
        if len(specification) > MOST_BYTES:
            raise RenderingFailed("The specification is too large to be drawn here.")
        order = Order(
            specification=specification,
            picture_format=picture_format,
            scale=SCALE,
            most_pixels=MOST_PIXELS,
            most_bytes=MOST_BYTES,
            memory_bytes=self._memory_bytes,
            idle_seconds=IDLE_SECONDS,
        )
        with self._turn:
            response = self._response(order.model_dump_json().encode())
        if response[:1] != DRAWN:
            raise RenderingFailed(response[1:].decode())
        return response[1:]

    def _response(self, order: bytes) -> bytes:
        response = self._try(order) if self._child is not None else None
        response = self._try(order) if response is None else response  # the one before was idle and has ended, or froze
        if response is None:
            log.warning("renderer died")
            raise RenderingFailed("The picture takes more memory than a picture may use.")
        return response

    def _try(self, order: bytes) -> bytes | None:
        """None, and no child any more, where the child is gone or frozen."""
        if self._closed:
            raise RenderingFailed("The service is stopping.")
        child = self._child = self._child or start(MODULE)
        patience = Patience(child.process.pid, PATIENCE_SECONDS, cpu_seconds=self._seconds)
        try:
            send(child.channel, order, patience)
            response = receive(child.channel, patience)
        except Looping:
            self._end()
            limit = f"{self._seconds:g} seconds of processor time"
            raise RenderingFailed(f"Drawing took longer than {limit}.") from None
        except Unresponsive as error:
            log.warning("renderer_ended", reason=str(error))
            response = None
        except OSError:
            response = None
        if response is None:
            self._end()
        return response

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()
