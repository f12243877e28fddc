"""Rows that come as CSV: by Arrow's reader where all is numbers, else cell by cell as the equivalent JSON.

Whatever is in the least unusual takes the second path, which reports what is wrong with it. Both give the same numbers.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from app.base.errors import InvalidEncoding, NulCharacter
from app.formats.arrow import matrix_of
from app.formats.json_tables import order_of
from app.formats.malformed import MalformedTable
from app.ml.contract.algorithm import Matrix
from app.ml.contract.columns import InputColumn
from app.ml.models.model import Model
from app.ml.tables.cells import EXACT
from app.ml.tables.csv_dialect import BLANK, DELIMITERS, MAX_LINES_ABOVE, Dialect, detect_dialect
from app.ml.tables.rows import Incoming, read_rows, whole
from app.ml.tables.stray_quotes import QUOTE
from app.ml.tables.texts import read_texts

HEAD = 1 << 20
"""Characters among which the header is looked for."""
MARK = b"\xef\xbb\xbf"
"""Byte order mark of UTF-8, which some programs write first."""
REFUSALS = (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError)


def csv_rows(body: bytes, model: Model, *, encoding: str | None, max_rows: int, let_bad_rows_pass: bool) -> Incoming:
    """Raises MalformedTable, InvalidEncoding, NulCharacter, and what `app.ml.tables.rows.read_rows` raises."""
    raw = None if encoding else csv_numbers(body, model.plain_numbers, max_rows=max_rows)
    if raw is not None:
        return whole(raw)
    document = csv_document(body, model.inputs, max_rows=max_rows, encoding=encoding, reading=model.reading)
    return read_rows(document, model.inputs, max_rows=max_rows, let_bad_rows_pass=let_bad_rows_pass)


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
    """True if no cell holds a word such as nan or inf, a whole number that was rounded, or a whole -0."""
    missing = np.isnan(raw)
    sure = np.count_nonzero(missing) == empty and (missing | (np.abs(raw) < EXACT)).all()
    return bool(sure and not np.signbit(raw[raw == 0]).any())


def csv_document(
    body: bytes,
    inputs: Sequence[InputColumn],
    *,
    max_rows: int,
    encoding: str | None = None,
    reading: Mapping[str, Any],
) -> dict[str, Any]:
    """The equivalent document of columns and data: cells as the kind of their column, missing ones null.

    Cells are in the notations of their columns. encoding: that of the request, if it names one; else UTF-8 or, what is
    no UTF-8, as the training data, whose `reading` also has markers of missing values and the layout of its file. The
    names are looked for among the first rows; a model of a file without names takes the rows of such a file. Of more
    rows than `max_rows` one too many is read.
    """
    if b"\0" in body and encoding is None:
        raise NulCharacter
    text, columns = _decoded(body, encoding, reading), {column.name: column for column in inputs}
    try:
        header, rows = _split(text, tuple(columns), reading, max_rows + 1)
    except csv.Error:
        raise MalformedTable("The body is not readable as CSV.") from None
    complete = [number for number, row in enumerate(rows) if len(row) == len(header)]
    cells = zip(*(rows[number] for number in complete), strict=True)
    read = [read_texts(columns.get(name), each, reading) for name, each in zip(header, cells)]  # noqa: B905
    values = dict(zip(complete, map(list, zip(*read, strict=True)), strict=True)) if complete else {}
    return {"columns": header, "data": [values.get(number, row) for number, row in enumerate(rows)]}


def _split(
    text: str, names: Sequence[str], reading: Mapping[str, Any], max_rows: int
) -> tuple[list[str], list[list[str]]]:
    """The header and the rows below it, in the dialect that finds most inputs."""
    input_names = frozenset(names)
    detected = detect_dialect(text[:HEAD], delimiter=reading.get("delimiter"), comment=reading.get("comment"))
    dialects = [detected, *(detected._replace(delimiter=mark, trailing=False) for mark in (*DELIMITERS, BLANK))]
    counts = [_names_found(text[:HEAD], dialect, input_names) for dialect in dialects]
    most_names = max(counts)
    best = dialects[counts.index(most_names)]
    best = _with_stray_quotes(text, best) if reading.get("quoted", True) else best._replace(quoted=False)
    lines = best.cells(_lines(text), strict=True)
    first: list[str] = []
    while len(input_names & set(first)) < most_names or not first:
        row = next(lines, None)
        if row is None:
            break
        first = [cell.strip() for cell in row[1]]
    single = len(first) == 1
    rows = (row or [""] for _, row in lines if row or single)
    if input_names and input_names.isdisjoint(first) and reading.get("header") is False:
        number_of_columns = reading.get("columns", len(names))
        unnamed = [f"column_{number}" for number in range(1, len(first) + 1)]
        header = list(names) if len(first) == len(names) < number_of_columns else unnamed
        return header, list(islice(chain([first], rows), max_rows))
    header = [name or f"column_{number}" for number, name in enumerate(first, start=1)]
    return header, list(islice(rows, max_rows))


def _with_stray_quotes(text: str, dialect: Dialect) -> Dialect:
    """The dialect; where the text has stray quotes, one that reads them as letters."""
    if QUOTE not in text or dialect.quote != QUOTE or dialect.escaped:
        return dialect
    counts = dialect.stray_quotes(_lines(text))
    if not counts.stray:
        return dialect
    return dialect._replace(quoted=False) if counts.are_letters() else dialect._replace(mended=True)


def _lines(text: str) -> Iterator[str]:
    return iter(io.StringIO(text, newline=""))


def _names_found(head: str, dialect: Dialect, names: frozenset[str]) -> int:
    """The largest number of names in one of the first rows."""
    lines = dialect.cells(iter(io.StringIO(head, newline="")))
    try:
        counts = (len(names & {cell.strip() for cell in row}) for _, row in islice(lines, MAX_LINES_ABOVE))
        return max(counts, default=0)
    except csv.Error:
        return 0


def _decoded(body: bytes, encoding: str | None, reading: Mapping[str, Any]) -> str:
    """By the encoding of the request; else as UTF-8, or as the training data was. Raises InvalidEncoding."""
    for codec in filter(None, (encoding or "utf-8-sig", None if encoding else reading.get("encoding"))):
        try:
            text = body.decode(codec)
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            raise NulCharacter
        return text.removeprefix("\ufeff")
    raise InvalidEncoding
