"""Columns used as another kind than the dataset has them: store numbers as categories, texts as numbers or dates.

Numbers become categories by their shortest text, whole ones without a fraction: 5 and 5.0 are the category 5. Truth
values become `true` and `false`, or 1 and 0; times their ISO 8601 text in UTC. Texts are read as numbers, times or
truth values in the column's notation, and numbers such as 20241231 as dates; what does not fit is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from app.faults import Fault, place
from app.ml.contract.algorithm import JSON
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, InputColumn, TableColumn
from app.ml.contract.given_kinds import KINDS, KindName
from app.ml.contract.notation import PLAIN, Notation, read
from app.ml.preparation.arrow_columns import Cells

TEXTS = {ColumnKind.CATEGORICAL, ColumnKind.TEXT}
_BETWEEN_NUMBERS = {
    (ColumnKind.BOOLEAN, ColumnKind.NUMERIC),
    (ColumnKind.NUMERIC, ColumnKind.BOOLEAN),
    (ColumnKind.NUMERIC, ColumnKind.DATETIME),
}


def possible(given: ColumnKind, wanted: ColumnKind) -> bool:
    """True if a column of the one kind can be used as the other."""
    return given is wanted or not TEXTS.isdisjoint({given, wanted}) or (given, wanted) in _BETWEEN_NUMBERS


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
    """Receipt and inputs of a model, or of its header."""

    @property
    def receipt(self) -> Mapping[str, JSON]: ...

    @property
    def inputs(self) -> Sequence[InputColumn]: ...


def kinds_wanted(model: TrainedModel, columns: Sequence[TableColumn]) -> Mapping[str, KindName]:
    """The kinds as which a model uses the columns of a dataset: those of its training, and those that suit its inputs.

    The file of another dataset may leave the kind of a column open: an empty one suits any input, whole numbers suit
    categories, and 0 and 1 truth values.
    """
    kinds, by_name = dict(kinds_used(model.receipt)), {column.name: column for column in columns}
    for wanted in model.inputs:
        column = by_name.get(wanted.name)
        if column is not None and wanted.name not in kinds and _suits(column, ColumnKind(wanted.kind)):
            kinds[wanted.name] = ColumnKind(wanted.kind).value
    return kinds


def _suits(column: TableColumn, wanted: ColumnKind) -> bool:
    """True for a column of another kind than the one wanted, if its values may be of that, too."""
    kind = ColumnKind(column.kind)
    if kind is wanted or column.distinct == 0:
        return kind is not wanted
    if kind in {ColumnKind.NUMERIC, ColumnKind.BOOLEAN} and wanted in TEXTS:
        return True
    return (kind, wanted) == (ColumnKind.NUMERIC, ColumnKind.BOOLEAN) and _is_binary(column)


def _is_binary(column: TableColumn) -> bool:
    """True if all numbers of the column are 0 or 1."""
    return (column.distinct or 0) <= 2 and {column.minimum, column.maximum} <= {0.0, 1.0}


def kind_faults(kinds: Mapping[str, KindName], columns: Sequence[TableColumn]) -> Iterator[Fault]:
    """Columns that do not exist, or cannot be used as such a kind."""
    known = {column.name: column for column in columns}
    for name, given in kinds.items():
        at, column, wanted = place("kinds", name), known.get(name), KINDS[given].kind
        if column is None:
            yield no_column(at, name, known)
        elif not possible(ColumnKind(column.kind), wanted) or (
            (column.kind, wanted) == (ColumnKind.NUMERIC, ColumnKind.BOOLEAN) and not _is_binary(column)
        ):
            yield Fault(at, f"A {column.kind} column cannot be used as a {wanted} one.", "wrong_kind")


def kind_warnings(kinds: Mapping[str, KindName], columns: Sequence[TableColumn]) -> Iterator[str]:
    for column in columns:
        wanted = KINDS[kinds[column.name]].kind if column.name in kinds else ColumnKind(column.kind)
        if wanted not in TEXTS and ColumnKind(column.kind) in TEXTS:
            yield f"Column {column.name!r} holds texts: those that cannot be read as {wanted} values are missing."


def recast_columns(columns: Sequence[TableColumn], kinds: Mapping[str, KindName]) -> list[TableColumn]:
    """The data sheet of the columns as they are used."""
    return [_recast_column(column, kinds.get(column.name)) for column in columns]


def _recast_column(column: TableColumn, name: KindName | None) -> TableColumn:
    if name is None:
        return column
    kind, decimal, dates = KINDS[name]
    if kind == column.kind or not possible(ColumnKind(column.kind), kind):
        return column
    notation = column.notation or PLAIN
    changes = {"decimal": decimal or notation.decimal, "dates": dates or notation.dates}
    if decimal is not None:
        changes["thousands"] = "." if decimal == "," else ","
    notation = notation.model_copy(update=changes)
    return column._replace(
        kind=kind.value,
        source_kind=column.source_kind or column.kind,
        notation=None if notation == PLAIN else notation,
        minimum=None,
        maximum=None,
        mostly_numbers=None,
        identifier_like=False,
    )


def recast_table(table: pa.Table, columns: Sequence[TableColumn]) -> pa.Table:
    """The table with those columns of it cast that are used as another kind than theirs."""
    for column in columns:
        if column.source_kind is None or column.name not in table.column_names:
            continue
        cells = recast_cells(table.column(column.name), ColumnKind(column.kind), column.notation or PLAIN)
        table = table.set_column(table.column_names.index(column.name), column.name, cells)
    return table


def recast_cells(cells: Cells, kind: ColumnKind, notation: Notation = PLAIN) -> Cells:
    """The cells in the Arrow type of this kind."""
    if isinstance(cells, pa.ChunkedArray):
        return pa.chunked_array([recast_cells(chunk, kind, notation) for chunk in cells.chunks], _TYPES[kind])
    if cells.type == _TYPES[kind]:
        return cells
    if pa.types.is_string(cells.type):
        return read(cells, notation, kind)
    if kind in TEXTS:
        return _texts(cells)
    if kind in {ColumnKind.DATETIME, ColumnKind.BOOLEAN}:  # 20241231, 0 and 1
        return read(_texts(cells), notation, kind)
    return cells.cast(_TYPES[kind])


def _texts(cells: pa.Array) -> pa.Array:
    if pa.types.is_floating(cells.type):
        cells = pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
        coded = pc.add(cells, 0.0).dictionary_encode()  # -0.0 is 0.0
        return pa.array([number_text(number) for number in coded.dictionary.to_pylist()], pa.string()).take(
            coded.indices
        )
    if pa.types.is_temporal(cells.type):
        return pc.strftime(cells, "%Y-%m-%dT%H:%M:%SZ")
    return cells.cast(pa.string())


def number_text(number: float) -> str:
    """The category of a number."""
    return repr(float(number) + 0.0).removesuffix(".0")


_TYPES = {
    ColumnKind.NUMERIC: pa.float64(),
    ColumnKind.BOOLEAN: pa.bool_(),
    ColumnKind.CATEGORICAL: pa.string(),
    ColumnKind.TEXT: pa.string(),
    ColumnKind.DATETIME: pa.timestamp("us", "UTC"),
}
