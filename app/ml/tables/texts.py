"""Text cells of a table as the values that JSON would have, read as those of the training data were."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.missing_markers import MISSING
from app.ml.contract.notation import Notation, read_closest, without_missing
from app.ml.tables.casting import TEXTS, WHOLE, is_long, is_word, notation_in

LONG_DIGITS = 18
"""Every whole number of so many digits is within 64 bits."""
NUMBER = re.compile(r"\s*[+-]?([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?\s*+", re.ASCII)


def read_texts(column: InputColumn | None, cells: Sequence[str], reading: Mapping[str, Any]) -> list[object]:
    """Values of the cells; one that does not fit the column is missing, as where an upload gives the kind of a column.

    Where no cell fits, words that do not begin like a number stay texts, which are faults like any other text. column:
    None for one that the model does not have. reading: options of the training data.
    """
    if column is None:
        return [cell or None for cell in cells]
    kind, notation = ColumnKind(column.source_kind or column.kind), notation_in(column, reading)
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
    read, misfits = read_closest(array, notation, kind)
    values = [_plain(value) for value in read.to_pylist()]
    if kind is ColumnKind.NUMERIC and max(map(len, cells), default=0) > LONG_DIGITS:
        values = [int(cell) if is_long(cell) else value for cell, value in zip(cells, values, strict=True)]
    if lenient or read.null_count < len(read):
        return values
    return [
        cell if misfit and is_word(cell) else value
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
