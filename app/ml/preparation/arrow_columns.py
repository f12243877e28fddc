"""Columns of a table as numbers, by Arrow kernels: no Python object per cell."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.contract.notation import Notation

UNSEEN = -1.0
"""The code of a category that has none."""
MICROSECONDS = 1e6

Cells: TypeAlias = pa.Array | pa.ChunkedArray


class RawColumn(NamedTuple):
    name: str
    kind: ColumnKind
    notation: Notation | None = None
    source_kind: str | None = None
    role: Literal["exposure", "offset"] | None = None
    """Part of the score that it is; None: it is an input like others."""


class Raw(NamedTuple):
    """A table read for training: the raw matrix, coded by everything the table holds, not by what any model knows."""

    columns: tuple[RawColumn, ...]
    values: Matrix
    """(n, p) in column order (Fortran): statistics go column by column."""
    vocabularies: tuple[pa.Array | None, ...]
    """Vocabulary of each categorical column: its different values by code, ascending by code point."""

    @classmethod
    def read(cls, table: pa.Table, columns: Sequence[RawColumn]) -> "Raw":
        """Raises InvalidData for infinities."""
        values = np.empty((table.num_rows, len(columns)), order="F")
        vocabularies: list[pa.Array | None] = []
        for index, column in enumerate(columns):
            cells = table.column(column.name)
            words = None if column.kind.measured else distinct(cells)
            values[:, index] = measured(cells, column.name) if words is None else codes(cells, words)
            vocabularies.append(words)
        return cls(tuple(columns), values, tuple(vocabularies))

    def named(self, names: Sequence[str]) -> "Raw":
        """The same rows, only these columns, in this order."""
        places = {column.name: place for place, column in enumerate(self.columns)}
        chosen = [places[name] for name in names]
        if chosen == list(places.values()):
            return self
        columns = tuple(self.columns[place] for place in chosen)
        return Raw(columns, self.values[:, chosen], tuple(self.vocabularies[place] for place in chosen))


def measured(cells: Cells, name: str) -> Vector:
    """Numbers, booleans as 0 and 1, times as seconds since 1970 in UTC; missing is NaN. Shape (n,).

    Raises InvalidData for infinities.
    """
    if pa.types.is_temporal(cells.type):
        return _floats(cells.cast(pa.timestamp("us", "UTC")).cast(pa.int64())) / MICROSECONDS
    values = _floats(cells)
    if np.isinf(values).any():
        raise InvalidData(
            f"Column {name!r} holds infinite numbers.",
            faults=[
                Fault(pointer(row, name), "This number is not finite.", "not_finite")
                for row in np.flatnonzero(np.isinf(values))[:10].tolist()
            ],
        )
    return values


def distinct(cells: Cells) -> pa.Array:
    """The different values that are not missing, ascending (texts by code point, False before True)."""
    values = pc.unique(cells).drop_null()
    return values.take(pc.sort_indices(values))


def codes(cells: Cells, vocabulary: pa.Array, absent: float = UNSEEN) -> Vector:
    """The place of each value in the vocabulary; `absent` for others; NaN for missing. Shape (n,)."""
    places = pc.fill_null(pc.index_in(cells, value_set=vocabulary.cast(cells.type)).cast(pa.float64()), absent)
    return _floats(pc.if_else(pc.is_valid(cells), places, pa.scalar(None, pa.float64())))


def refuse_unseen(positions: Vector, name: str) -> None:
    """Raises InvalidData for codes (n,) of missing values and of values without a level, naming rows."""
    unknown = np.flatnonzero(~(positions >= 0))
    if unknown.size:
        faults = [
            Fault(pointer(row, name), "The model has no item of this name.", "unknown_item")
            for row in unknown[:10].tolist()
        ]
        raise InvalidData(
            f"Column {name!r} has {unknown.size} rows of items that the model does not have.", faults=faults
        )


def refuse_no_exposure(exposures: Vector, name: str) -> None:
    """Raises InvalidData for exposures (n,) that are not above 0, naming rows; a missing one has no prediction."""
    wrong = np.flatnonzero(exposures <= 0)
    if wrong.size:
        detail = "An exposure is above 0: leave the row out."
        faults = [Fault(pointer(row, name), detail, "bad_exposure") for row in wrong[:10].tolist()]
        raise InvalidData(f"Column {name!r} has {wrong.size} rows without exposure.", faults=faults)


def pointer(row: int, name: str) -> str:
    """The JSON pointer (RFC 6901) of a cell of the table, rows counted from 0."""
    return place("rows", row, name)


def _floats(cells: Cells) -> Vector:
    values: Vector = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values
