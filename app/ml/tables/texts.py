"""Text cells of a table as the values that JSON would have, read as those of the training data were."""

import math
import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.missing_markers import MISSING
from app.ml.contract.notation import PLAIN, Notation, read_and_misfits, without_missing
from app.ml.tables.casting import TEXTS

WHOLE = re.compile(r"\s*[+-]?[0-9]{1,400}\s*", re.ASCII)
_DIGIT = re.compile("[0-9]")
NUMBER = re.compile(r"\s*[+-]?([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?\s*+", re.ASCII)


def read_texts(column: InputColumn | None, cells: Sequence[str], missing: Collection[str] = ()) -> list[object]:
    """Values of the cells; one that does not fit the column is missing, as where an upload gives the kind of a column.

    Where no cell fits, words without a digit stay texts, which are faults like any other text. column: None for one
    that the model does not have. missing: markers of a missing value in all columns.
    """
    if column is None:
        return [cell or None for cell in cells]
    kind, notation = ColumnKind(column.source_kind or column.kind), column.notation or PLAIN
    notation = notation.model_copy(update={"missing": (*missing, *notation.missing)})
    if kind in TEXTS and column.source_kind is not None:  # what training could not read was missing
        return _values(cells, ColumnKind(column.kind), notation, lenient=True)
    if kind is ColumnKind.NUMERIC and notation.plain:
        markers = {*MISSING, *notation.missing}
        numbers = [None if cell.strip() in markers else _number(cell) for cell in cells]
        if str not in set(map(type, numbers)):
            return numbers
    return _values(cells, kind, notation, lenient=False)


def _values(cells: Sequence[str], kind: ColumnKind, notation: Notation, *, lenient: bool) -> list[object]:
    array = pa.array(cells, pa.string())
    if kind in TEXTS:
        return list(without_missing(array, notation.missing).to_pylist())
    read, misfits = read_and_misfits(array, notation, kind)
    values = [_plain(value) for value in read.to_pylist()]
    if lenient or read.null_count < len(read):
        return values
    return [
        cell if misfit and not _DIGIT.search(cell) else value
        for cell, value, misfit in zip(cells, values, misfits.to_pylist(), strict=True)
    ]


def _plain(value: Any) -> object:
    """A value as JSON has it; an infinite number is missing, as in an upload."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value


def _number(cell: str) -> object:
    """A number, the cell itself if it is none, or None if it is infinite, as in an upload."""
    if WHOLE.fullmatch(cell):
        return int(cell)
    if not NUMBER.fullmatch(cell):
        return cell
    number = float(cell)
    return number if math.isfinite(number) else None
