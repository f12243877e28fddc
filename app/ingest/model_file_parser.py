"""Parses a model file of another library in a process of its own, and takes nothing from it but arrays and facts."""

import json
import os
from pathlib import Path
from typing import Self

import structlog

from app.base.errors import ImportUnsupported, InvalidData
from app.base.faults import Fault
from app.ingest.forked_parser import Response, request, retry_frozen, start_parser
from app.ingest.protocol import REFUSED, Refusal
from app.ml.contract.model_file_options import ALL, ModelFileOptions
from app.ml.models.parsed_model import ParsedModel, read
from app.processes.liveness import PATIENCE_SECONDS, Frozen
from app.processes.socket_child import SocketChild

ERRORS = {error.code: error for error in (InvalidData, ImportUnsupported)}
SECONDS = 600
"""Limit on the time of the processor."""
WAIT_SECONDS = 4 * SECONDS
"""Longest wait for a file, on a machine that is busy with other things."""
LEAST_MEMORY, TIMES = 768 << 20, 64
"""Bytes of memory for any file, and for each byte of one: a damaged one soon needs more."""
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
log = structlog.get_logger(__name__)


class ModelFileParser:
    """Parses files in forks of one process, which starts with the first of them and ends with the `with` block."""

    def __init__(self, memory_bytes: int, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """patience_seconds: time in which the fork computes something, or is frozen and replaced."""
        self._memory_bytes, self._patience_seconds = memory_bytes, patience_seconds
        self._process: SocketChild | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None

    def parse(self, path: Path, file_format: str, options: ModelFileOptions = ALL) -> ParsedModel:
        """Blocks until the fork has ended.

        Raises InvalidData and ImportUnsupported, and NotReady where even another process is frozen.
        """
        memory_bytes = min(self._memory_bytes, LEAST_MEMORY + TIMES * path.stat().st_size)
        stated = json.dumps(options, separators=(",", ":")).encode()
        order = b"%s %d %d %s %s" % (file_format.encode(), memory_bytes, SECONDS, stated, os.fsencode(path))
        content, status = retry_frozen(lambda: self._attempt(order, memory_bytes))
        if status is None:  # it may yet send one, which would be that of the next file
            self.__exit__()
        if status or not content:
            raise _died(memory_bytes)
        if content[:1] == REFUSED:
            raise _error(Refusal.model_validate_json(content[1:]))
        return read(content[1:])

    def _attempt(self, order: bytes, memory_bytes: int) -> Response:
        """Raises Frozen, and InvalidData for a file that takes too long."""
        if self._process is None or not self._process.alive:
            self._process = _start()
        try:
            return request(self._process, order, (), seconds=WAIT_SECONDS, patience_seconds=self._patience_seconds)
        except TimeoutError as error:
            self.__exit__()
            if isinstance(error, Frozen):
                raise
            raise _died(memory_bytes) from None


def _start() -> SocketChild:
    return start_parser("app.ingest.model_file_child", **_ENVIRONMENT)


def parse(path: Path, file_format: str, memory_bytes: int, options: ModelFileOptions = ALL) -> ParsedModel:
    """A single file, as by `ModelFileParser`."""
    with ModelFileParser(memory_bytes) as parser:
        return parser.parse(path, file_format, options)


def _died(memory_bytes: int) -> InvalidData:
    detail = (
        f"Its parser needed more than {memory_bytes >> 20} MiB of memory or {SECONDS} seconds, or crashed: the file is "
        "damaged, or too large for VALIANT_JOB_MEMORY_BYTES."
    )
    return InvalidData(f"The file cannot be read. {detail}", faults=[Fault("", detail, "damaged_file")])


def _error(refusal: Refusal) -> Exception:
    if refusal.trace:
        log.error("model_parser_failed", trace=refusal.trace)
    return ERRORS[refusal.code](refusal.detail, faults=refusal.faults)
