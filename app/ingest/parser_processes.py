"""The service's side of parsing: a child process per upload, from a warm spare.

A child costs half a second to start, most of it imports, so one always waits for its order; whoever takes it
starts the next in its place. A child serves one file and ends: nothing of one upload can meet another.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import NamedTuple

import structlog
from pydantic import ValidationError

from app.errors import BodyTooLarge, Fault, InvalidData, StorageFull
from app.ingest.protocol import LENGTH, Order, Parsed, ParseResponse, Refusal, out_of_memory

ERRORS = {error.code: error for error in (InvalidData, BodyTooLarge, StorageFull)}
_PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "HOME")
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
log = structlog.get_logger(__name__)


class _Child(NamedTuple):
    process: subprocess.Popen[bytes]
    channel: socket.socket

    def end(self) -> None:
        self.channel.close()
        self.process.kill()
        self.process.wait()


class Parser:
    def __init__(self, at_once: int) -> None:
        self._turn = threading.BoundedSemaphore(at_once)
        self._lock = threading.Lock()
        self._spare: _Child | None = None
        self._closed = False

    def warm(self) -> None:
        """See that a spare waits."""
        with self._lock:
            if self._spare is None and not self._closed:
                self._spare = _start()

    def close(self) -> None:
        with self._lock:
            spare, self._spare, self._closed = self._spare, None, True
        if spare is not None:
            spare.end()

    def parse(self, order: Order, upload: int, chunks: int) -> Parsed:
        """Blocks until the child has responded. Raises InvalidData, BodyTooLarge or StorageFull."""
        with self._turn:
            child = self._take()
            try:
                response = _request(child, order, upload, chunks)
            finally:
                child.end()
        if response.parsed is None:
            raise _error(response.refusal or Refusal(code=InvalidData.code, detail="The file could not be read."))
        return response.parsed

    def _take(self) -> _Child:
        with self._lock:
            child, self._spare = self._spare, None
        if child is None or child.process.poll() is not None:
            child = _start()
        self.warm()
        return child


def _start() -> _Child:
    ours, theirs = socket.socketpair()
    with theirs:
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        process = subprocess.Popen(  # noqa: S603  our own module, and a number
            [sys.executable, "-m", "app.ingest.parsing_child", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment | _THREADS,  # no addresses, no credentials
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    return _Child(process, ours)


def _request(child: _Child, order: Order, upload: int, chunks: int) -> ParseResponse:
    end = time.monotonic() + order.seconds
    received = bytearray()
    try:
        message = order.model_dump_json().encode()
        child.channel.settimeout(order.seconds)
        socket.send_fds(child.channel, [LENGTH.pack(len(message))], [upload, chunks])
        child.channel.sendall(message)
        while True:
            child.channel.settimeout(max(0.001, end - time.monotonic()))
            chunk = child.channel.recv(1 << 16)
            if not chunk:
                break
            received += chunk
    except TimeoutError:
        return ParseResponse(refusal=_too_slow(order))
    except OSError:  # the child is gone
        received.clear()
    try:
        return ParseResponse.model_validate_json(received)
    except ValidationError:  # nothing, or half a message
        return _died(child, order)


def _too_slow(order: Order) -> Refusal:
    detail = (
        f"Reading this file takes longer than {order.seconds} seconds. Send it as Parquet, or in parts; or raise "
        "VALIANT_PARSE_SECONDS."
    )
    return Refusal(code=InvalidData.code, detail=detail, faults=[Fault("", detail, "too_slow")])


def _died(child: _Child, order: Order) -> ParseResponse:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.process.wait(5)
    log.warning("parser died", returncode=child.process.returncode)
    late = child.process.returncode == -signal.SIGXCPU
    return ParseResponse(refusal=_too_slow(order) if late else out_of_memory(order))


def _error(refusal: Refusal) -> Exception:
    if refusal.trace:
        log.error("parser failed", trace=refusal.trace)
    return ERRORS[refusal.code](refusal.detail, faults=refusal.faults)
