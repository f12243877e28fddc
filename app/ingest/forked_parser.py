"""Both ends of a parser that is a process with all imports, and forks a child for each file.

A parser takes a second to start, most of it imports; a fork takes none. A child serves one file under its limits, and
ends: nothing of one file can meet another. The parser itself reads nothing that a client sent; it has one thread, so
that a fork of it is whole.
"""

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import structlog

from app.base.errors import NotReady
from app.ingest.protocol import LENGTH, STATUS
from app.processes.liveness import PATIENCE_SECONDS, Frozen, Patience, wait_until_readable
from app.processes.socket_child import SocketChild, start

MAX_FILES = 2
"""Open files that come with an order."""
STATUS_SECONDS = 5.0
"""Longest wait for how a child ended, once its end of the socket is closed."""
NICENESS = 5
"""Files wait for predictions, not predictions for files."""
LOGGED_BYTES = 4000
"""Longest end of a parser's stderr in the log."""
T = TypeVar("T")
log = structlog.get_logger(__name__)


class Response(NamedTuple):
    """Bytes that a child has written, and how it ended."""

    content: bytes
    """Nothing, or a part, where the child died."""
    status: int | None
    """Exit status of the child, or of its parser where that ended first; None if neither is known."""


def start_parser(module: str, **environment: str) -> SocketChild:
    """Start a module that calls `fork_for_each_file`."""
    return start(module, tempfile.TemporaryFile(), **environment)


def retry_frozen(attempt: Callable[[], T]) -> T:
    """Result of the attempt, or of a second one if the first ends with a frozen process. Raises NotReady after both."""
    for _ in range(2):
        try:
            return attempt()
        except Frozen as error:
            log.warning("parser_frozen", reason=str(error))
    raise NotReady("The processes that read files are frozen.")


def request(
    parser: SocketChild,
    order: bytes,
    files: Sequence[int],
    *,
    seconds: float,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Response:
    """Blocks until the child has responded.

    Raises Frozen where parser and child compute nothing for `patience_seconds`, and TimeoutError after `seconds`: then
    the parser cannot serve another file.
    """
    ours, theirs = socket.socketpair()
    _forget_errors(parser)
    with ours:
        try:
            with theirs:
                socket.send_fds(parser.channel, [b"\0"], [theirs.fileno()])
            patience = Patience(parser.process.pid, patience_seconds, hard_seconds=seconds, with_family=True)
            ours.settimeout(seconds)
            content = _exchange(ours, order, files, patience)
        except TimeoutError:
            raise
        except OSError:  # the child is gone
            content = b""
    status = _status(parser)
    if status:
        log.warning("parser_died", returncode=status, output=_read_errors(parser))
    return Response(content, status)


def _exchange(channel: socket.socket, order: bytes, files: Sequence[int], patience: Patience) -> bytes:
    """All that the child writes. Raises OSError where it is gone, frozen or too slow."""
    received = bytearray()
    socket.send_fds(channel, [LENGTH.pack(len(order))], files)
    channel.sendall(order)
    while True:
        wait_until_readable(channel, patience)
        chunk = channel.recv(1 << 16)
        if not chunk:
            return bytes(received)
        received += chunk


def _forget_errors(parser: SocketChild) -> None:
    if parser.errors is not None:
        with contextlib.suppress(ValueError):  # another thread has ended the parser
            parser.errors.seek(0)  # for the parser too, which has the same open file
            parser.errors.truncate()


def _read_errors(parser: SocketChild) -> str:
    """End of what it wrote to stderr since the last request; empty where another thread has ended it."""
    if parser.errors is None:
        return ""
    with contextlib.suppress(ValueError):
        descriptor = parser.errors.fileno()
        start = max(0, os.fstat(descriptor).st_size - LOGGED_BYTES)
        return os.pread(descriptor, LOGGED_BYTES, start).decode(errors="replace")
    return ""


def _status(parser: SocketChild) -> int | None:
    with contextlib.suppress(OSError):
        parser.channel.settimeout(STATUS_SECONDS)
        if len(status := parser.channel.recv(STATUS.size, socket.MSG_WAITALL)) == STATUS.size:
            return int(STATUS.unpack(status)[0])
    with contextlib.suppress(subprocess.TimeoutExpired):
        parser.process.wait(STATUS_SECONDS)
    return parser.process.returncode


def fork_for_each_file(serve: Callable[[bytes, Sequence[int]], bytes]) -> None:
    """Serve orders in children, until the other end closes the channel that the first argument of the program names.

    serve: the response to an order and the open files that came with it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business; its end closes the channel
    os.nice(NICENESS)
    control = socket.socket(fileno=int(sys.argv[1]))
    gc.freeze()  # a collection in a child leaves our pages alone
    while True:
        _, descriptors, *_ = socket.recv_fds(control, 1, 1)
        if not descriptors:
            return
        control.sendall(STATUS.pack(_ended(control, serve, *descriptors)))


def _ended(control: socket.socket, serve: Callable[[bytes, Sequence[int]], bytes], descriptor: int) -> int:
    """Status of a forked child that has served the file of this channel."""
    if pid := os.fork():
        os.close(descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 1
    try:
        control.close()
        channel = socket.socket(fileno=descriptor)
        length, files, *_ = socket.recv_fds(channel, LENGTH.size, MAX_FILES)
        with channel.makefile("rb") as messages:
            order = messages.read(*LENGTH.unpack(length))
        channel.sendall(serve(order, files))
        status = 0
    finally:
        os._exit(status)  # nothing is left to save
