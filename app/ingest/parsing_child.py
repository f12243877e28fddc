"""A process that parses uploads, each in a fork of its own under its limits."""

import os
import resource
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from app.base.errors import NO_ROOM, InvalidData, StorageFull, ValiantError
from app.ingest import arff, arrow_and_parquet, npy, svmlight
from app.ingest import csv_reader as delimited
from app.ingest import excel_workbook as workbook
from app.ingest import json_lines as jsonl
from app.ingest.arrow_types import Settled
from app.ingest.chunks import ChunkFile
from app.ingest.csv_single_pass import Mispredicted
from app.ingest.data_sheets import compared, sheets
from app.ingest.file_format_detection import recognise
from app.ingest.forked_parser import fork_for_each_file
from app.ingest.kind_overrides import recast
from app.ingest.protocol import Order, Parsed, ParseResponse, Refusal, out_of_memory
from app.ingest.reader_result import Reading
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits, Source
from app.processes.process_memory import without_optional
from app.schemas.datasets import FileFormat, FileReading

STATM = Path("/proc/self/statm")

Reader = Callable[[Source, Limits, ReadOptions], Reading]
READERS: dict[FileFormat, Reader] = {
    FileFormat.CSV: delimited.read,
    FileFormat.JSONL: jsonl.read,
    FileFormat.JSON: jsonl.read,
    FileFormat.PARQUET: arrow_and_parquet.read_parquet,
    FileFormat.ARROW: arrow_and_parquet.read_arrow,
    FileFormat.NPY: npy.read,
    FileFormat.ARFF: arff.read,
    FileFormat.SVMLIGHT: svmlight.read,
    FileFormat.XLSX: workbook.read,
    FileFormat.XLS: workbook.read,
    FileFormat.ODS: workbook.read,
}
QUICK_READERS: dict[FileFormat, Reader] = {FileFormat.CSV: delimited.read_in_one_pass}
"""Readers of plain files that may give up, when the one above reads the file."""
CELLS = {FileFormat.CSV, FileFormat.ARFF, FileFormat.XLSX, FileFormat.XLS, FileFormat.ODS}
"""Formats of text cells, whose readers read them by the given kinds."""


def main() -> None:
    without_optional()  # half of the time of its start, for what it has no use for
    fork_for_each_file(_serve)


def _serve(message: bytes, files: Sequence[int]) -> bytes:
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    order = Order.model_validate_json(message)
    _limit(order)
    return _response(order, *files).model_dump_json().encode()


def _limit(order: Order) -> None:
    limits = {
        resource.RLIMIT_FSIZE: order.file_bytes,
        resource.RLIMIT_CORE: 0,
    }
    if STATM.exists():  # Linux; elsewhere nobody would heed the limit
        mapped = int(STATM.read_text("ascii").split()[0]) * resource.getpagesize()
        limits[resource.RLIMIT_AS] = mapped + order.memory_bytes  # beyond interpreter and libraries
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (order.seconds, order.seconds + 1))  # ends it by a signal of its own


def _response(order: Order, upload: int, output: int) -> ParseResponse:
    try:
        with os.fdopen(output, "r+b") as chunks:
            return ParseResponse(parsed=parse(order, upload, chunks))
    except ValiantError as error:
        return ParseResponse(refusal=Refusal(code=error.code, detail=error.detail, faults=list(error.faults)))
    except MemoryError:
        return ParseResponse(refusal=out_of_memory(order))
    except OSError as error:
        if error.errno in NO_ROOM:
            return ParseResponse(refusal=Refusal(code=StorageFull.code, detail=StorageFull.title))
        return _unexpected()
    except Exception:  # noqa: BLE001  a file nobody thought of must not look like a fault of the service
        return _unexpected()


def _unexpected() -> ParseResponse:
    refusal = Refusal(code=InvalidData.code, detail="The file could not be read.", trace=traceback.format_exc())
    return ParseResponse(refusal=refusal)


def parse(order: Order, upload: int, chunks: BinaryIO) -> Parsed:
    """Read the upload, write its chunks, describe its columns."""
    source = Source.of(upload, order.limits.unpacked_bytes)
    if not source.size:
        raise InvalidData("The file is empty: upload one that has rows.")
    file_format, source, warnings = recognise(source, order.options, order.name, order.file_format)
    written = None
    if file_format in QUICK_READERS:
        with suppress(Mispredicted):
            written = _write(QUICK_READERS[file_format], file_format, source, order, chunks)
    reading, settled, file = written or _write(READERS[file_format], file_format, source, order, chunks)
    columns = compared(list(sheets(settled, file)), file)
    return Parsed(
        reading=_how(file_format, reading, order.options),
        rows=settled.rows,
        columns=columns,
        warnings=[*warnings, *reading.warnings],
        chunks=file.places,
    )


def _write(
    read: Reader, file_format: FileFormat, source: Source, order: Order, chunks: BinaryIO
) -> tuple[Reading, Settled, ChunkFile]:
    """The table, with its chunks at the beginning of the file. Raises Mispredicted where the reader gives up."""
    reading = read(source, order.limits, order.options)
    order.options.check_columns(reading.names)
    if file_format not in CELLS:
        reading = recast(reading, order.options)
    settled = Settled(reading, order.limits)
    file = ChunkFile(chunks)
    file.write(settled, order.limits.chunk_bytes)
    return reading, settled, file


def _how(file_format: FileFormat, reading: Reading, options: ReadOptions) -> FileReading:
    return FileReading(
        file_format=file_format,
        delimiter=reading.delimiter,
        encoding=reading.encoding,
        header=reading.header,
        missing=options.missing,
        decimal=reading.decimal(),
        comment=options.comment,
        quoted=reading.quoted,
    )


if __name__ == "__main__":
    main()
