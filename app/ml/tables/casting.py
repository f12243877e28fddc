"""Columns used as another kind than the dataset has them: store numbers as categories, texts as numbers or dates.

Numbers become categories by their shortest text, whole ones without a fraction: 5 and 5.0 are the category 5. Truth
values become `true` and `false`, or 1 and 0; times their ISO 8601 text in UTC. Texts are read as numbers, times or
truth values in the column's notation, and numbers such as 20241231 as dates; what does not fit is missing. A column
whose cells have two notations, as 1.234, is converted from that of the dataset to that of a model.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa

from app.base.faults import Fault, place
from app.ml.contract.algorithm import JSON
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, InputColumn, TableColumn
from app.ml.contract.given_kinds import KINDS, KindName
from app.ml.contract.notation import PLAIN, Notation, number_markers, read_closest
from app.ml.preparation.arrow_columns import Cells
from app.ml.tables.cell_casting import convert_notation, recast_cells, remove_markers, write_as_in_file

WHOLE = re.compile(r"\s*[+-]?[0-9]{1,400}\s*", re.ASCII)
WHOLE_BITS = 63
"""Bits of a whole number beside its sign."""
_BEGINNING = re.compile(r"(?i)[\W_]*+(?:[0-9]|inf(?:inity)?$)")
TEXTS = {ColumnKind.CATEGORICAL, ColumnKind.TEXT}
_BETWEEN_NUMBERS = {
    (ColumnKind.BOOLEAN, ColumnKind.NUMERIC),
    (ColumnKind.NUMERIC, ColumnKind.BOOLEAN),
    (ColumnKind.NUMERIC, ColumnKind.DATETIME),
}


def possible(kind: ColumnKind, wanted: ColumnKind) -> bool:
    """True if a column of the one kind can be used as the other."""
    return kind is wanted or not TEXTS.isdisjoint({kind, wanted}) or (kind, wanted) in _BETWEEN_NUMBERS


def training_of(receipt: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The receipt of the training, whatever batches were fed, or calibrators fitted, since."""
    trained: Mapping[str, JSON] = receipt.get("training", receipt)
    return trained


def kinds_used(receipt: Mapping[str, JSON]) -> Mapping[str, KindName]:
    """The kinds of columns that a model, or the members of one, gave for its training."""
    if "members" in receipt:
        return {name: kind for member in receipt["members"] for name, kind in kinds_used(member["receipt"]).items()}
    kinds: Mapping[str, KindName] = (training_of(receipt).get("spec") or {}).get("kinds") or {}
    return kinds


class TrainedModel(Protocol):
    """Receipt, inputs and target of a model, or of its header."""

    @property
    def receipt(self) -> Mapping[str, JSON]: ...

    @property
    def inputs(self) -> Sequence[InputColumn]: ...

    @property
    def target(self) -> str | None: ...


KindUsed: TypeAlias = KindName | InputColumn
"""A kind by its name; or that of an input of a model, with the notation of its cells."""


def kinds_wanted(model: TrainedModel, columns: Sequence[TableColumn]) -> Mapping[str, KindUsed]:
    """The kinds as which a model uses the columns of a dataset: those of its training, and those that suit its inputs.

    The file of another dataset may leave the kind of a column open: an empty one suits any input, whole numbers suit
    categories, and 0 and 1 truth values. Texts suit numbers, dates and truth values if some are such in the model's
    notation. A column that may be in two notations is in that of the model.
    """
    kinds: dict[str, KindUsed] = dict(kinds_used(model.receipt))
    by_name = {column.name: column for column in columns}
    reading = model.receipt.get("reading") or {}
    for wanted in model.inputs:
        column = by_name.get(wanted.name)
        if column is None:
            continue
        notation = notation_in(wanted, reading)
        used = wanted.model_copy(update={"notation": notation})
        settled = wanted.name in kinds or _suits(column, used) or _is_converted(column, used, reading.get("decimal"))
        if settled or _is_read_first(column, used) or (column.kind == wanted.kind and notation.missing):
            kinds[wanted.name] = used
    truth = by_name.get(model.target or "")
    if truth is not None and truth.other_notation is not None and truth.kind == ColumnKind.NUMERIC:
        notation = truth.other_notation.notation
        if notation.decimal == reading.get("decimal"):
            kinds.setdefault(truth.name, InputColumn(name=truth.name, kind=truth.kind, notation=notation))
    return kinds


