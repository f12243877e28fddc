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
        others = [at for at in range(len(columns)) if at not in confirmed]
        narrowed = narrow_all([self._possible[at] for at in others], [columns[at] for at in others])
        for at, forms in zip(others, narrowed, strict=True):
            self._possible[at] = forms
        for at, values in enumerate(columns):
            if self._possible[at] == self._allowed:
                self._words[at] = self._words[at] or without_missing(values).null_count < len(values)
            if self._possible[at] == (Form.TEXT,):
                self._samples[at].add(values)
                continue
            self._samples[at].add_measured(values)
            if self._grouped[at] and Form.INTEGER not in self._possible[at]:
                self._grouped[at] = is_grouped(values)
            if Form.INTEGER in self._possible[at] and not self._padded[at]:
                self._padded[at] = padded(values)

    def doubtful(self) -> list[int]:
        """Columns to be counted by shape."""
        doubtful = [at for at in range(len(self._names)) if self._is_doubtful(at)]
        forms = {self._form(at) for at in range(len(self._names))}
        if self._semicolons and (doubtful or {Form.FLOAT, Form.DECIMAL_COMMA} <= forms):
            marked = (Form.FLOAT, Form.DECIMAL_COMMA)  # 1.234 is a thousand where 0,5 is a half
            doubtful += [at for at in range(len(self._names)) if at not in doubtful and self._form(at) in marked]
        return sorted(doubtful)

    def _is_doubtful(self, at: int) -> bool:
        form, given = self._form(at), self._options.given(self._names[at])
        if given is not None:
            known = given.decimal is None and given.dates is None and form in _FORMS.get(given.kind, ())
            return given.kind.measured and not known
        return self._samples[at].suspicious if form is Form.TEXT else form is Form.INTEGER and self._padded[at]

    def _form(self, at: int) -> Form:
        return self._possible[at][0]

    def confirmed_by(self, readers: Sequence[ColumnReader]) -> frozenset[int]:
        """Columns of which reading shows whether they still have their form."""
        return frozenset(
            at
            for at, reader in enumerate(readers)
            if reader.way is None and reader.form is self._form(at) and self._possible[at] != self._allowed
        )

    def readers(self, counted: Mapping[int, Shapes]) -> list[ColumnReader]:
        """Raises InvalidData where no cell of a column is of the kind that is given for it."""
        found = {at: self._ways(at, shapes) for at, shapes in counted.items()}
        evidence = Evidence(self._semicolons)
        for best in found.values():
            evidence.add(best)
        for at in set(range(len(self._names))) - set(found):
            evidence.marks |= {Form.FLOAT: {"."}, Form.DECIMAL_COMMA: {","}}.get(self._form(at), set())
        readers = []
        for at, name in enumerate(self._names):
            given = self._options.given(name)
            reader = ColumnReader(name, self._form(at), tuple(self._options.missing), given=given is not None)
            if given is not None and not given.kind.measured:
                reader.form, reader.kind = Form.TEXT, given.kind
            elif given is None and self._words[at] and self._possible[at] == self._allowed:
                reader.form = Form.TEXT
            elif at in counted and counted[at].total:
                _choose(reader, counted[at], found[at], evidence)
            reader.other = self._other_notation(at, reader)
            readers.append(reader)
        return readers

    def _other_notation(self, at: int, reader: ColumnReader) -> Notation | None:
        """The notation that the cells of a column have, too; None where there is none, or the kind excludes it."""
        if reader.way is not None:
            return reader.others[0].notation if reader.applied and len(reader.others) == 1 else None
        given = self._options.given(self._names[at])
        if not self._grouped[at] or (given is not None and given.decimal is not None):
            return None
        if reader.form is Form.FLOAT:
            return Notation(decimal=",", thousands=".")
        return Notation(thousands=",") if reader.form is Form.DECIMAL_COMMA else None

    def _ways(self, at: int, shapes: Shapes) -> list[Way]:
        """The best readings of a column, of the kind that is given for it."""
        given = self._options.given(self._names[at])
        if given is not None and not given.kind.measured:
            return []
        best = ways(shapes) if given is None else _given_ways(given, shapes)
        if given is not None and shapes.total and not (best and best[0].cells):
            where = place("kinds", self._names[at])
            refuse([Fault(where, f"No value of this column is a {_NOUNS[given.kind]}.", "kind_not_found")])
        return best


def _given_ways(given: GivenKind, shapes: Shapes) -> list[Way]:
    """The best readings of this kind; none where no cell has one."""
    if given.kind is ColumnKind.BOOLEAN:
        found = [Way(given.kind, Notation(), shapes.booleans)]
    elif given.kind is ColumnKind.NUMERIC:
        found = [way for way in numbers(shapes) if given.decimal in {None, way.decimal}]
    elif given.dates is None:
        found = list(dates(shapes))
    else:
        found = [Way(given.kind, Notation(dates=given.dates), shapes.dates[given.dates])]
    most = max((way.cells for way in found), default=0)
    return [way for way in found if way.cells == most > 0]


def _choose(reader: ColumnReader, shapes: Shapes, found: list[Way], evidence: Evidence) -> None:
    """The reading of a counted column."""
    words = markers(shapes)
    fit = found[0].cells
    strays = shapes.total - sum(words.values()) - fit
    if not reader.given and (not fit or fit < MOSTLY * (fit + strays)):
        return
    if not reader.given and found[0].kind is ColumnKind.NUMERIC:
        reader.code = code_of(shapes, within_64_bits=reader.form is Form.INTEGER or found[0].whole)
        if reader.code is not None:
            reader.form = Form.TEXT
            return
    way = evidence.decides(found)
    numbers_alone = len(found) == 1 and found[0].kind is ColumnKind.NUMERIC and not shapes.padded
    if reader.form in NUMBERS and numbers_alone and found[0].notation == reader.notation:
        return
    reader.way, reader.markers = way or found[0], words
    reader.padded = shapes.padded and reader.way.kind is ColumnKind.NUMERIC
    reader.others = tuple(other for other in found if other != reader.way)
    reader.applied = reader.given or (way is not None and few(strays, fit))
