"""Rows that come as CSV: by Arrow's reader where all is numbers, else cell by cell as the JSON that says the same.

Whatever is in the least unusual goes the second way, which says what is wrong with it. Both give the same numbers.
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from app.api.arrow_form import matrix_of
from app.api.forms import MalformedTable
from app.api.numbers import order_of
from app.errors import InvalidEncoding, NulCharacter
from app.ml.cells import EXACT
from app.ml.contract import Matrix
from app.ml.schema import ColumnKind, InputColumn

WHOLE = re.compile(r"\s*[+-]?[0-9]{1,400}\s*", re.ASCII)
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", re.ASCII)
BOOLEANS = {"true": True, "false": False}
MARK = b"\xef\xbb\xbf"
"""Of UTF-8, which some programs write first."""
REFUSALS = (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError)


def csv_numbers(body: bytes, names: tuple[str, ...] | None, *, max_rows: int) -> Matrix | None:
    """The raw matrix (n, p) of a body of numbers for these inputs and nothing else; None if there is any doubt.

    names: None for a model of other inputs too.
    """
    lines, returns = body.count(b"\n"), body.count(b"\r")
    if names is None or b'"' in body or b"\0" in body or lines > max_rows + 1 or returns not in {0, lines}:
        return None
    first = body.find(b"\n") + 1
    try:
        header = tuple(body[:first].removeprefix(MARK).decode().rstrip("\r\n").split(","))
        if order_of(header, names) is None:
            return None
        table = arrow_csv.read_csv(
            pa.BufferReader(memoryview(body)[first:]),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(body), column_names=header),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.float64()), null_values=[""], check_utf8=False
            ),
        )
    except REFUSALS:
        return None
    raw = matrix_of(table.select(names)) if table.num_rows <= max_rows else None
    empty = sum(column.null_count for column in table.columns)
    return raw if raw is not None and _as_written(raw, empty) else None


def _as_written(raw: Matrix, empty: int) -> bool:
    """Whether no cell holds a word such as nan or inf, a whole number that was rounded, or a whole -0."""
    missing = np.isnan(raw)
    sure = np.count_nonzero(missing) == empty and (missing | (np.abs(raw) < EXACT)).all()
    return bool(sure and not np.signbit(raw[raw == 0]).any())


def csv_document(body: bytes, inputs: Sequence[InputColumn], *, max_rows: int) -> dict[str, Any]:
    """The document of columns and data that says the same: cells as the kind of their column, empty ones null.

    Of more rows than `max_rows` one too many is read.
    """
    if b"\0" in body:
        raise NulCharacter
    try:
        lines = csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)
        header, *data = list(islice(filter(None, lines), max_rows + 2)) or [[]]
    except UnicodeDecodeError:
        raise InvalidEncoding from None
    except csv.Error:
        raise MalformedTable("The body is not readable as CSV.") from None
    kinds: Mapping[str, str] = {column.name: column.kind for column in inputs}
    reads = [_READS.get(kinds.get(name, ""), _text) for name in header]
    return {"columns": header, "data": [_row(reads, line) for line in data]}


def _row(reads: Sequence[Callable[[str], object]], line: list[str]) -> list[Any]:
    """One of another length is left as it is: it is a fault of its own."""
    return [read(cell) for read, cell in zip(reads, line, strict=True)] if len(line) == len(reads) else line


def _text(cell: str) -> str | None:
    return cell or None


def _number(cell: str) -> object:
    """A number, null, or the cell itself, which then is a fault like any other string."""
    if WHOLE.fullmatch(cell):
        return int(cell)
    return float(cell) if NUMBER.fullmatch(cell) else cell or None


def _boolean(cell: str) -> object:
    return BOOLEANS.get(cell.strip().lower(), cell or None)


_READS: dict[str, Callable[[str], object]] = {ColumnKind.NUMERIC: _number, ColumnKind.BOOLEAN: _boolean}
