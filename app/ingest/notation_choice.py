"""Choosing how each column of a text file is read, from one pass over the file, and a second over doubtful columns.

The first pass finds the form that all cells of a column have. A column that has none although its sampled cells look
like numbers or dates, or whose whole numbers have leading zeros, is counted by shape in the second pass. Then a few of
its cells may be strays (`app.ingest.stray_cells`): they are read as missing. With more of them it stays text, and the
data sheet offers the reading.
"""

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from app.base.faults import Fault, place
from app.ingest.cell_patterns import Sample, Shapes, is_grouped, padded
from app.ingest.column_reader import ColumnReader
from app.ingest.notation_candidates import Evidence, Way, code_of, dates, markers, numbers, ways
from app.ingest.reader_result import refuse
from app.ingest.stray_cells import few
from app.ingest.type_inference import NUMBERS, Form, narrow_all
from app.ingest.upload_options import ReadOptions
from app.ml.contract.columns import ColumnKind
from app.ml.contract.given_kinds import GivenKind
from app.ml.contract.notation import Notation, without_missing

MOSTLY = 0.8
"""Share of cells that must fit for a reading to be offered."""
_TIMES = (Form.NAIVE, Form.ZONED)
_FORMS = {ColumnKind.NUMERIC: NUMBERS, ColumnKind.DATETIME: _TIMES, ColumnKind.BOOLEAN: (Form.BOOLEAN,)}
_NOUNS = {ColumnKind.NUMERIC: "number", ColumnKind.DATETIME: "date", ColumnKind.BOOLEAN: "truth value"}


class Survey:
    """The first pass."""

    def __init__(self, names: Sequence[str], options: ReadOptions, *, semicolons: bool) -> None:
        allowed = tuple(form for form in Form if form is not Form.DECIMAL_COMMA or semicolons)
        self._names, self._options, self._semicolons = names, options, semicolons
        self._allowed = allowed
        self._possible = [allowed] * len(names)
        self._words = [False] * len(names)
        """By column: markers of a missing value are there, and nothing else but empty cells: they are words."""
        self._samples = [Sample() for _ in names]
        self._padded = [False] * len(names)
        self._grouped = [True] * len(names)
        """By column: all marks in its numbers so far may separate thousands."""

    def add(self, columns: Sequence[pa.Array], confirmed: Collection[int] = ()) -> None:
        """confirmed: numbers of columns that have a form if they can be read so, which happens elsewhere."""
        others = [column for column in range(len(columns)) if column not in confirmed]
        narrowed = narrow_all([self._possible[column] for column in others], [columns[column] for column in others])
        for column, forms in zip(others, narrowed, strict=True):
            self._possible[column] = forms
        for column, values in enumerate(columns):
            if self._possible[column] == self._allowed:
                self._words[column] = self._words[column] or without_missing(values).null_count < len(values)
            if self._possible[column] == (Form.TEXT,):
                self._samples[column].add(values)
                continue
            self._samples[column].add_measured(values)
            if self._grouped[column] and Form.INTEGER not in self._possible[column]:
                self._grouped[column] = is_grouped(values)
            if Form.INTEGER in self._possible[column] and not self._padded[column]:
                self._padded[column] = padded(values)

    def doubtful(self) -> list[int]:
        """Columns to be counted by shape."""
        doubtful = [column for column in range(len(self._names)) if self._is_doubtful(column)]
        forms = {self._form(column) for column in range(len(self._names))}
        if self._semicolons and (doubtful or {Form.FLOAT, Form.DECIMAL_COMMA} <= forms):
            marked = (Form.FLOAT, Form.DECIMAL_COMMA)  # 1.234 is a thousand where 0,5 is a half
            doubtful += [
                column for column in range(len(self._names)) if column not in doubtful and self._form(column) in marked
            ]
        return sorted(doubtful)

    def _is_doubtful(self, column: int) -> bool:
        form, given_kind = self._form(column), self._options.given(self._names[column])
        if given_kind is not None:
            is_decided = (
                given_kind.decimal is None and given_kind.dates is None and form in _FORMS.get(given_kind.kind, ())
            )
            return given_kind.kind.measured and not is_decided
        return self._samples[column].suspicious if form is Form.TEXT else form is Form.INTEGER and self._padded[column]

    def _form(self, column: int) -> Form:
        return self._possible[column][0]

    def confirmed_by(self, readers: Sequence[ColumnReader]) -> frozenset[int]:
        """Columns of which reading shows whether they still have their form."""
        return frozenset(
            column
            for column, reader in enumerate(readers)
            if reader.way is None and reader.form is self._form(column) and self._possible[column] != self._allowed
        )

    def readers(self, counted: Mapping[int, Shapes]) -> list[ColumnReader]:
        """Raises InvalidData where no cell of a column is of the kind that is given for it."""
        ways_of = {column: self._ways(column, shapes) for column, shapes in counted.items()}
        evidence = Evidence(self._semicolons)
        for best in ways_of.values():
            evidence.add(best)
        for column in set(range(len(self._names))) - set(ways_of):
            evidence.marks |= {Form.FLOAT: {"."}, Form.DECIMAL_COMMA: {","}}.get(self._form(column), set())
        readers = []
        for column, name in enumerate(self._names):
            given_kind = self._options.given(name)
            reader = ColumnReader(name, self._form(column), tuple(self._options.missing), given=given_kind is not None)
            if given_kind is not None and not given_kind.kind.measured:
                reader.form, reader.kind = Form.TEXT, given_kind.kind
            elif given_kind is None and self._words[column] and self._possible[column] == self._allowed:
                reader.form = Form.TEXT
            elif column in counted and counted[column].total:
                _choose(reader, counted[column], ways_of[column], evidence)
            reader.other = self._other_notation(column, reader)
            readers.append(reader)
        return readers

    def _other_notation(self, column: int, reader: ColumnReader) -> Notation | None:
        """The notation that the cells of a column have, too; None where there is none, or the kind excludes it."""
        if reader.way is not None:
            return reader.others[0].notation if reader.applied and len(reader.others) == 1 else None
        given_kind = self._options.given(self._names[column])
        if not self._grouped[column] or (given_kind is not None and given_kind.decimal is not None):
            return None
        if reader.form is Form.FLOAT:
            return Notation(decimal=",", thousands=".")
        return Notation(thousands=",") if reader.form is Form.DECIMAL_COMMA else None

    def _ways(self, column: int, shapes: Shapes) -> list[Way]:
        """The best readings of a column, of the kind that is given for it."""
        given_kind = self._options.given(self._names[column])
        if given_kind is not None and not given_kind.kind.measured:
            return []
        best = ways(shapes) if given_kind is None else _given_ways(given_kind, shapes)
        if given_kind is not None and shapes.total and not (best and best[0].cells):
            where = place("kinds", self._names[column])
            refuse([Fault(where, f"No value of this column is a {_NOUNS[given_kind.kind]}.", "kind_not_found")])
        return best


