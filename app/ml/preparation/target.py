"""The target: numbers, or class labels and their codes.

Labels of a numeric column are whole numbers if every one of them is whole (1 and 1.0 are the same number),
floats if not; texts stay texts and truths truths, so "1", 1 and true never meet. Codes follow the labels'
ascending order.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import Labels, TargetKind, Vector
from app.ml.contract.labels import Class
from app.ml.numerics.scaling import MAX_MULTIPLIABLE
from app.ml.preparation.arrow_columns import Cells, codes, distinct, measured, pointer

EXACT = 2.0**53
"""Below this every whole number is a float64."""
MAX_NAMED_ROWS = 10
"""Faulty rows named in one refusal."""


class Target(NamedTuple):
    rows: Labels
    """The rows of the table that have a target, ascending: (m,)."""
    y: Vector
    """(m,) numbers, or class codes."""
    classes: tuple[Class, ...] | None

    @property
    def codes(self) -> Labels | None:
        """(m,) class codes; None without classes."""
        return None if self.classes is None else self.y.astype(np.intp)


def read_target(cells: Cells, name: str, kind: TargetKind) -> Target:
    """Raises InvalidData for infinite numbers, and where fewer than two rows have a target."""
    there = present(cells)
    rows = np.flatnonzero(there)
    if rows.size < 2:
        raise InvalidData(f"Fewer than 2 rows have a value in the target {name!r}.")
    if kind is TargetKind.NUMBERS:
        return Target(rows, measured(cells, name)[rows], None)
    codes, classes = _coded(cells, name, there)
    return Target(rows, codes[rows], classes)


class Classes(NamedTuple):
    """Classes beside the rows of a table, which no fit sees."""

    codes: Labels
    """(n,) -1 where there is no value."""
    names: tuple[Class, ...]

    def take(self, rows: Labels) -> "Classes":
        return self._replace(codes=self.codes[rows])


def read_classes(cells: Cells, name: str) -> Classes:
    """Raises InvalidData for infinite numbers."""
    there = present(cells)
    codes, classes = _coded(cells, name, there)
    return Classes(np.where(there, codes, -1).astype(np.intp), classes)


def _coded(cells: Cells, name: str, there: NDArray[np.bool_]) -> tuple[Vector, tuple[Class, ...]]:
    """(n,) class codes, meaningless but where there is a value, and the classes."""
    if pa.types.is_floating(cells.type):
        measured(cells, name)
        cells = pc.add(cells, 0.0)  # -0.0 becomes 0.0
    words = distinct(cells.filter(pa.array(there)))
    return codes(cells, words), labels(words)


def present(cells: Cells) -> NDArray[np.bool_]:
    """(n,) whether there is a value."""
    there = pc.is_valid(cells)
    if pa.types.is_floating(cells.type):
        there = pc.and_(there, pc.invert(pc.is_nan(pc.fill_null(cells, 0.0))))
    is_present: NDArray[np.bool_] = there.to_numpy(zero_copy_only=False)
    return is_present


def labels(words: pa.Array) -> tuple[Class, ...]:
    """Class labels as JSON."""
    labels_ = words.to_pylist()
    if pa.types.is_floating(words.type) and all(value.is_integer() and abs(value) <= EXACT for value in labels_):
        return tuple(map(int, labels_))
    return tuple(labels_)


def read_weights(cells: Cells, name: str, rows: Labels, exponent: int = 1) -> Vector:
    """The weights of these rows: the column to this power, -2 for a column of errors.

    Raises InvalidData for those that are missing, not above zero or out of all proportion.
    """
    weights, usable = usable_weights(measured(cells, name)[rows], exponent)
    wrong = rows[~usable]
    if wrong.size:
        what, most = ("Row weights", MAX_MULTIPLIABLE) if exponent == 1 else ("Errors of rows", MAX_MULTIPLIABLE**0.5)
        raise InvalidData(
            f"{what} are numbers above zero, {1 / most:.0e} to {most:.0e}; {wrong.size} of {rows.size} are not.",
            faults=list(_weight_faults(wrong[:MAX_NAMED_ROWS], name)),
        )
    return weights


def usable_weights(values: Vector, exponent: int) -> tuple[Vector, NDArray[np.bool_]]:
    """The values to this power, and which of them can weigh a row."""
    with np.errstate(all="ignore"):
        weights = values**exponent
    return weights, (values > 0) & (weights >= 1 / MAX_MULTIPLIABLE) & (weights <= MAX_MULTIPLIABLE)


def _weight_faults(rows: Labels, name: str) -> Iterator[Fault]:
    return (Fault(pointer(row, name), "A number above zero is needed.", "bad_weight") for row in rows.tolist())
