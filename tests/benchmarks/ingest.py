"""Reading of files beside polars and pyarrow: MB/s of one core, and of the clock.

python -m tests.benchmarks.ingest [megabytes ...=1 50]

Each file is read in a fork, as the service does: parsed, typed, written as chunks, described by its data sheets. The
rivals read it with one thread into typed columns (of German numbers, into text), and write it as Arrow IPC; they
neither check nor describe it. All read in turns, and the medians of three runs are printed.
"""

import io
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
import pyarrow.parquet as pq

from app.ingest.parsing_child import parse
from app.ingest.protocol import Order
from app.ingest.uploaded_file import Limits

RUNS = 3
WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")
LIMITS = Limits(10**9, 10**5, 1 << 40, 4 << 20)


def numbers(n, rng):
    head = ",".join(f"x{number}" for number in range(10)) + ",a,b,c,d"
    parts = zip(rng.normal(size=(n, 10)).tolist(), rng.integers(0, 1000, (n, 4)).tolist(), strict=True)
    return head, (",".join(f"{v:.6f}" for v in x) + "," + ",".join(map(str, k)) for x, k in parts)


def mixed(n, rng):
    parts = enumerate(zip(rng.integers(18, 90, n).tolist(), rng.normal(4e4, 1e4, n).tolist(), strict=True))
    lines = (
        f"{i},{a},{x!r},{('basic', 'pro', 'NA')[i % 3]},2024-01-{1 + i % 28:02d},{i % 2 == 0}" for i, (a, x) in parts
    )
    return "id,age,income,plan,when,active", lines


def texts(n, rng):
    parts = zip(rng.integers(0, 8, (n, 8)).tolist(), rng.normal(size=n).tolist(), strict=True)
    lines = (f"{' '.join(WORDS[k] for k in w[:6])},{WORDS[w[6]]},{WORDS[w[7]]},{x:.3f}" for w, x in parts)
    return "comment,city,size,score", lines


def dates(n, rng):
    times = (np.datetime64("2020-01-01T00:00:00") + rng.integers(0, 10**8, n)).astype(str).tolist()
    days = rng.integers(1, 28, n).tolist()
    return "time,day,x", (f"{t},{d:02}/{1 + d % 12:02}/{2000 + d},{d}.5" for t, d in zip(times, days, strict=True))


def german(n, rng):
    swap = str.maketrans(",.", ".,")
    lines = (";".join(f"{v:,.2f}".translate(swap) for v in row) for row in rng.normal(0, 1e4, (n, 6)).tolist())
    return "a;b;c;d;e;f", lines


def quoted(n, rng):
    parts = zip(rng.integers(0, 8, (n, 3)).tolist(), rng.normal(size=(n, 3)).tolist(), strict=True)
    lines = (f'"{WORDS[a]}, {WORDS[b]}","{WORDS[c]}",' + ",".join(f'"{v:.4f}"' for v in x) for (a, b, c), x in parts)
    return '"text","city","a","b","c"', lines


TABLES = (numbers, mixed, texts, dates, german, quoted)


def write_files(folder, megabytes):
    """Files of about this size: CSV of every table, and one as Parquet and as JSON lines."""
    for table in TABLES:
        probe = "\n".join(table(1000, np.random.default_rng(0))[1])
        head, lines = table(int(1000 * megabytes * 2**20 / len(probe)), np.random.default_rng(0))
        with (folder / f"{table.__name__}.csv").open("w") as file:
            file.writelines(f"{line}\n" for line in (head, *lines))
        yield folder / f"{table.__name__}.csv"
    rows = arrow_csv.read_csv(folder / "numbers.csv")
    pq.write_table(rows, folder / "numbers.parquet")
    yield folder / "numbers.parquet"
    with (folder / "numbers.jsonl").open("w") as file:
        file.writelines(json.dumps(row) + "\n" for batch in rows.to_batches(10_000) for row in batch.to_pylist())
    yield folder / "numbers.jsonl"


def ours(path):
    order = Order(
        name=path.name, file_format=None, limits=LIMITS, memory_bytes=1 << 32, seconds=3600, file_bytes=1 << 40
    )
    with path.open("rb") as file, tempfile.TemporaryFile(dir=path.parent) as chunks:
        return parse(order, file.fileno(), chunks).rows


def with_polars(path):
    import polars as pl

    read = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson}[path.suffix]
    options = {"try_parse_dates": True, "separator": _delimiter(path)} if path.suffix == ".csv" else {}
    table = read(path, **options)
    table.write_ipc(io.BytesIO(), compression="zstd")
    return len(table)


def with_pyarrow(path):
    parsing = arrow_csv.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True)
    read = {".parquet": pq.read_table, ".jsonl": arrow_json.read_json}.get(path.suffix)
    table = arrow_csv.read_csv(path, parse_options=parsing) if read is None else read(path)
    with pa.ipc.new_stream(
        pa.BufferOutputStream(), table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as out:
        out.write_table(table)
    return len(table)


def _delimiter(path):
    return ";" if path.stem == "german" else ","


READERS = {"valiant": ours, "polars": with_polars, "pyarrow": with_pyarrow}


def measured(read, path, small):
    """Seconds of the processor and of the clock in a fork, and the rows. small: read first, for what is imported."""
    receiving, sending = os.pipe()
    if not (pid := os.fork()):
        os.environ["POLARS_MAX_THREADS"] = "1"
        pa.set_cpu_count(1)
        read(small)
        begun = time.process_time(), time.perf_counter()
        rows = read(path)
        spent = time.process_time() - begun[0], time.perf_counter() - begun[1], rows
        os.write(sending, json.dumps(spent).encode())
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as result:
        spent = json.loads(result.read())
    os.waitpid(pid, 0)
    return spent


def main(sizes):
    with tempfile.TemporaryDirectory(prefix="valiant-bench-") as root:
        small = {path.name: path for path in write_files(Path(root), 0.05)}
        for megabytes in sizes:
            with tempfile.TemporaryDirectory(dir=root) as folder:
                for path in write_files(Path(folder), megabytes):
                    runs = {name: [] for name in READERS}
                    for _ in range(RUNS):
                        for name, read in READERS.items():
                            runs[name].append(measured(read, path, small[path.name]))
                    assert len({run[2] for each in runs.values() for run in each}) == 1, "the readers disagree on rows"
                    size = path.stat().st_size / 2**20
                    rates = (
                        f"{name} {size / statistics.median(run[0] for run in each):6.1f} MB/s a core, "
                        f"{statistics.median(run[1] for run in each):6.2f} s"
                        for name, each in runs.items()
                    )
                    print(f"{path.name:16} {size:6.1f} MB  {' | '.join(rates)}", flush=True)


if __name__ == "__main__":
    main([float(size) for size in sys.argv[1:]] or [1, 50])
