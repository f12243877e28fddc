"""Public tables that others have written, through the reader of uploads, beside DuckDB's and openpyxl's reading.

    pip install duckdb
    python tests/benchmarks/public_tables.py FOLDER [--list KIND …]

FOLDER has one folder for each project whose test files are read, such as copies of the folders of data in the
repositories of DuckDB, readr, readxl, calamine, Frictionless and CleverCSV; larger files than 5 MB are left out.
A file is read alike if the columns, their names and the values of all rows up to the 1,000th are the same; where the
rival refuses or has no reader, its reading counts as none. A refusal is clear if it names a place or a remedy. --list
names the files of a kind, such as `otherwise`, with the first difference or the refusal.
"""

import argparse
import datetime as dt
import json
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl
import pyarrow as pa

from app.base.errors import ValiantError
from app.ingest.parser_processes import Parser
from app.ingest.protocol import Order, Parsed
from app.ingest.uploaded_file import Limits
from app.schemas.datasets import FileFormat

try:
    import duckdb
except ImportError:
    raise SystemExit("The benchmark compares with DuckDB: pip install duckdb") from None

MAX_BYTES, MAX_ROWS, MAX_CELLS = 5_000_000, 1000, 1_000_000
READERS = {
    ".csv": "read_csv", ".tsv": "read_csv", ".txt": "read_csv", ".log": "read_csv", ".parquet": "read_parquet",
    ".parq": "read_parquet", ".json": "read_json", ".jsonl": "read_json", ".ndjson": "read_json",
}  # fmt: skip
"""DuckDB's function for a file, by the end of its name."""
SKIPPED = {"", ".md", ".py", ".R", ".r", ".Rmd", ".ipynb", ".yaml", ".sql", ".list", ".files", ".pdf", ".png"}
TRUTH_WORDS = {"yes": "true", "y": "true", "t": "true", "no": "false", "n": "false", "f": "false"}
WITHOUT_REASON = "The file could not be read."
REMEDY = re.compile(
    r"\b(?:give|write|save|export|upload|send|choose|pack|compress|unpack|raise|put|reduce|quote)\b", re.IGNORECASE
)
MARKERS = {"", "na", "n/a", "nan", "null", "none", "-", "?", "nil", "inf", "-inf", "infinity"}
KINDS = (
    "alike", "otherwise, with a remark", "otherwise, without a remark", "read, no rival", "refused clearly",
    "refused unclearly", "server error",
)  # fmt: skip