def _given_ways(given_kind: GivenKind, shapes: Shapes) -> list[Way]:
    """The best readings of this kind; none where no cell has one."""
    if given_kind.kind is ColumnKind.BOOLEAN:
        candidates = [Way(given_kind.kind, Notation(), shapes.booleans)]
    elif given_kind.kind is ColumnKind.NUMERIC:
        candidates = [way for way in numbers(shapes) if given_kind.decimal in {None, way.decimal}]
    elif given_kind.dates is None:
        candidates = list(dates(shapes))
    else:
        candidates = [Way(given_kind.kind, Notation(dates=given_kind.dates), shapes.dates[given_kind.dates])]
    most = max((way.cells for way in candidates), default=0)
    return [way for way in candidates if way.cells == most > 0]


def _choose(reader: ColumnReader, shapes: Shapes, candidates: list[Way], evidence: Evidence) -> None:
    """The reading of a counted column."""
    words = markers(shapes)
    fit = candidates[0].cells
    strays = shapes.total - sum(words.values()) - fit
    if not reader.given and (not fit or fit < MOSTLY * (fit + strays)):
        return
    if not reader.given and candidates[0].kind is ColumnKind.NUMERIC:
        reader.code = code_of(shapes, within_64_bits=reader.form is Form.INTEGER or candidates[0].whole)
        if reader.code is not None:
            reader.form = Form.TEXT
            return
    way = evidence.decides(candidates)
    numbers_alone = len(candidates) == 1 and candidates[0].kind is ColumnKind.NUMERIC and not shapes.padded
    if reader.form in NUMBERS and numbers_alone and candidates[0].notation == reader.notation:
        return
    reader.way, reader.markers = way or candidates[0], words
    reader.padded = shapes.padded and reader.way.kind is ColumnKind.NUMERIC
    reader.others = tuple(other for other in candidates if other != reader.way)
    reader.applied = reader.given or (way is not None and few(strays, fit))
