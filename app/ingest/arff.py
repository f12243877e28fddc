"""ARFF: dense and sparse rows, rewritten as the rows of a plain CSV file whose columns have the declared kinds.

Rows without quotes, braces and comments pass as they are. A weight behind a row, `{2.5}`, goes into a column of its
own. Values that the header does not declare are kept, with a warning.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from app.base.faults import Fault, place
from app.ingest.arff_header import MAX_LINE_BYTES, QUOTED, ArffHeader, Attribute, read_header, unescape
from app.ingest.chunked_file import open_chunks
from app.ingest.csv_layout import Layout, tidy_names
from app.ingest.csv_reader import BLOCK, read_rows
from app.ingest.reader_result import Reading, check_names, refuse
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits, Source
from app.ml.tables.data_sheet import Remark

LINES_AT_ONCE = 1024
SCANNED_BYTES = 1 << 20
MISSING = "?"
WEIGHT = "weight"
_MARKS = re.compile(rb"""['"\\{%]""")
_WEIGHTED = re.compile(rb",[ \t]*+\{[^{},\n]*+\}[ \t\r]*+$", re.MULTILINE)
_WEIGHT = re.compile(r",\s*+\{([^{},]*+)\}\s*+$")
_VALUE = rf"""(?:{QUOTED}|(?P<bare>(?:[^,'"\s](?:[^,]*[^,\s])?)?))\s*(?P<end>,|$)"""
_CELL = re.compile(rf"\s*+{_VALUE}")
_PAIR = re.compile(rf"\s*+(?P<index>[0-9]{{1,9}})\s++{_VALUE}")
_BLANK_SEPARATED = re.compile(rf"""(?:{QUOTED}|(?P<bare>[^\s'"]\S*+))(?P<end>\s*)""")
_BEFORE_COMMENT = re.compile(r"""(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|[^\s%'"]%|[^%])*""")
_UNDECLARED = "{} not among those that the header of the file declares, and kept."
_UNUSED = "{} of the {} values that the header of the file declares do not occur."


def read(source: Source, limits: Limits, options: ReadOptions) -> Reading:
    csv.field_size_limit(BLOCK)  # for the whole process, which reads this one file
    header = read_header(source.open())
    text = _scan(source, header)
    attributes = [*header.attributes, *([Attribute(WEIGHT, "numeric")] if text.weighted else [])]
    names = [attribute.name for attribute in attributes]
    warnings = tidy_names(names, options)
    check_names(names, limits)
    layout = Layout(
        ",",
        tuple(names),
        header.data_line,
        header=True,
        values_line=header.data_line + 1,
        warnings=tuple(warnings),
        skips_blank_lines=True,
    )
    kinds = {name: each.kind for name, each in zip(names, attributes, strict=True) if each.kind is not None}
    declared = options.model_copy(update={"kinds": kinds | options.kinds, "missing": [MISSING, *options.missing]})
    reading = read_rows(text, layout, limits, declared)
    levels = {name: each.levels for name, each in zip(names, attributes, strict=True) if each.levels}
    return replace(_compare_levels(reading, levels), delimiter=None, header=None)


class _ArffText(NamedTuple):
    """The rows as a CSV file; where the header was it has blank lines."""

    source: Source
    header: ArffHeader
    plain: bool
    weighted: bool

    @property
    def encoding(self) -> str:
        return self.source.encoding

    def open(self) -> BinaryIO:
        file = self.source.open()
        file.read(self.header.data_offset)
        rewriting = _Rewriting(self.header, weighted=self.weighted)
        rows = iter(lambda: file.read(SCANNED_BYTES), b"") if self.plain else rewriting.chunks(file)
        return open_chunks(chain([b"\n" * self.header.data_line], rows))


def _scan(source: Source, header: ArffHeader) -> _ArffText:
    """The rows, with whether they pass as they are and whether they have weights."""
    file = source.open()
    file.read(header.data_offset)
    plain, weighted, filled = True, False, False
    while lines := file.readlines(SCANNED_BYTES):
        block = b"".join(lines)
        if _MARKS.search(block):
            plain = False
            weighted = weighted or _WEIGHTED.search(block) is not None
        if plain and len(header.attributes) > 1:
            plain = all(b"," in line or not line.strip() for line in lines[:LINES_AT_ONCE])
        filled = filled or any(line.strip() and not line.lstrip().startswith(b"%") for line in lines)
    if not filled:
        refuse([Fault(place("line", header.data_line), "No row follows this line.", "no_rows")])
    return _ArffText(source, header, plain, weighted)


class _Rewriting:
    """Rows of a CSV file, of those behind a header."""

    def __init__(self, header: ArffHeader, *, weighted: bool) -> None:
        self._weighted, self._line = weighted, header.data_line
        self._defaults = [attribute.default for attribute in header.attributes]

    def chunks(self, file: BinaryIO) -> Iterator[bytes]:
        lines: Iterator[bytes] = iter(lambda: file.readline(MAX_LINE_BYTES), b"")
        while some := list(islice(lines, LINES_AT_ONCE)):
            yield self._written([line.decode("utf-8", "surrogateescape") for line in some])
            self._line += len(some)

    def _written(self, lines: Sequence[str]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(self._quickly(lines) or self._exactly(lines))
        return text.getvalue().encode("utf-8", "surrogateescape")

    def _quickly(self, lines: Sequence[str]) -> list[list[str]] | None:
        """The cells of dense rows in quotes of one sort; None for others."""
        block = "".join(lines)
        quotes = [quote for quote in "'\"" if quote in block]
        if self._weighted or len(quotes) > 1 or any(mark in block for mark in "\\{%") or not _has_commas(lines):
            return None
        try:
            rows = list(csv.reader(lines, quotechar=(quotes or '"')[0], skipinitialspace=True, strict=True))
        except csv.Error:
            return None
        return rows if len(rows) == len(lines) else None

    def _exactly(self, lines: Sequence[str]) -> Iterator[list[str]]:
        return (self._row(line.strip(), self._line + number) for number, line in enumerate(lines, start=1))

    def _row(self, line: str, number: int) -> list[str]:
        if "%" in line:
            line = _BEFORE_COMMENT.match(line)[0].rstrip()  # type: ignore[index]  # it matches nothing, too
        if not line:
            return []
        weight = _WEIGHT.search(line) if self._weighted else None
        line = line if weight is None else line[: weight.start()].rstrip()
        cells = self._sparse(line, number) if line.startswith("{") else _dense(line, number)
        return [*cells, *(["1" if weight is None else weight[1].strip()] if self._weighted else [])]

    def _sparse(self, line: str, number: int) -> list[str]:
        row = list(self._defaults)
        pairs = line[1:].rstrip("}").strip()
        for pair in _matches(_PAIR, pairs, number, _NO_PAIR.format(len(row) - 1)) if pairs else ():
            index = int(pair["index"])
            if index >= len(row):
                refuse([Fault(place("line", number), _NO_PAIR.format(len(row) - 1), "sparse_row")])
            row[index] = unescape(pair, number)
        return row


_NO_PAIR = "A sparse row has pairs of a column, from 0 to {}, and a value, with commas between the pairs."
_NO_CELL = "A quote in this row is never closed, or letters follow it."


def _has_commas(lines: Sequence[str]) -> bool:
    return all("," in line or not line.strip() for line in lines)


def _dense(line: str, number: int) -> list[str]:
    """The cells between commas, or between blanks where there is no comma."""
    pattern = _CELL if "," in line else _BLANK_SEPARATED
    return [unescape(cell, number) for cell in _matches(pattern, line, number, _NO_CELL)]


def _matches(pattern: re.Pattern[str], line: str, number: int, detail: str) -> Iterator[re.Match[str]]:
    """The cells of a line one after the other. Raises InvalidData with this sentence where there is none."""
    match = pattern.match(line)
    while match is not None:
        yield match
        if match["end"] != "," and match.end() == len(line):
            return
        match = pattern.match(line, match.end())
    refuse([Fault(place("line", number), detail, "unreadable_row")])


def _compare_levels(reading: Reading, levels: Mapping[str, Sequence[str]]) -> Reading:
    """The reading with warnings about values that are not declared, and declared ones that do not occur."""
    declared = {
        number: pa.array(levels[name], pa.string())
        for number, (name, data_type) in enumerate(zip(reading.names, reading.types, strict=True))
        if name in levels and data_type == pa.string()
    }
    seen: dict[int, set[str]] = {number: set() for number in declared}
    undeclared: Counter[int] = Counter()

    def batches() -> Iterator[Sequence[pa.Array]]:
        for columns in reading.batches:
            for number, values in declared.items():
                present = columns[number].drop_null()
                is_declared = pc.is_in(present, value_set=values)
                undeclared[number] += len(present) - (pc.sum(is_declared).as_py() or 0)
                seen[number].update(present.filter(is_declared).unique().to_pylist())
            yield columns

    def remarks() -> Mapping[str, Remark]:
        written = dict(reading.remarks())
        for number, values in declared.items():
            name, unused = reading.names[number], len(values.unique()) - len(seen[number])
            strange = undeclared[number]
            more = [_UNDECLARED.format("1 value was" if strange == 1 else f"{strange} values were")] if strange else []
            more += [_UNUSED.format(unused, len(values))] if unused else []
            remark = written.get(name, Remark())
            written[name] = remark._replace(warnings=[*remark.warnings, *more])
        return written

    return replace(reading, batches=batches(), remarks=remarks)
