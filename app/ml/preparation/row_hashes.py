"""Hashes of the rows of a table: equal rows have equal hashes, in whichever dataset they are.

A hash is the sum, modulo 2⁶⁴, of one hash for each column, which mixes the column's name with the value: a number as
its 64-bit float (-0.0 as 0.0), a text as its UTF-8 bytes, and one constant for what is missing. So neither the order of
the columns, nor the codes of categories, nor the division into chunks matters. Two different rows have equal hashes
with a probability of 2⁻⁶⁴: with a million rows in each of two tables that happens to any of their pairs with a
probability of 5·10⁻⁸.

Reference: the mixing function is the finaliser of splitmix64: Steele, Lea & Flood (2014), OOPSLA, 453-472.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.ml.preparation.arrow_columns import Cells, measured

Hashes: TypeAlias = NDArray[np.uint64]

TARGET = b"target"
"""The target counts as such under whichever name it goes."""
FEATURE = b"feature"
TEXT = b"text"
MISSING = np.float64(np.nan).view(np.uint64)
STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
LAST_SHIFT = np.uint64(31)


def row_hashes(table: pa.Table, features: Iterable[str], target: str | None) -> Hashes:
    """(n,) of the values in these columns. Raises InvalidData for infinities."""
    total = np.zeros(table.num_rows, np.uint64)
    for hashes in column_hashes(table, features, target):
        total += hashes
    return total


def column_hashes(table: pa.Table, features: Iterable[str], target: str | None) -> Iterator[Hashes]:
    """(n,) for each column, the target last. Raises InvalidData for infinities."""
    for name in features:
        yield _column(table.column(name), name, _hashed(name, FEATURE))
    if target is not None:
        yield _column(table.column(target), target, _hashed("", TARGET))


def _column(cells: Cells, name: str, salt: np.uint64) -> Hashes:
    if not (pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)):
        return _mixed(_numbers(cells, name), salt)
    coded = (cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells).dictionary_encode()
    words = [_hashed(word, TEXT) for word in coded.dictionary.to_pylist()]
    places = pc.fill_null(coded.indices, len(words)).to_numpy(zero_copy_only=False)
    mixed: Hashes = _mixed(np.array([*words, MISSING], np.uint64), salt)[places]
    return mixed


def _numbers(cells: Cells, name: str) -> Hashes:
    """The bits of each number, of which equal ones have the same."""
    values = measured(cells, name) + 0.0  # a copy, where -0.0 is 0.0
    values[np.isnan(values)] = np.nan
    return values.view(np.uint64)


def _mixed(bits: Hashes, salt: np.uint64) -> Hashes:
    mixed = bits ^ salt
    for shift, factor in STEPS:
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> LAST_SHIFT
    return mixed


def _hashed(text: str, person: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(blake2b(text.encode(), digest_size=8, person=person).digest(), "little"))
