"""The child process: what a hostile file can do there, and what it cannot do here."""

import gzip
import io
import os
import signal
import tempfile
import threading

import numpy as np
import openpyxl
import psutil
import pyarrow as pa
import pytest

from app.base.errors import BodyTooLarge, InvalidData, NotReady, StorageFull
from app.ingest import data_sheets as sheets
from app.ingest import parser_processes as parser_module
from app.ingest.forked_parser import NICENESS
from app.ingest.parser_processes import Parser


@pytest.fixture(scope="module")
def parser():
    made = Parser(2)
    yield made
    made.close()


@pytest.fixture
def send(parser, order):
    def run(data, by=parser, **kwargs):
        with tempfile.TemporaryFile() as upload, tempfile.TemporaryFile() as chunks:
            upload.write(data)
            upload.flush()
            return by.parse(order(**kwargs), upload.fileno(), chunks.fileno())

    return run


def test_a_file_is_parsed_and_its_faults_come_back(send):
    assert send(b"a,b\n1,x\n").rows == 1
    with pytest.raises(InvalidData) as refused:
        send(b"a,b\n1\n")
    assert refused.value.faults[0].pointer == "/line/2/column/b"
    with pytest.raises(BodyTooLarge):
        send(gzip.compress(b"a,b\n" + b"1,2\n" * 100_000), unpacked_bytes=10_000)


def arrow_of_one_batch(rows):
    sink = io.BytesIO()
    table = pa.table({"a": np.zeros(rows)})
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_memory_ends_at_the_limit(send):
    bomb = arrow_of_one_batch(40_000_000)
    assert len(bomb) < 1 << 20
    with pytest.raises(InvalidData, match="memory") as refused:
        send(bomb, memory_bytes=128 << 20, max_rows=10**9)
    (fault,) = refused.value.faults
    assert fault.code == "too_much_memory"
    assert "Parquet" in fault.detail
    assert "VALIANT_PARSE_MEMORY_BYTES" in fault.detail
    assert send(arrow_of_one_batch(100_000), memory_bytes=128 << 20).rows == 100_000


def wide_csv(rows, columns, form="%d"):
    values = np.random.default_rng(0).integers(0, 256, (rows, columns)) / (1 if form == "%d" else 7)
    line = ",".join([form] * columns) + "\n"
    return (",".join(f"c{j}" for j in range(columns)) + "\n").encode() + b"".join(
        (line % tuple(row)).encode() for row in values.tolist()
    )


@pytest.mark.slow
def test_a_wide_file_takes_little_memory(send):
    """Arrow sets aside a block of memory per column of plain strings: 1.6 GB for these 3 MB."""
    parsed = send(wide_csv(1000, 800), memory_bytes=512 << 20)
    assert (parsed.rows, len(parsed.columns)) == (1000, 800)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns", "form"), [(2500, 10_000, "%d"), (6500, 2000, "%.5f")])
def test_large_wide_files_fit_the_default_limit(send, rows, columns, form):
    data = wide_csv(rows, columns, form)
    assert len(data) > 85_000_000
    parsed = send(data, memory_bytes=2 << 30, seconds=600, max_columns=10_000)
    assert (parsed.rows, len(parsed.columns)) == (rows, columns)


def test_a_workbook_of_two_cells_far_apart_ends_its_child_only(send):
    """Such a sheet has 17 billion cells."""
    workbook, sink = openpyxl.Workbook(), io.BytesIO()
    workbook.active["A1"], workbook.active["XFD1048576"] = "a", 1
    workbook.save(sink)
    with pytest.raises(InvalidData) as refused:
        send(sink.getvalue())
    assert [fault.code for fault in refused.value.faults] == ["too_much_memory"]


def test_time_ends_at_the_limit(send, order):
    slow = b'{"a": 1}\n' * 3_000_000
    with pytest.raises(InvalidData, match="longer") as refused:
        send(slow, seconds=1)
    assert [fault.code for fault in refused.value.faults] == ["too_slow"]


def test_a_full_disk_is_reported_to_be_one(send):
    noise = np.random.default_rng(0).normal(size=200_000)
    with pytest.raises(StorageFull):
        send(b"a\n" + "\n".join(map(str, noise)).encode(), file_bytes=1 << 16)


