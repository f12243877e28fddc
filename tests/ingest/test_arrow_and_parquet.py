import datetime as dt
import io
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.base.errors import InvalidData

DAY = dt.date(2024, 2, 29)
TABLE = pa.table(
    {
        "small": pa.array([1, None, 3], pa.int8()),
        "large": pa.array([2**63 - 1, 0, None], pa.int64()),
        "unsigned": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "half": pa.array(np.array([1.5, 2, 3], np.float16)),
        "float": pa.array([1.5, float("nan"), float("-inf")]),
        "decimal": pa.array([Decimal("1.25"), None, Decimal("-3.00")]),
        "flag": pa.array([True, None, False]),
        "text": pa.array(["é", None, "NA"], pa.large_string()),
        "level": pa.array(["x", "y", "x"]).dictionary_encode(),
        "day": pa.array([DAY, None, DAY], pa.date32()),
        "naive": pa.array([10**15 + 1, None, 0], pa.timestamp("ns")),
        "zoned": pa.array([0, None, 0], pa.timestamp("s", "Europe/Berlin")),
        "clock": pa.array([dt.time(12, 30), None, dt.time(0)], pa.time32("s")),
        "nothing": pa.nulls(3),
    }
)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def as_parquet(table):
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def as_arrow(table, kind=pa.ipc.new_file, **options):
    sink = io.BytesIO()
    with kind(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


WRITERS = {
    "parquet": as_parquet,
    "arrow file": as_arrow,
    "arrow stream": lambda table: as_arrow(table, pa.ipc.new_stream),
    "arrow packed": lambda table: as_arrow(table, compression="lz4"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_every_flat_type_finds_its_kind(parse, writer):
    parsed, found = parse(WRITERS[writer](TABLE))
    assert parsed.reading.file_format == writer.split()[0]
    assert found.column("small").to_pylist() == [1, None, 3]
    assert found.column("large").to_pylist() == [2**63 - 1, 0, None]
    assert found.column("unsigned").to_pylist() == [str(2**64 - 1), "0", None]
    assert found.column("float").to_pylist() == [1.5, None, None]
    assert found.column("half").to_pylist() == [1.5, 2.0, 3.0]
    assert found.column("decimal").to_pylist() == [1.25, None, -3.0]
    assert found.column("flag").to_pylist() == [True, None, False]
    assert found.column("text").to_pylist() == ["é", None, "NA"]
    assert found.column("level").to_pylist() == ["x", "y", "x"]
    assert found.column("day")[0].as_py() == dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
    assert found.column("naive")[0].as_py() == EPOCH + dt.timedelta(microseconds=10**12)
    assert found.column("zoned")[0].as_py() == EPOCH
    assert [v and v[:8] for v in found.column("clock").to_pylist()] == ["12:30:00", None, "00:00:00"]
    assert found.column("nothing").null_count == 3
    kinds = {c.name: c.kind for c in parsed.columns}
    assert kinds.items() >= {"nothing": "numeric", "flag": "boolean", "day": "datetime", "clock": "categorical"}.items()
    assert "1 infinite values" in next(c for c in parsed.columns if c.name == "float").warnings[0]


@pytest.mark.parametrize("writer", WRITERS)
def test_nested_and_raw_columns_are_named(faults, writer):
    table = pa.table({"ok": [1], "a/b": [[1]], "raw": [[b"x"]], "map": [{"x": 1}]})
    expected = {"/column/a~1b": "column_type", "/column/raw": "column_type", "/column/map": "column_type"}
    assert faults(WRITERS[writer](table)) == expected


def test_names_are_checked(faults):
    table = pa.table([[1], [2], [3]], ["x", "x", " "])
    assert faults(as_arrow(table)) == {"/column/x": "duplicate_column", "/column/3": "unnamed_column"}


def test_nul_within_a_string_is_named(faults):
    table = pa.table({"a": ["x", "y", "SECRET\0"]})
    assert faults(as_arrow(table)) == {"/row/3/column/a": "nul_character"}


def test_distant_times_are_missing_and_too_distant_ones_refused(parse, faults):
    far = pa.table({"t": pa.array([0, 10**12], pa.timestamp("s"))})
    parsed, table = parse(as_arrow(far))
    assert table.column("t").to_pylist() == [EPOCH, None]
    assert "outside the years" in parsed.columns[0].warnings[0]
    assert faults(as_arrow(pa.table({"t": pa.array([2**62], pa.timestamp("s"))}))) == {"/column/t": "time_range"}


@pytest.mark.parametrize("writer", WRITERS)
def test_rows_are_counted(parse, writer):
    data = WRITERS[writer](pa.table({"a": range(100)}))
    assert parse(data, max_rows=100)[0].rows == 100
    with pytest.raises(InvalidData, match="rows"):
        parse(data, max_rows=99)


def test_large_batches_become_several_chunks(parse):
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=300_000), "b": [f"{n:x}" for n in range(300_000)]})
    parsed, found = parse(as_arrow(table))
    assert found.equals(table)
    assert len(parsed.chunks) > 4
    assert max(place.length for place in parsed.chunks) < 1.3 * (1 << 20)


@pytest.mark.parametrize("writer", WRITERS)
def test_no_rows_and_cut_files_are_refused(parse, writer):
    with pytest.raises(InvalidData, match="no rows"):
        parse(WRITERS[writer](pa.table({"a": pa.array([], pa.int64())})))
    whole = WRITERS[writer](pa.table({"a": range(1000)}))
    for cut in (8, len(whole) // 2):
        with pytest.raises(InvalidData):
            parse(whole[:cut])
    with pytest.raises(InvalidData, match="no columns"):
        parse(WRITERS[writer](pa.table({})))
