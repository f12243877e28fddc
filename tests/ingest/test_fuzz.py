"""Damaged files of every format: read or refused, or the end of the process that reads them, which is a child."""

import io
import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.errors import ValiantError
from app.ingest import parsing_child
from app.schemas.datasets import FileFormat
from tests.ingest.workbooks import ods, xls, xlsx

WORKBOOKS = {FileFormat.XLSX: xlsx, FileFormat.XLS: xls, FileFormat.ODS: ods}
TABLE = pa.table({"a": np.arange(100.0), "b": [f"v{n % 7}" for n in range(100)], "c": [n % 2 == 0 for n in range(100)]})
READ, REFUSED, UNNAMED = 0, 1, 2


def honest(file_format):
    sink = io.BytesIO()
    if file_format is FileFormat.PARQUET:
        pq.write_table(TABLE, sink)
    elif file_format is FileFormat.ARROW:
        with pa.ipc.new_file(sink, TABLE.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(TABLE)
    elif file_format is FileFormat.NPY:
        np.save(sink, np.arange(20.0).reshape(10, 2))
    elif file_format in WORKBOOKS:
        sink.write(WORKBOOKS[file_format](A=[["a", "b"], [1, "x"], [2.5, "y"]]))
    elif file_format is FileFormat.CSV:
        sink.write(b'a,b\n1,"x\ny"\n2,2024-01-31\n' * 3)
    elif file_format is FileFormat.JSON:
        sink.write(b'[{"a": 1, "b": "x"},\n{"a": 2.5, "b": null}]')
    else:
        sink.write(b'{"a": 1, "b": "x"}\n{"a": 2.5, "b": null}\n')
    return sink.getvalue()


def mutants(file_format, count):
    """Noise behind the first bytes, bytes changed, and the end cut off."""
    rng = np.random.default_rng(7)
    whole = np.frombuffer(honest(file_format), np.uint8)
    for number in range(count):
        data = whole.copy()
        if number % 4 == 0:
            data = np.concatenate([data[:8], rng.integers(0, 256, 300, dtype=np.uint8)])
        elif number % 4 == 1:
            data = data[: rng.integers(1, len(data))]
        else:
            data[rng.integers(0, len(data), number % 4)] = rng.integers(0, 256, number % 4, dtype=np.uint8)
        yield data.tobytes()


def outcome(data, order, tmp_path):
    """In a child of its own, under its limits: READ, REFUSED, UNNAMED, or minus the signal that ended it."""
    (tmp_path / "upload").write_bytes(data)
    pid = os.fork()
    if pid == 0:
        try:
            parsing_child._limit(order)
            with (tmp_path / "upload").open("rb") as upload, (tmp_path / "chunks").open("w+b") as chunks:
                parsing_child.parse(order, upload.fileno(), chunks)
            os._exit(READ)
        except (ValiantError, MemoryError):
            os._exit(REFUSED)
        finally:
            os._exit(UNNAMED)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("file_format", list(FileFormat))
def test_damaged_files_are_read_or_refused(order, tmp_path, file_format):
    sent = order(file_format=file_format, memory_bytes=512 << 20, seconds=20)
    assert outcome(honest(file_format), sent, tmp_path) == READ
    outcomes = [outcome(data, sent, tmp_path) for data in mutants(file_format, 60)]
    assert REFUSED in outcomes
    assert UNNAMED not in outcomes
    assert -signal.SIGKILL not in outcomes
