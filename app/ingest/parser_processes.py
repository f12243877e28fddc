"""The service's side of parsing uploads: each has a child process, forked from a parser that has its imports.

A parser costs half a second to start, so one always waits. Whoever takes a parser gives it back, and ends it where its
child was too slow or died.
"""

import signal
import threading

import structlog
from pydantic import ValidationError

from app.errors import BodyTooLarge, InvalidData, StorageFull
from app.faults import Fault
from app.ingest.forked_parser import request
from app.ingest.protocol import Order, Parsed, ParseResponse, Refusal, out_of_memory
from app.socket_child import SocketChild, start

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
    def __init__(self, at_once: int) -> None:
        self._turn = threading.BoundedSemaphore(at_once)
        self._lock = threading.Lock()
        self._spares: list[SocketChild] = []
        self._closed = False

    def warm(self) -> None:
        """See that a spare waits."""
        with self._lock:
            if not self._spares and not self._closed:
                self._spares.append(_start())

    def close(self) -> None:
        with self._lock:
            spares, self._spares, self._closed = self._spares, [], True
        for spare in spares:
            spare.end()

    def parse(self, order: Order, upload: int, chunks: int) -> Parsed:
        """Blocks until the child has responded. Raises InvalidData, BodyTooLarge or StorageFull."""
        with self._turn:
            parser, whole = self._take(), False
            try:
                response, whole = _request(parser, order, upload, chunks)
            finally:
                self._give_back(parser, whole=whole)
        if response.parsed is None:
            raise _error(response.refusal or Refusal(code=InvalidData.code, detail="The file could not be read."))
        return response.parsed

    def _take(self) -> SocketChild:
        with self._lock:
            parser = self._spares.pop() if self._spares else None
        if parser is None or not parser.alive:
            parser = _start()
        self.warm()
        return parser

    def _give_back(self, parser: SocketChild, *, whole: bool) -> None:
        with self._lock:
            kept = whole and not self._closed and len(self._spares) < SPARES
            if kept:
                self._spares.append(parser)
        if not kept:
            parser.end()


def _start() -> SocketChild:
    return start("app.ingest.parsing_child", **_ENVIRONMENT)


def _request(parser: SocketChild, order: Order, upload: int, chunks: int) -> tuple[ParseResponse, bool]:
    """The response, and True if the parser may serve another file."""
    try:
        received, status = request(parser, order.model_dump_json().encode(), (upload, chunks), order.seconds)
    except TimeoutError:
        return ParseResponse(refusal=_too_slow(order)), False
    try:
        return ParseResponse.model_validate_json(received), status == 0
    except ValidationError:  # nothing, or half a message
        log.warning("parser died", returncode=status)
        late = status == -signal.SIGXCPU
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
