"""Parses a model file of another library in a process of its own, and takes nothing from it but arrays and facts."""

import subprocess
import sys
import tempfile
from pathlib import Path

import structlog

from app.errors import ImportUnsupported, InvalidData
from app.faults import Fault
from app.ingest.protocol import REFUSED, Refusal
from app.ml.models.parsed_model import ParsedModel, read
from app.socket_child import bare

ERRORS = {error.code: error for error in (InvalidData, ImportUnsupported)}
SECONDS = 600
"""Limit on the time of the processor."""
LEAST_MEMORY, TIMES = 768 << 20, 64
"""Bytes of memory for any file, and for each byte of one: a damaged one soon needs more."""
log = structlog.get_logger(__name__)


def parse(path: Path, file_format: str, memory_bytes: int) -> ParsedModel:
    """Blocks until the process has ended. Raises InvalidData and ImportUnsupported."""
    memory_bytes = min(memory_bytes, LEAST_MEMORY + TIMES * path.stat().st_size)
    with tempfile.TemporaryFile() as result:
        arguments = file_format, path, result.fileno(), memory_bytes, SECONDS
        command = [sys.executable, "-m", "app.ingest.model_file_child", *map(str, arguments)]
        ended = subprocess.run(  # noqa: S603  our own module
            command,
            pass_fds=[result.fileno()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=bare(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"),
        )
        result.seek(0)
        content = result.read()
    if ended.returncode or not content:
        log.warning(
            "model_parser_died", returncode=ended.returncode, output=ended.stderr[-2000:].decode(errors="replace")
        )
        raise _died(memory_bytes)
    if content[:1] == REFUSED:
        raise _error(Refusal.model_validate_json(content[1:]))
    return read(content[1:])


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