def test_a_child_that_dies_is_a_response_too(send):
    own = Parser(1)
    own.warm()
    (spare,) = own._spares
    spare.process.kill()
    spare.process.wait()
    assert send(b"a\n1\n", own).rows == 1
    stopped = own._spares[-1]
    os.kill(stopped.process.pid, signal.SIGSTOP)
    killer = threading.Timer(0.2, stopped.process.kill)
    killer.start()
    with pytest.raises(InvalidData, match="damaged"):
        send(b"a\n1\n", own)
    assert stopped not in own._spares
    own.close()


def test_a_frozen_parser_is_replaced_and_the_file_is_read(send):
    own = Parser(1, patience_seconds=0.5)
    own.warm()
    (spare,) = own._spares
    os.kill(spare.process.pid, signal.SIGSTOP)
    assert send(b"a\n1\n", own).rows == 1
    assert not spare.alive
    own.close()


def test_a_file_that_only_frozen_processes_could_read_is_no_bad_file(send, monkeypatch):
    own, start = Parser(1, patience_seconds=0.5), parser_module._start

    def start_stopped():
        child = start()
        os.kill(child.process.pid, signal.SIGSTOP)
        return child

    monkeypatch.setattr(parser_module, "_start", start_stopped)
    with pytest.raises(NotReady):
        send(b"a\n1\n", own)
    own.close()


def test_closing_ends_a_parser_that_reads_a_file(send):
    own = Parser(1)
    closer = threading.Timer(1.0, own.close)
    closer.start()
    with pytest.raises(InvalidData):
        send(b'{"a": 1}\n' * 3_000_000, own)
    assert own._active == set()


def test_parsers_are_nicer_than_the_service():
    child = parser_module._start()
    try:
        niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, 19)
        while psutil.Process(child.process.pid).nice() != niceness:
            assert child.alive  # it is starting
    finally:
        child.end()


def test_a_parser_forks_a_child_for_each_file_and_ends_with_its_last_failure(send):
    own = Parser(1)
    assert [send(b"a\n1\n", own).rows for _ in range(2)] == [1, 1]
    first, second = own._spares
    (thread,) = psutil.Process(second.process.pid).threads()
    assert thread.id == second.process.pid
    assert psutil.Process(second.process.pid).children() == []
    with pytest.raises(InvalidData, match="longer"):
        send(b'{"a": 1}\n' * 3_000_000, own, seconds=1)
    assert not second.alive
    assert own._spares == [first]
    own.close()
    assert not first.alive


def test_the_child_has_no_credentials(monkeypatch):
    monkeypatch.setenv("VALIANT_DATABASE_URL", "postgresql://SECRET@nowhere/x")
    child = parser_module._start()
    try:
        assert "VALIANT_DATABASE_URL" not in psutil.Process(child.process.pid).environ()
    finally:
        child.end()


def test_a_spare_waits_and_goes_with_its_parser(order):
    parser = Parser(1)
    parser.warm()
    (spare,) = parser._spares
    parser.warm()
    assert parser._spares == [spare]
    parser.close()
    assert not spare.alive
    parser.warm()
    assert parser._spares == []


def test_a_spare_ends_with_the_process_that_started_it():
    child = parser_module._start()
    child.channel.close()
    assert child.process.wait(30) == 0


def test_two_files_at_once(send):
    results, start = {}, threading.Barrier(3)

    def work(number):
        start.wait()
        results[number] = send(f"a\n{number}\n".encode()).columns[0].minimum

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: number for number in range(3)}


def test_every_column_is_compared_with_the_others(parse, monkeypatch):
    """B2.8: in rows from all over the file; identifiers and texts are left out."""
    monkeypatch.setattr(sheets, "CHUNKS", 3)
    x, noise = np.random.default_rng(0).uniform(size=(2, 3000)).round(6)
    lines = [f"{i},{a},{a > 0.5},{b},word {i} and more\n" for i, (a, b) in enumerate(zip(x, noise, strict=True))]
    parsed, _ = parse(("row,x,side,noise,text\n" + "".join(lines)).encode(), chunk_bytes=1 << 14)
    assert len(parsed.chunks) > 3
    found = {column.name: column.smoothness for column in parsed.columns}
    assert (found["row"], found["text"]) == (None, None)
    assert found["side"].value > 0.9
    assert found["noise"].lower < 0 < found["noise"].upper
    assert found["side"].n == 258
