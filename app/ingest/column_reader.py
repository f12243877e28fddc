"""Reading one column of strings: by its form, or by a reading that was chosen for it, counting what does not fit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.ingest.joined_columns import in_groups
from app.ingest.notation_candidates import Code, Way
from app.ingest.type_inference import Form, read_as
from app.ml.contract.columns import ColumnKind
from app.ml.contract.dates_and_times import TIME, ZONE
from app.ml.contract.notation import CellTexts, Notation, OtherNotation, bare, read_and_misfits, without_missing
from app.ml.tables.cell_casting import recast_cells

_CLOCK, _OFFSET = "[0-9]:[0-9]{2}", rf"[0-9] ?(?:{ZONE}|[+-][0-9]{{2}}:?(?:[0-9]{{2}})?)\s*$"
NAMED = 5
"""Rows named of those that do not fit."""


MAX_TEXTS = 100
"""Different texts of a column that are remembered."""
PROBED_TEXTS = 1000
"""Cells that are compared first: most columns of numbers have more different ones."""


@dataclass
class DistinctTexts:
    """The different cells of a column so far."""

    cells: pa.Array | None = field(default_factory=lambda: pa.array([], pa.string()))
    """None: they are too many."""

    def add(self, values: pa.Array) -> None:
        if self.cells is not None:
            first = pc.unique(values[:PROBED_TEXTS])
            texts = first if len(first) > MAX_TEXTS else pc.unique(pa.concat_arrays([self.cells, values]))
            self.cells = texts if len(texts) <= MAX_TEXTS else None


_ZEROS = {".": "[.]000(?:[^0-9]|$)", ",": "[,]000(?:[^0-9]|$)"}


@dataclass
class AmbiguousMarks:
    """Numbers seen so far of a column with a mark that may be decimal or separate thousands."""

    unmarked: bool = False
    """True if some have no mark."""
    long_unmarked: bool = False
    """True if some of at least four digits have none."""
    before_zeros: frozenset[str] = frozenset()
    """Marks behind which some have zeros alone."""

    def add(self, values: pa.Array) -> None:
        cells = bare(values).drop_null()
        self.unmarked |= _any_matches(cells, "^[^.,]*$")
        self.long_unmarked |= _any_matches(cells, "^[^.,]*[0-9]{4}[^.,]*$")
        self.before_zeros |= {mark for mark, zeros in _ZEROS.items() if _any_matches(cells, zeros)}


def _any_matches(cells: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(cells, pattern)).as_py())


@dataclass
class ColumnReader:
    """Reader of a column, with the result of reading it."""

    name: str
    form: Form
    missing: tuple[str, ...] = ()
    """Markers given for the whole file."""
    way: Way | None = None
    """The reading that is tried. Cells that do not fit are missing; None: by the form alone."""
    applied: bool = True
    """True if the reading is used; if not, its misfits are counted and the column is text."""
    kind: ColumnKind | None = None
    """Kind of a column of strings, where one is given."""
    others: tuple[Way, ...] = ()
    """Readings that fit as well."""
    markers: dict[str, int] = field(default_factory=dict)
    """Words that are read as missing, and how often each occurs."""
    padded: bool = False
    """True if numbers have leading zeros."""
    code: Code | None = None
    """The kind of codes that whole numbers are, which are read as text for it."""
    given: bool = False
    """True if the upload gives the kind."""
    rows: list[int] = field(default_factory=list)
    """The first that do not fit, from 0."""
    misfits: int = 0
    zoned: bool = False
    """True if a time has an offset from UTC."""
    zoneless: bool = False
    """True if a time of day has none."""
    cells: int = 0
    """Cells that are not missing, misfits among them."""
    texts: DistinctTexts = field(default_factory=DistinctTexts)
    other: Notation | None = None
    """Another notation that all cells have."""
    marks: AmbiguousMarks = field(default_factory=AmbiguousMarks)
    """Counted where there is another notation."""
    _seen: int = 0

    @property
    def type(self) -> pa.DataType:
        if self.way is None or not self.applied:
            return self.form.type
        return _TYPES[self.way.kind] if not self.way.whole else pa.int64()

    @property
    def notation(self) -> Notation:
        """The notation of the column, as a model stores it."""
        if self.way is not None and self.applied:
            return self.way.notation.model_copy(update={"missing": (*self.missing, *self.markers)})
        return _plain_notation("," if self.form is Form.DECIMAL_COMMA else ".", self.missing)

    @property
    def is_plain(self) -> bool:
        """True if the form alone decides, and nothing is counted."""
        return self.way is None and self.other is None

    @property
    def decimal(self) -> str | None:
        """The decimal mark that the cells show; None: they show none, or it may be either."""
        if self.other is not None:
            return None
        if self.way is not None and self.applied:
            return self.way.decimal if self.way.kind is ColumnKind.NUMERIC else None
        return {Form.FLOAT: ".", Form.DECIMAL_COMMA: ","}.get(self.form)

    @property
    def other_notation(self) -> OtherNotation | None:
        """The other notation for the data sheet, once all rows are read."""
        if self.other is None or not self.applied:
            return None
        if self.way is not None and self.way.kind is ColumnKind.DATETIME:
            return OtherNotation(notation=self.other, exact=not self.zoned)
        marks = self.marks
        if self.way is not None and self.way.notation.thousands is not None:
            exact = not marks.long_unmarked and self.way.notation.decimal not in marks.before_zeros
        else:
            exact = not (marks.unmarked and marks.before_zeros)
        return OtherNotation(notation=self.other, exact=exact, all_marked=not marks.unmarked)

    def reads_alike(self, other: "ColumnReader") -> bool:
        """True if the other reader gives the same result and has counted what the remarks of this one need."""
        mine, others = ((each.form, each.missing, each.applied, each.kind, *each.markers) for each in (self, other))
        ways = [None if way is None else (way.kind, way.notation, way.whole) for way in (self.way, other.way)]
        return mine == others and ways[0] == ways[1] and self.other in {None, other.other}

    def take_counts(self, other: "ColumnReader") -> None:
        """Take over what the other reader has counted."""
        self.rows, self.misfits, self.cells, self.texts, self.marks, self.zoned, self.zoneless = (
            other.rows, other.misfits, other.cells, other.texts, other.marks, other.zoned, other.zoneless,
        )  # fmt: skip

    def read(self, values: pa.Array) -> pa.Array:
        """The next rows."""
        if self.other is not None and (self.way is None or self.way.kind is ColumnKind.NUMERIC):
            self.marks.add(values)
        if self.way is None:
            return self._plainly(values)
        notation = self.way.notation.model_copy(update={"missing": (*self.missing, *self.markers)})
        numbers, wrong = read_and_misfits(values, notation, self.way.kind, whole=self.way.whole)
        places = np.flatnonzero(wrong.to_numpy(zero_copy_only=False))
        self.rows += (places[: NAMED - len(self.rows)] + self._seen).tolist()
        self.misfits += len(places)
        self.cells += len(numbers) - numbers.null_count + len(places)
        self._seen += len(values)
        if self.way.kind is ColumnKind.DATETIME:
            offsets = pc.match_substring_regex(values, _OFFSET)
            clocks = pc.match_substring_regex(values, _CLOCK)
            self.zoned |= bool(pc.any(offsets).as_py())
            self.zoneless |= bool(pc.any(pc.and_(clocks, pc.invert(offsets))).as_py())
        if not self.applied:
            return self._plainly(values)
        return numbers

    def _plainly(self, values: pa.Array) -> pa.Array:
        return without_missing(values, self.missing) if self.form is Form.TEXT else read_as(values, self.form)


@lru_cache(16)
def _plain_notation(decimal: Literal[".", ","], missing: tuple[str, ...]) -> Notation:
    return Notation(decimal=decimal, missing=missing)


def read_all(readers: Sequence[ColumnReader], columns: Sequence[pa.Array]) -> list[pa.Array]:
    """The next rows of every column; those that are read by their form alone together."""
    keys = [(reader.form, reader.missing) if reader.is_plain else None for reader in readers]
    for reader, values in zip(readers, columns, strict=True):
        if reader.type != pa.string():
            reader.texts.add(values)
    return in_groups(columns, keys, lambda values, numbers: readers[numbers[0]].read(values))


def cell_texts(readers: Sequence[ColumnReader]) -> dict[str, CellTexts]:
    """Texts of the values of columns for their data sheets, once all rows are read, where they are few and unusual."""
    chosen = [reader for reader in readers if reader.texts.cells and reader.type != pa.string()]
    if not chosen:
        return {}
    cells: list[pa.Array] = [reader.texts.cells for reader in chosen]
    keys = [(reader.form, reader.missing) if reader.is_plain else None for reader in chosen]
    names = in_groups(cells, keys, lambda values, numbers: _usual(chosen[numbers[0]].read(values)))
    texts = in_groups(cells, [True] * len(cells), lambda values, _: pc.fill_null(without_missing(values), ""))
    differ = pc.not_equal(pa.concat_arrays(names), pa.concat_arrays(texts)).to_numpy(zero_copy_only=False)
    starts = np.cumsum([0, *map(len, cells[:-1])])
    return {
        chosen[number].name: _cell_texts(names[number].to_pylist(), texts[number].to_pylist())
        for number in np.flatnonzero(np.logical_or.reduceat(differ, starts)).tolist()
    }


def _usual(values: pa.Array) -> pa.Array:
    """The texts that values have as categories."""
    return pc.fill_null(recast_cells(values, ColumnKind.CATEGORICAL), "")


def _cell_texts(names: Sequence[str], texts: Sequence[str]) -> CellTexts:
    text_of: dict[str, str] = {}
    for name, text in zip(names, texts, strict=True):
        if text_of.setdefault(name, text) != text:
            return CellTexts(unique=False)
    return CellTexts(texts={name: text for name, text in text_of.items() if name != text}, unique=True)


def decimal_mark(readers: Sequence[ColumnReader]) -> str | None:
    """The decimal mark of all columns of numbers that have one; None where none has, or they differ."""
    marks = {reader.decimal for reader in readers} - {None}
    return marks.pop() if len(marks) == 1 else None


_TYPES = {ColumnKind.NUMERIC: pa.float64(), ColumnKind.BOOLEAN: pa.bool_(), ColumnKind.DATETIME: TIME}
