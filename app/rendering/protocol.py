"""Protocol of the service and its rendering child: an order, and one response, each behind its length."""

import socket
from struct import Struct
from typing import Literal, TypeAlias

from app.base.wire import Wire
from app.processes.liveness import Patience, wait_until_readable, wait_until_writable

LENGTH = Struct("!Q")
PictureFormat: TypeAlias = Literal["svg", "png"]
GRAMMAR = "5.21"
"""Version of Vega-Lite by which specifications are read."""


class Order(Wire):
    """A specification to draw. The child sets its limits by the first one."""

    specification: str
    """A Vega-Lite specification as JSON."""
    picture_format: PictureFormat
    scale: float
    """Pixels of a PNG for each pixel of the specification."""
    most_pixels: int
    """Width times height of the picture, at most."""
    most_bytes: int
    memory_bytes: int
    idle_seconds: float
    """The child ends after this time without an order."""


def send(channel: socket.socket, message: bytes, patience: Patience | None = None) -> None:
    """patience: with the process at the other end, which may be frozen; raises Unresponsive then."""
    data = LENGTH.pack(len(message)) + message
    if patience is None:
        channel.sendall(data)
        return
    unsent = memoryview(data)
    while unsent:
        wait_until_writable(channel, patience)
        unsent = unsent[channel.send(unsent, socket.MSG_DONTWAIT) :]


def receive(channel: socket.socket, patience: Patience | None = None) -> bytes | None:
    """None where the other side has closed the channel. patience: as of `send`."""
    head = _exactly(channel, LENGTH.size, patience)
    if head is None:
        return None
    (size,) = LENGTH.unpack(head)
    return _exactly(channel, size, patience)


def _exactly(channel: socket.socket, size: int, patience: Patience | None) -> bytes | None:
    received = bytearray()
    while len(received) < size:
        if patience is not None:
            wait_until_readable(channel, patience)
        chunk = channel.recv(min(1 << 16, size - len(received)))
        if not chunk:
            return None
        received += chunk
    return bytes(received)