def notation_in(column: InputColumn, reading: Mapping[str, JSON]) -> Notation:
    """The notation of the cells of an input of a model in files like that of its training, with all markers.

    A file whose other numbers have decimal commas has no decimal points in this one.
    """
    notation = column.notation or PLAIN
    changes: dict[str, object] = {"missing": (*reading.get("missing", ()), *notation.missing)}
    if notation.plain and reading.get("decimal") == ",":
        changes["decimal"] = ","
    return notation.model_copy(update=changes)


def _is_converted(column: TableColumn, wanted: InputColumn, decimal: str | None) -> bool:
    """True if the column has two notations and the model has the one that the dataset does not take.

    decimal: the mark in the file of the training; None: not known.
    """
    if column.kind != wanted.kind or column.other_notation is None or wanted.notation is None:
        return False
    other = column.other_notation.notation
    if wanted.kind == ColumnKind.DATETIME:
        return wanted.notation.dates == other.dates
    is_read = decimal is not None or not wanted.notation.plain
    return is_read and wanted.notation.decimal == other.decimal


def _is_read_first(column: TableColumn, wanted: InputColumn) -> bool:
    """True for texts that are read as numbers or truth values before they become categories, as in the training."""
    if column.kind not in TEXTS or wanted.kind not in TEXTS or wanted.source_kind is None:
        return False
    source = wanted.model_copy(update={"kind": wanted.source_kind})
    return ColumnKind(wanted.source_kind).measured and _is_readable(column, source)


def _suits(column: TableColumn, wanted: InputColumn) -> bool:
    """True for a column of another kind than the one wanted, if its values may be of that, too."""
    kind, other = ColumnKind(column.kind), ColumnKind(wanted.kind)
    if kind is other or column.distinct == 0 or _has_markers_alone(column, wanted):
        return kind is not other
    if kind in TEXTS:
        return other.measured and _is_readable(column, wanted)
    if other in TEXTS:
        return kind is not ColumnKind.DATETIME or column.cell_texts is not None
    return (kind, other) == (ColumnKind.NUMERIC, ColumnKind.BOOLEAN) and _is_binary(column)


def _has_markers_alone(column: TableColumn, wanted: InputColumn) -> bool:
    """True if all numbers of the column are markers of a missing value."""
    markers = number_markers(wanted.notation)
    return bool(markers) and {column.minimum, column.maximum} <= {*markers} and (column.distinct or 0) <= 2


def _is_readable(column: TableColumn, wanted: InputColumn) -> bool:
    """True if a cell of this column of texts fits the input, or none is a mere word."""
    if not column.levels:
        return wanted.kind == ColumnKind.NUMERIC and column.mostly_numbers is not None
    cells = pa.array(column.levels, pa.string())
    if any(map(is_long, column.levels)):
        return False
    values, misfits = read_closest(cells, wanted.notation or PLAIN, wanted.kind)
    return values.null_count < len(values) or not any(map(is_word, cells.filter(misfits).to_pylist()))


def is_word(cell: str) -> bool:
    """True for a cell that does not begin as numbers and dates do, with a digit behind signs, nor is infinite."""
    return _BEGINNING.match(cell) is None


def is_long(cell: str) -> bool:
    """True for a whole number that has more than 64 bits."""
    return WHOLE.fullmatch(cell) is not None and not -(1 << WHOLE_BITS) <= int(cell) < 1 << WHOLE_BITS


def _is_binary(column: TableColumn) -> bool:
    """True if all numbers of the column are 0 or 1."""
    return (column.distinct or 0) <= 2 and {column.minimum, column.maximum} <= {0.0, 1.0}


def kind_faults(kinds: Mapping[str, KindName], columns: Sequence[TableColumn]) -> Iterator[Fault]:
    """Columns that do not exist, or cannot be used as such a kind or in its notation."""
    columns_by_name = {column.name: column for column in columns}
    for name, kind_name in kinds.items():
        pointer, column, wanted = place("kinds", name), columns_by_name.get(name), KINDS[kind_name].kind
        if column is None:
            yield no_column(pointer, name, columns_by_name)
        elif not possible(ColumnKind(column.kind), wanted) or (
            (column.kind, wanted) == (ColumnKind.NUMERIC, ColumnKind.BOOLEAN) and not _is_binary(column)
        ):
            yield Fault(pointer, f"A {column.kind} column cannot be used as a {wanted} one.", "wrong_kind")
    yield from notation_faults(columns, kinds, "/kinds")


def kind_warnings(kinds: Mapping[str, KindName], columns: Sequence[TableColumn]) -> Iterator[str]:
    for column in columns:
        wanted = KINDS[kinds[column.name]].kind if column.name in kinds else ColumnKind(column.kind)
        if wanted not in TEXTS and ColumnKind(column.kind) in TEXTS:
            yield f"Column {column.name!r} holds texts: those that cannot be read as {wanted} values are missing."


