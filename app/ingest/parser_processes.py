"""The service's side of parsing: each upload has a child process, forked from a parser that has its imports.

A parser costs half a second to start, most of it imports, so one always waits. It forks a child for each file, which
serves that one file and ends: nothing of one upload can meet another. Whoever takes a parser gives it back, and ends
it where its child was too slow or died.
"""

import os
import signal
import threading

import structlog
from pydantic import ValidationError

from app.base.errors import BodyTooLarge, InvalidData, StorageFull
from app.base.faults import Fault
from app.base.project_context import PROJECT
from app.ingest.forked_parser import request, retry_frozen, start_parser
from app.ingest.parsing_turns import Turns
from app.ingest.protocol import Order, Parsed, ParseResponse, Refusal, out_of_memory
from app.processes.liveness import PATIENCE_SECONDS, Frozen
from app.processes.socket_child import SocketChild

ERRORS = {error.code: error for error in (InvalidData, BodyTooLarge, StorageFull)}
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # a process that forks has one thread
}
SPARES = 2
"""Parsers kept while no file is read: that of the last file, and the one that waited meanwhile."""
log = structlog.get_logger(__name__)


class Parser:
    def __init__(self, at_once: int, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """patience_seconds: time in which a child computes something, or is frozen and replaced."""
        self._patience_seconds = patience_seconds
        self._turns = Turns(at_once)
        self._lock = threading.Lock()
        self._spares: list[SocketChild] = []
        self._active: set[SocketChild] = set()
        self._closed = False

    def warm(self) -> None:
        """See that a spare waits."""
        with self._lock:
            if not self._spares and not self._closed:
                self._spares.append(_start())

    def close(self) -> None:
        """End all of them at once, also those that read a file."""
        with self._lock:
            parsers, self._spares, self._closed = [*self._spares, *self._active], [], True
        for parser in parsers:
            parser.end()

    def parse(self, order: Order, upload: int, chunks: int) -> Parsed:
        """Blocks until the child has responded.

        Raises InvalidData, BodyTooLarge, StorageFull or Overloaded, and NotReady where even another child is frozen.
        """
        with self._turns.turn(PROJECT.get()):
            response = retry_frozen(lambda: self._attempt(order, upload, chunks))
        if response.parsed is None:
            raise _error(response.refusal or Refusal(code=InvalidData.code, detail="The file could not be read."))
        return response.parsed

    def _attempt(self, order: Order, upload: int, chunks: int) -> ParseResponse:
        """The response of a child. Raises Frozen."""
        os.ftruncate(chunks, 0)  # where a frozen child has begun
        os.lseek(chunks, 0, os.SEEK_SET)
        parser, whole = self._take(), False
        try:
            response, whole = _request(parser, order, upload, chunks, self._patience_seconds)
        finally:
            self._give_back(parser, whole=whole)
        return response

    def _take(self) -> SocketChild:
        with self._lock:
            parser = self._spares.pop() if self._spares else None
        if parser is None or not parser.alive:
            parser = _start()
        with self._lock:
            self._active.add(parser)
        self.warm()
        return parser

    def _give_back(self, parser: SocketChild, *, whole: bool) -> None:
        with self._lock:
            self._active.discard(parser)
            is_spare = whole and not self._closed and len(self._spares) < SPARES
            if is_spare:
                self._spares.append(parser)
        if not is_spare:
            parser.end()


def _start() -> SocketChild:
    return start_parser("app.ingest.parsing_child", **_ENVIRONMENT)


def _request(
    parser: SocketChild, order: Order, upload: int, chunks: int, patience_seconds: float
) -> tuple[ParseResponse, bool]:
    """The response, and True if the parser may serve another file. Raises Frozen."""
    message, files = order.model_dump_json().encode(), (upload, chunks)
    try:
        response = request(parser, message, files, seconds=order.seconds, patience_seconds=patience_seconds)
    except Frozen:
        raise
    except TimeoutError:
        return ParseResponse(refusal=_too_slow(order)), False
    try:
        return ParseResponse.model_validate_json(response.content), response.status == 0
    except ValidationError:  # nothing, or half a message
        late = response.status == -signal.SIGXCPU
        return ParseResponse(refusal=_too_slow(order) if late else out_of_memory(order)), False


def _too_slow(order: Order) -> Refusal:
    detail = (
        f"Reading this file takes longer than {order.seconds} seconds. Send it as Parquet, or in parts; or raise "
        "VALIANT_PARSE_SECONDS."
    )
    return Refusal(code=InvalidData.code, detail=detail, faults=[Fault("", detail, "too_slow")])


def _error(refusal: Refusal) -> Exception:
    if refusal.trace:
        log.error("parser failed", trace=refusal.trace)
    return ERRORS[refusal.code](refusal.detail, faults=refusal.faults)
