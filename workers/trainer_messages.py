"""Messages between a supervisor and its trainer, written by one side and read by the other."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import pyarrow as pa

from app.base.errors import CorruptModel
from app.base.wire import Wire
from app.ingest.model_file_parser import parse
from app.ml.contract.columns import TableColumn
from app.ml.contract.notation import CellTexts, Notation, OtherNotation
from app.ml.contract.stage_clock import timed
from app.ml.evaluation.report import Report
from app.ml.kinds.job import Inputs, Loaded, Outcome, Sheet, Source, Trained, UploadedFile, Version, WrittenTable
from app.ml.models import seen_rows
from app.ml.models.header import read_header
from app.ml.models.model import decode, digest
from app.ml.monitoring import reference as references
from app.ml.operations import kinds
from app.processes.processor_cores import Cores
from workers import trainer_frames as frames
from workers.journal_frames import StoredJournal, read_unit
from workers.mapped_dataset import spooled, spooled_rows
from workers.table_writer import write_table

BLOB_BYTES = 4 << 20


class Bytes(NamedTuple):
    """The parts of a model that will follow."""

    model: str
    version: int
    digest: str


class Order(NamedTuple):
    """The first frame: what to do, on what, within which memory and on which cores."""

    kind: str
    request: dict[str, Any]
    request_id: str | None
    datasets: Sequence[Sheet]
    models: Sequence[Bytes]
    memory_bytes: int
    cores: Cores = Cores("", 1)
    """Those that it may take besides its own while no other job needs them."""
    stored: int = 0
    """Chunks of the result that earlier attempts have written."""
    files: Sequence[str] = ()
    """Digests of uploaded files."""
    spent_seconds: float = 0.0
    """Time since the first attempt began."""

    def written(self) -> bytes:
        return json.dumps(self, default=Wire.model_dump).encode()

    @classmethod
    def read(cls, payload: bytes) -> Self:
        kind, request, request_id, sheets, models, memory_bytes, cores, *limits = json.loads(payload)
        datasets = [Sheet(d, rows, tuple(map(_column, columns)), reading) for d, rows, columns, reading in sheets]
        blobs = [Bytes(*model) for model in models]
        return cls(kind, request, request_id, datasets, blobs, memory_bytes, Cores(*cores), *limits)


def _column(values: Sequence[Any]) -> TableColumn:
    column = TableColumn(*values)
    return column._replace(
        notation=column.notation and Notation.model_validate(column.notation),
        other_notation=column.other_notation and OtherNotation.model_validate(column.other_notation),
        cell_texts=column.cell_texts and CellTexts.model_validate(column.cell_texts),
        levels=tuple(column.levels),
        markers=tuple(column.markers),
    )


def read_inputs(order: Order, inlet: IO[bytes]) -> Inputs:
    """Models are read now, datasets when they are requested. Raises CorruptModel."""
    models = tuple(_model(pointer, inlet) for pointer in order.models)
    files = tuple(_file(digest, inlet, order.memory_bytes) for digest in order.files)
    units = [read_unit(payload) for payload in _chunks(inlet)]
    written = _tables(inlet) if order.stored else iter(())
    sources = tuple(Source(sheet, _tables(inlet), spooled, spooled_rows) for sheet in order.datasets)
    journal = StoredJournal(units, order.spent_seconds)
    return Inputs(sources, models, files, order.memory_bytes, written=written, journal=journal)


def _model(expected: Bytes, inlet: IO[bytes]) -> Loaded:
    blob = b"".join(_chunks(inlet))
    if digest(blob) != expected.digest:
        raise CorruptModel("The stored bytes do not have the digest they were stored under.")
    whose = f"Version {expected.version} of {expected.model}"
    version = Version(*expected, read_header(blob, whose))
    seen, reference = (b"".join(_chunks(inlet)) for _ in (frames.SEEN, frames.REFERENCE))
    return Loaded(version, decode(blob, whose), seen_rows.decode(seen), references.decode(reference))


def _file(stated: str, inlet: IO[bytes], memory_bytes: int) -> UploadedFile:
    """The file lies where temporary files go, and is gone with the trainer's last reference to it."""
    file, hasher = tempfile.NamedTemporaryFile(), hashlib.sha256()  # noqa: SIM115  the function below keeps it
    for chunk in _chunks(inlet):
        file.write(chunk)
        hasher.update(chunk)
    file.flush()
    if f"sha256:{hasher.hexdigest()}" != stated:
        raise CorruptModel("The stored file does not have the digest it was stored under.")
    return UploadedFile(
        stated,
        content=lambda: Path(file.name).read_bytes(),
        parse=lambda file_format, options: parse(Path(file.name), file_format, memory_bytes, options),
    )


def _tables(inlet: IO[bytes]) -> Iterator[pa.Table]:
    payloads = _chunks(inlet)
    while True:
        with timed("reading"):
            if (payload := next(payloads, None)) is None:
                return
            with pa.ipc.open_stream(payload) as stream:
                table = stream.read_all()
        yield table


def _chunks(inlet: IO[bytes]) -> Iterator[bytes]:
    while (frame := frames.read(inlet)).kind != frames.END:
        yield frame.payload


def write_outcome(
    outlet: IO[bytes], outcome: Outcome, stored: int = 0, finish: Callable[[], object] = lambda: None
) -> None:
    """stored: chunks of the table that are written already. finish: called before the last frame."""
    trained, result = outcome.trained, outcome.result
    written = outcome.table and write_table(outlet, outcome.table, stored)
    head = {
        "trained": trained and {"report": trained.report.model_dump(mode="json"), "golden": trained.golden},
        "result": result and result.model_dump(mode="json"),
        "written": written and written.model_dump(mode="json"),
    }
    frames.write(outlet, frames.RESULT, json.dumps(head).encode())
    if trained:
        _write_chunks(outlet, frames.BLOB, memoryview(trained.blob))
        _write_chunks(outlet, frames.SEEN, memoryview(trained.seen))
        _write_chunks(outlet, frames.REFERENCE, memoryview(trained.reference))
    finish()
    frames.write(outlet, frames.END)


def _write_chunks(outlet: IO[bytes], kind: bytes, content: memoryview) -> None:
    for start in range(0, len(content), BLOB_BYTES):
        frames.write(outlet, kind, content[start : start + BLOB_BYTES])


def read_outcome(kind: str, received: Mapping[bytes, Sequence[bytes]]) -> Outcome:
    """From the payloads by kind of frame."""
    head = json.loads(received[frames.RESULT][0])
    trained, result = head["trained"], kinds()[kind].kind.result
    if trained is not None:
        parts = (frames.BLOB, frames.SEEN, frames.REFERENCE)
        blob, seen, reference = (b"".join(received.get(part, ())) for part in parts)
        trained = Trained(blob, Report.model_validate(trained["report"]), trained["golden"], seen, reference)
    job_result = None if head["result"] is None or result is None else result.model_validate(head["result"])
    written = head["written"] and WrittenTable.model_validate(head["written"])
    return Outcome(trained, job_result, written=written)