class Table(NamedTuple):
    names: list[str]
    columns: list[list[Any]]
    rows: int
    warned: frozenset[str] = frozenset()
    """Columns with a remark, of which a cell may be missing that the rival keeps as text."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--list", nargs="*", default=[], help="kinds of results whose files are named")
    chosen = arguments.parse_args()
    duckdb.sql("set threads = 1; set memory_limit = '1GB'")
    counts: dict[str, Counter[str]] = {}
    parser = Parser(1)
    try:
        for project in sorted(path for path in chosen.folder.iterdir() if path.is_dir()):
            counts[project.name] = Counter()
            for path in files(project):
                kind, detail = result(parser, path)
                counts[project.name][kind] += 1
                if any(wanted in kind for wanted in chosen.list):
                    print(f"{kind}: {path.relative_to(chosen.folder)}: {detail}", flush=True)
    finally:
        parser.close()
    counts["all"] = sum(counts.values(), Counter())
    width = max(map(len, counts))
    print(f"{'':{width}} {'files':>6}  " + "  ".join(KINDS))
    for project, results in counts.items():
        cells = "  ".join(f"{results[kind]:{len(kind)}}" for kind in KINDS)
        print(f"{project:{width}} {results.total():6}  {cells}")


def files(project: Path) -> Iterator[Path]:
    for path in sorted(project.rglob("*")):
        if path.is_file() and path.suffix not in SKIPPED and 0 < path.stat().st_size <= MAX_BYTES:
            yield path


def result(parser: Parser, path: Path) -> tuple[str, str]:
    """The kind of the result, and what there is to know about it."""
    try:
        parsed, table = read(parser, path)
    except ValiantError as refusal:
        sentences = " ".join([refusal.detail, *(f"{fault.pointer} {fault.detail}" for fault in refusal.faults)])
        if WITHOUT_REASON in sentences:
            return "server error", sentences
        clear = any(fault.pointer for fault in refusal.faults) or REMEDY.search(sentences)
        return f"refused {'clearly' if clear else 'unclearly'}", sentences
    warned = frozenset(column.name for column in parsed.columns if column.warnings)
    table = table._replace(warned=warned)
    rival = read_by_rival(path, parsed.reading.file_format, header=parsed.reading.header is not False)
    if rival is None:
        return "read, no rival", f"{table.rows} rows, {len(table.names)} columns"
    difference = first_difference(table, rival)
    if difference is None:
        return "alike", ""
    remarks = [*parsed.warnings, *(warning for column in parsed.columns for warning in column.warnings)]
    return f"otherwise, {'with' if remarks else 'without'} a remark", f"{difference}; {' '.join(remarks)[:200]}"


def read(parser: Parser, path: Path) -> tuple[Parsed, Table]:
    limits = Limits(max_rows=10**8, max_columns=10_000, unpacked_bytes=1 << 30, chunk_bytes=4 << 20)
    order = Order(name=path.name, file_format=None, limits=limits, memory_bytes=1 << 30, seconds=60, file_bytes=1 << 31)
    with path.open("rb") as upload, tempfile.TemporaryFile() as chunks:
        parsed = parser.parse(order, upload.fileno(), chunks.fileno())
        chunks.seek(0)
        payloads = chunks.read()
    parts = [payloads[place.offset : place.offset + place.length] for place in parsed.chunks]
    table = pa.concat_tables(pa.ipc.open_stream(part).read_all() for part in parts)
    first = table.slice(0, MAX_ROWS)
    return parsed, Table(table.column_names, [column.to_pylist() for column in first.columns], table.num_rows)


def read_by_rival(path: Path, file_format: str, *, header: bool) -> Table | None:
    """The reading of DuckDB, of workbooks that of openpyxl; None where it refuses, has no reader or reads no value.

    file_format: in which we read it. header: whether the first row of a sheet holds the names: openpyxl leaves that to
    its user.
    """
    try:
        is_sheet = path.suffix in {".xlsx", ".xlsm"}
        table = read_sheet(path, header=header) if is_sheet else read_by_duckdb(path, file_format)
    except (duckdb.Error, zipfile.BadZipFile, LookupError, OSError, TypeError, ValueError):
        return None
    return table if table and table.names and table.rows else None


def read_by_duckdb(path: Path, file_format: str) -> Table | None:
    ends = [end for end in path.suffixes[-2:] if end in READERS]
    if not ends or path.suffix in {".bz2", ".xz", ".zip"}:
        return None
    name = str(path).replace("'", "''")
    reader = "read_json" if file_format in {FileFormat.JSON, FileFormat.JSONL} else READERS[ends[-1]]
    relation = duckdb.sql(f"select * from {reader}('{name}', hive_partitioning = false)")
    names = relation.columns
    rows = relation.limit(MAX_ROWS).fetchall()
    count = relation.aggregate("count(*)").fetchall()[0][0]
    return Table(names, [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names], count)


def read_sheet(path: Path, *, header: bool) -> Table | None:
    """The first sheet, if it is no giant, without rows and columns that have no values."""
    sheet = openpyxl.load_workbook(path, data_only=True).worksheets[0]
    if sheet.max_row * sheet.max_column > MAX_CELLS:
        return None
    rows = [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
    columns = [column for column in zip(*rows, strict=True) if any(cell is not None for cell in column)]
    names = [str(column[0]) if header and column[0] is not None else "" for column in columns]
    return Table(names, [list(column[header : MAX_ROWS + header]) for column in columns], len(rows) - header)


def first_difference(table: Table, rival: Table) -> str | None:
    """A sentence on where the readings differ; None if they are alike. Columns without values do not count."""
    table, rival = filled(table), filled(rival)
    shapes = [(each.rows, len(each.names)) for each in (table, rival)]
    if shapes[0] != shapes[1]:
        return f"rows and columns {shapes[0]}, of the rival {shapes[1]}"
    for number, (name, other) in enumerate(zip(table.names, rival.names, strict=True)):
        if not is_same_name(name, other, number):
            return f"name {name!r}, of the rival {other!r}"
    for name, ours, theirs in zip(table.names, table.columns, rival.columns, strict=True):
        for row, (value, other) in enumerate(zip(ours, theirs, strict=True)):
            is_warned = value is None and isinstance(other, str) and name in table.warned
            if not (is_warned or is_same(value, other)):
                return f"row {row} of {name!r}: {value!r}, of the rival {other!r}"
    return None


def filled(table: Table) -> Table:
    """The table without columns that have no value."""
    chosen = [number for number, cells in enumerate(table.columns) if any(normal(cell) is not None for cell in cells)]
    names, columns = [table.names[n] for n in chosen], [table.columns[n] for n in chosen]
    return Table(names, columns, table.rows, table.warned)


def is_same_name(name: str, other: str, number: int) -> bool:
    """True for equal names, and for those of a column without one."""
    is_unnamed = name in {f"column_{number + 1}", "index"} and re.fullmatch(r"(?:column\d+|)", other)
    return plain_text(name) == plain_text(other) or is_unnamed is not None


def is_same(value: Any, other: Any) -> bool:
    ours, theirs = normal(value), normal(other)
    if isinstance(other, dt.time):
        return plain_text(str(value)).startswith(other.replace(tzinfo=None).isoformat("minutes"))
    if isinstance(other, bool) and isinstance(value, str):
        return TRUTH_WORDS.get(plain_text(value).lower()) == theirs
    if isinstance(other, str) and isinstance(value, int | float | dt.datetime):
        return ours == theirs or is_written_as(value, other)
    if isinstance(ours, float) and isinstance(theirs, float):
        return abs(ours - theirs) <= 1e-9 * max(abs(ours), abs(theirs), 1)
    return ours == theirs


def is_written_as(value: float | dt.datetime, text: str) -> bool:
    """True if a text that the rival kept has the digits of our number, or the year and the day of our time."""
    if isinstance(value, dt.datetime):
        numbers = {int(number) for number in re.findall(r"\d+", text)}
        return bool({value.year, value.year % 100} & numbers) and value.day in {1, *numbers}
    if text.endswith("%"):
        return is_written_as(round(100 * value, 9), text[:-1])
    return re.sub(r"\D", "", text).strip("0") == re.sub(r"\D", "", repr(value)).strip("0")


def normal(value: Any) -> Any:
    """A value without its type: numbers as floats, times as text, markers of missing values as None."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    elif isinstance(value, dt.timedelta):
        value = value.total_seconds()
    elif isinstance(value, dt.datetime):
        local = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        value = local.isoformat(" ").removesuffix(" 00:00:00")
    elif isinstance(value, dict | list):
        value = json.dumps(value, default=str)
    text = "" if value is None else plain_text(str(value))
    if text.lower() in MARKERS:
        return None
    try:
        return float(text)
    except ValueError:
        return text.lower() if isinstance(value, bool) or text.lower() in {"true", "false"} else text


def plain_text(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    main()
