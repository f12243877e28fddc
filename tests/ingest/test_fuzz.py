"""Damaged files of every format: read or refused, or the end of the process that reads them, which is a child."""

import io
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.schemas.datasets import FileFormat
from tests.ingest import parser_forks
from tests.ingest.parser_forks import READ, REFUSED, UNNAMED
from tests.ingest.workbooks import ods, xls, xlsx

WORKBOOKS = {FileFormat.XLSX: xlsx, FileFormat.XLS: xls, FileFormat.ODS: ods}
TABLE = pa.table({"a": np.arange(100.0), "b": [f"v{n % 7}" for n in range(100)], "c": [n % 2 == 0 for n in range(100)]})
ROOT = Path(__file__).parents[2]


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
    elif file_format is FileFormat.ARFF:
        sink.write(b"@relation r\n@attribute a real\n@attribute b {x, 'y z'}\n@data\n1,x\n{0 2.5, 1 'y z'}\n")
    elif file_format is FileFormat.SVMLIGHT:
        sink.write(b"1 qid:1 1:0.5 3:2 # a\n-1 qid:1 2:1e3\n")
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


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """`outcome(data, order)` in a child of its own: READ, REFUSED, UNNAMED, or minus the signal that ended it."""
    folder = tmp_path_factory.mktemp("parsed")
    command = [sys.executable, "-m", parser_forks.__name__, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forks:

        def parse(data, order):
            (folder / "upload").write_bytes(data)
            print(order.model_dump_json(), file=forks.stdin, flush=True)
            return int(forks.stdout.readline())

        yield parse


@pytest.mark.parametrize("file_format", list(FileFormat))
def test_damaged_files_are_read_or_refused(order, outcome, file_format):
    sent = order(file_format=file_format, memory_bytes=512 << 20, seconds=20)
    assert outcome(honest(file_format), sent) == READ
    outcomes = [outcome(data, sent) for data in mutants(file_format, 60)]
    assert REFUSED in outcomes
    assert UNNAMED not in outcomes
    assert -signal.SIGKILL not in outcomes