def recast_columns(columns: Sequence[TableColumn], kinds: Mapping[str, KindUsed]) -> list[TableColumn]:
    """The data sheet of the columns as they are used."""
    return [_recast_column(column, kinds.get(column.name)) for column in columns]


def _recast_column(column: TableColumn, wanted: KindUsed | None) -> TableColumn:
    if wanted is None:
        return column
    kind, notation = _used(column, wanted)
    if isinstance(wanted, InputColumn) and _is_read_first(column, wanted):
        return column._replace(kind=kind.value, source_kind=column.kind, read_as=wanted.source_kind, notation=notation)
    if kind == column.kind:
        column, other = column._replace(markers=notation.missing), column.other_notation
        if other is None or not other.exact or not _is_same(other.notation, notation, kind):
            return column
        return column._replace(notation=notation, converted=column.notation or PLAIN, minimum=None, maximum=None)
    if not possible(ColumnKind(column.kind), kind):
        return column
    return column._replace(
        kind=kind.value,
        source_kind=column.source_kind or column.kind,
        cell_texts=column.cell_texts if isinstance(wanted, InputColumn) and wanted.source_kind is None else None,
        markers=notation.missing if isinstance(wanted, InputColumn) else (),
        notation=None if notation == PLAIN else notation,
        minimum=None,
        maximum=None,
        mostly_numbers=None,
        identifier_like=False,
    )


def _used(column: TableColumn, wanted: KindUsed) -> tuple[ColumnKind, Notation]:
    """The kind and the notation in which a column is used."""
    if isinstance(wanted, InputColumn):
        return ColumnKind(wanted.kind), wanted.notation or PLAIN
    kind, decimal, dates = KINDS[wanted]
    notation = column.notation or PLAIN
    changes = {"decimal": decimal or notation.decimal, "dates": dates or notation.dates}
    if decimal is not None:
        changes["thousands"] = "." if decimal == "," else ","
    return kind, notation.model_copy(update=changes)


def _is_same(left: Notation, other: Notation, kind: ColumnKind) -> bool:
    """True if numbers have one decimal mark, or dates one order."""
    return left.dates == other.dates if kind is ColumnKind.DATETIME else left.decimal == other.decimal


def notation_faults(columns: Sequence[TableColumn], kinds: Mapping[str, KindUsed], pointer: str) -> Iterator[Fault]:
    """Columns that are wanted in another notation, in which their values cannot be had from those of the dataset."""
    for column in columns:
        wanted, other, texts = kinds.get(column.name), column.other_notation, column.cell_texts
        if isinstance(wanted, InputColumn) and wanted.kind in TEXTS and texts is not None and not texts.unique:
            detail = (
                f"Its column {column.name!r} has one value in several texts, as 5 and 05, which are several categories "
                f'of the model: upload the file again with kinds={{"{column.name}": "{wanted.kind}"}}.'
            )
            yield Fault(pointer, detail, "ambiguous_texts")
        if wanted is None or other is None or other.exact:
            continue
        kind, notation = _used(column, wanted)
        if kind == column.kind and _is_same(other.notation, notation, kind):
            name = f"date:{notation.dates}" if kind is ColumnKind.DATETIME else _POINTS[notation.decimal]
            detail = (
                f"The cells of its column {column.name!r} have two meanings, and were read with the other one: upload "
                f'the file again with kinds={{"{column.name}": "{name}"}}.'
            )
            yield Fault(pointer, detail, "ambiguous_notation")


_POINTS = {".": "numeric:point", ",": "numeric:comma"}


def recast_table(table: pa.Table, columns: Sequence[TableColumn]) -> pa.Table:
    """The table with those columns of it cast that are used as another kind than theirs, or in another notation."""
    for column in columns:
        if column.name in table.column_names:
            cells = table.column(column.name)
            used = _recast(cells, column)
            if used is not cells:
                table = table.set_column(table.column_names.index(column.name), column.name, used)
    return table


def _recast(cells: Cells, column: TableColumn) -> Cells:
    """The cells as they are used; the same object where that is as they are."""
    if column.markers:
        cells = remove_markers(cells, column.markers)
    if column.converted is not None and column.other_notation is not None:
        return convert_notation(cells, column.converted, column.other_notation)
    if column.source_kind is None:
        return cells
    notation = column.notation or PLAIN
    if column.read_as is not None:
        cells = recast_cells(cells, ColumnKind(column.read_as), notation)
    cells = recast_cells(cells, ColumnKind(column.kind), notation)
    if column.cell_texts is not None and column.kind in TEXTS:
        return write_as_in_file(cells, column.cell_texts.texts)
    return cells
