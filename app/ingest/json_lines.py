"""JSON: one object a row, its values null, booleans, numbers or strings; the columns are the union of the keys.

A row is a line (JSON lines), or an element of a table in one JSON text (`json_document`).

Nothing is guessed: a column holds one kind of value, `null` or an absent key is missing, and a string is never a
number. A string column whose values are all ISO 8601 times is a datetime, as JSON has no other way to write one.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple, cast

import orjson
import pyarrow as pa

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.base.suggestions import quoted
from app.ingest.data_sheet_remarks import long_numbers_remark
from app.ingest.json_document import is_document, load_exactly, texts
from app.ingest.reader_result import FAULTS_LISTED, Reading, check_names, refuse
from app.ingest.type_inference import EXACT, Form, narrow, read_as
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits, Source

BLOCK_ROWS = 4096
BLOCK_BYTES = 4 << 20
LINE_BYTES = 4 << 20
_TEXTS = (Form.NAIVE, Form.ZONED, Form.TEXT)
_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}

_SPACED_COLONS = b" :", b"\t:", b"\r:", b"\n:"
MAX_EXACT_NUMBER = 1e15
"""Numbers up to which orjson reads whole ones exactly."""
Row = dict[str, Any]


class Block(NamedTuple):
    """Rows, and the numbers of their lines or elements, from 1."""

    numbers: Sequence[int]
    rows: Sequence[Row | Fault]
    """The cells of each, or what is wrong with it."""
    lines: Sequence[bytes]
    unit: str
    is_plain: bool
    """True if all rows were parsed together: none has a fault, a list or an object, and long numbers are rounded."""

    def parsed_apart(self) -> "Block":
        """The same rows, parsed one by one."""
        rows = [_row(number, line, self.unit) for number, line in zip(self.numbers, self.lines, strict=True)]
        return self._replace(rows=rows, is_plain=False)


class _Kind(NamedTuple):
    """The kind that a column has held so far."""

    name: str
    number: int
    """Number of the first row with this kind."""


def read(source: Source, limits: Limits, _options: ReadOptions) -> Reading:
    unit = "row" if is_document(source.head()) else "line"
    survey, together = _Survey(limits, unit), True
    for block in _blocks(source, unit, together=True):
        if not survey.add(block):
            together = False
            survey.add(block.parsed_apart())
        if len(survey.faults) >= FAULTS_LISTED:
            break
    if survey.faults:
        refuse(survey.faults)
    forms = survey.forms()
    check_names(list(forms), limits)
    batches = (
        [_column(block, name, form) for name, form in forms.items()]
        for block in _blocks(source, unit, together=together)
    )
    return Reading(
        list(forms),
        [form.type for form in forms.values()],
        batches,
        encoding=source.encoding,
        remarks=lambda: {name: long_numbers_remark(name) for name in survey.long_numbers()},
    )


def _column(block: Block, name: str, form: Form) -> pa.Array:
    values = _values(block, name)
    if form in {Form.NAIVE, Form.ZONED}:
        return read_as(pa.array(values, pa.string()), form)
    if form is Form.TEXT:
        values = [value if value is None or isinstance(value, str) else str(value) for value in values]
    if form is Form.FLOAT:
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, form.type)


def _values(block: Block, name: str) -> list[Any]:
    rows = cast("Sequence[Row]", block.rows) if block.is_plain else [r for r in block.rows if not isinstance(r, Fault)]
    return [row.get(name) for row in rows]


def _first_number(block: Block, name: str) -> int:
    """The number of the first row that has a value."""
    return next(number for number, value in zip(block.numbers, _values(block, name), strict=True) if value is not None)


class _Survey:
    """The first pass: the columns, their kinds and forms, and what is wrong."""

    def __init__(self, limits: Limits, unit: str) -> None:
        self.faults: list[Fault] = []
        self._limits, self._unit, self._rows = limits, unit, 0
        self._kinds: dict[str, _Kind | None] = {}
        self._fractions: set[str] = set()
        """Columns with numbers that are no whole numbers."""
        self._rounded: set[str] = set()
        """Columns with whole numbers that floats round."""
        self._beyond: set[str] = set()
        """Columns with whole numbers beyond 64 bits."""
        self._texts: dict[str, tuple[Form, ...]] = {}

    def add(self, block: Block) -> bool:
        """False for rows that were parsed together, and have to be parsed one by one."""
        if block.is_plain and not self._add_columns(block):
            return False
        self._rows += len(block.rows)
        if self._rows > self._limits.max_rows:
            raise InvalidData(f"The file has more than the {self._limits.max_rows} rows this service accepts.")
        if not block.is_plain:
            self._add_rows(block)
        if not self.faults:
            self._narrow(block)
        return True

    def _add_columns(self, block: Block) -> bool:
        """True if every column of the block is of one kind, that of the rows before, and no number is long.

        Else nothing is added.
        """
        names = dict.fromkeys(chain.from_iterable(cast("Sequence[Row]", block.rows)))
        if len(self._kinds | names) > self._limits.max_columns:
            return False
        kinds: dict[str, _Kind | None] = {}
        fractions: set[str] = set()
        for name in names:
            values, known_kind = _values(block, name), self._kinds.get(name)
            types = {*map(type, values)}
            values = values if type(None) not in types else [value for value in values if value is not None]
            block_kinds = {_KINDS[each] for each in types if each in _KINDS}
            if len(block_kinds) > 1 or (block_kinds and known_kind is not None and known_kind.name not in block_kinds):
                return False
            if block_kinds == {"a number"} and not -MAX_EXACT_NUMBER < min(values) <= max(values) < MAX_EXACT_NUMBER:
                return False
            kinds[name] = known_kind or (_Kind(block_kinds.pop(), _first_number(block, name)) if block_kinds else None)
            fractions |= {name} if float in types else set()
        self._kinds |= kinds
        self._fractions |= fractions
        return True

    def _add_rows(self, block: Block) -> None:
        for number, row in zip(block.numbers, block.rows, strict=True):
            if isinstance(row, Fault):
                self.faults.append(row)
                continue
            for name, value in row.items():
                self._value(number, name, value)
            if len(self._kinds) > self._limits.max_columns:
                check_names(list(self._kinds), self._limits)

    def _value(self, number: int, name: str, value: Any) -> None:
        column_kind = self._kinds.setdefault(name, None)
        if value is None:
            return
        kind = _KINDS.get(type(value))
        if kind is None:
            self._fault(number, name, _nested(name, value), "nested")
        elif column_kind is None:
            self._kinds[name] = _Kind(kind, number)
        elif column_kind.name != kind:
            before = f"{self._unit} {column_kind.number} of this column has {column_kind.name}"
            self._fault(number, name, f"This is {kind}; {before}: write all of them alike.", "mixed")
        if isinstance(value, float):
            self._fractions.add(name)
        elif isinstance(value, int) and abs(value) > EXACT:
            self._rounded.add(name)
            if not -(2**63) <= value < 2**63:
                self._beyond.add(name)

    def _fault(self, number: int, name: str, detail: str, code: str) -> None:
        self.faults.append(Fault(place(self._unit, number, "column", name), detail, code))

    def _narrow(self, block: Block) -> None:
        for name, kind in self._kinds.items():
            possible = self._texts.get(name, _TEXTS)
            if kind is not None and kind.name == "a string" and possible != (Form.TEXT,):
                self._texts[name] = narrow(possible, pa.array(_values(block, name), pa.string()))

    def long_numbers(self) -> set[str]:
        """Columns of numbers that are read as text, since floats would round them."""
        return self._beyond | (self._rounded & self._fractions)

    def forms(self) -> dict[str, Form]:
        return {name: self._form(name, kind) for name, kind in self._kinds.items()}

    def _form(self, name: str, kind: _Kind | None) -> Form:
        if kind is not None and kind.name == "a string":
            forms = self._texts[name]
            return Form.TEXT if forms == _TEXTS else forms[0]  # all possible: no value decides
        if kind is not None and kind.name == "a boolean":
            return Form.BOOLEAN
        if name in self.long_numbers():
            return Form.TEXT
        return Form.FLOAT if name in self._fractions else Form.INTEGER


def _blocks(source: Source, unit: str, *, together: bool) -> Iterator[Block]:
    """Blank lines are skipped. together: parse the rows of a block together, where they allow it."""
    numbers: list[int] = []
    lines: list[bytes] = []
    size = 0
    for number, line in texts(source.open()) if unit == "row" else enumerate(_lines(source), start=1):
        if not line.strip():
            continue
        numbers.append(number)
        lines.append(line)
        size += len(line)
        if len(lines) >= BLOCK_ROWS or size >= BLOCK_BYTES:
            yield _block(numbers, lines, unit, together=together)
            numbers, lines, size = [], [], 0
    yield _block(numbers, lines, unit, together=together)


def _block(numbers: list[int], lines: list[bytes], unit: str, *, together: bool) -> Block:
    rows = _parse_together(lines) if together else None
    if rows is not None:
        return Block(numbers, rows, lines, unit, is_plain=True)
    return Block(numbers, (), lines, unit, is_plain=False).parsed_apart()


def _parse_together(lines: Sequence[bytes]) -> list[Row] | None:
    """The objects of lines, each with keys that differ and plain values; None where they have to be parsed one by one.

    Without lists and objects in objects, a line that begins and ends as an object does is one, or is cut within a text:
    that is refused for its line end. As many colons behind quotes as keys leave no room for a key that comes twice.
    """
    objects = [line.strip() for line in lines]
    text = b",\n".join(objects)
    nested = b"[" in text or text.count(b"{") != len(lines) or text.count(b"}") != len(lines)
    if nested or any(mark in text for mark in _SPACED_COLONS):
        return None
    if not all(line[:1] == b"{" and line[-1:] == b"}" for line in objects):
        return None
    try:
        rows: list[Row] = orjson.loads(b"[%b]" % text)
    except orjson.JSONDecodeError:
        return None
    return rows if len(rows) == len(lines) and text.count(b'":') == sum(map(len, rows)) else None


def _lines(source: Source) -> Iterator[bytes]:
    file = source.open()
    number = 0
    while line := file.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            refuse([Fault(place("line", number), f"This line is longer than {LINE_BYTES} bytes.", "too_long")])
        yield line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def _row(number: int, line: bytes, unit: str) -> Row | Fault:
    try:
        row = load_exactly(line)
    except orjson.JSONDecodeError as error:
        advice = f"write one JSON object a {unit}"
        detail = f"This {unit} is not JSON: the fault is at character {error.pos + 1}; {advice}."
        return Fault(place(unit, number), detail, "malformed_json")
    if not isinstance(row, dict):
        detail = f"This {unit} is no JSON object: write one a {unit}, with the names of the columns as its keys."
        return Fault(place(unit, number), detail, "not_an_object")
    # As many colons as keys leave no room for a key that comes twice, or is lost in one that does.
    if line.count(b":") != len(row) and (twice := _repeated(line)) is not None:
        return Fault(place(unit, number, "column", twice), "This key comes twice: rename one of them.", "duplicate_key")
    return row


def _nested(name: str, value: dict[str, Any] | list[Any]) -> str:
    """The remedy for a cell that holds several values."""
    if isinstance(value, list):
        return "This is a list: write each of its elements as a column of its own, or as a row of its own."
    example = quoted(f"{name}.{next(iter(value), 'key')}")
    return f"This is an object: write each of its keys as a column of its own, such as {example}."


def _repeated(line: bytes) -> str | None:
    """A key that comes twice within one object."""
    repeated: list[str] = []

    def check(pairs: list[tuple[str, Any]]) -> Row:
        counts = Counter(name for name, _ in pairs)
        repeated.extend(name for name, times in counts.items() if times > 1)
        return dict(pairs)

    with suppress(RecursionError):  # nested that deep, it is refused for that
        json.loads(line, object_pairs_hook=check)
    return repeated[0] if repeated else None
