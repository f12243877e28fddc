"""Training rows of a model: recognised in any dataset by the hashes of the columns used.

A model keeps the 64-bit hash of every training row: 8 bytes a row, beside the model's own bytes. A row that training
has not seen is taken for one of n training rows with a probability of n · 2⁻⁶⁴ (`app.ml.preparation.row_hashes`),
unless all its values are equal. Where columns have few different values, that happens to new rows too: of rows from
the same source the share that is expected to equal a training row is 1 - s/n, where s training rows are unlike all
others (the estimate of Good and Turing). Only rows beyond that are recognised.

Reference: Good (1953), Biometrika 40:237.
"""

import hashlib
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import CorruptModel
from app.ml.models import safetensors_format, state_format
from app.ml.preparation.row_hashes import Hashes, row_hashes

Truths = NDArray[np.bool_]
FORMAT = 1
MAX_HASHED_ROWS = 10_000_000
"""Training rows whose hashes are kept; those of a larger training are not."""
SURE = 3.0
"""Standard deviations beyond what is expected, from which on more rows are recognised than chance explains."""
NOTABLE = 0.01
"""A larger share of rows that chance explains is worth a sentence."""


class SeenRows(NamedTuple):
    """The rows that one training has learned from."""

    data_digest: str
    """SHA-256 of their dataset."""
    features: tuple[str, ...]
    target: str | None
    rows: int
    single: int
    """Rows that are equal to no other."""
    hashes: NDArray[np.uint64]
    """The different ones, ascending."""

    @classmethod
    def of(cls, hashes: Hashes, data_digest: str, features: Sequence[str], target: str | None) -> Self:
        ordered = np.sort(hashes)
        first = np.ones(ordered.size + 1, np.bool_)  # of equal ones; and the end
        np.not_equal(ordered[1:], ordered[:-1], out=first[1:-1])
        singles = int(np.count_nonzero(first[:-1] & first[1:]))
        return cls(data_digest, tuple(features), target, hashes.size, singles, ordered[first[:-1]])

    def within(self, hashes: Hashes) -> Truths:
        """(n,) whether a row of this hash is among them."""
        places = np.minimum(np.searchsorted(self.hashes, hashes), self.hashes.size - 1)
        are_seen: Truths = self.hashes[places] == hashes
        return are_seen

    def expected(self, count: int, among: int) -> bool:
        """True if among so many new rows so many may well be equal to one of these."""
        share = 1 - self.single / self.rows
        deviation = sqrt(share * (1 - share) * among * (1 + among / self.rows))
        return count <= share * among + SURE * deviation


class Recognised(NamedTuple):
    """Rows of a table that equal a training row in all columns used."""

    seen: Truths
    """(n,) more of them than chance explains."""
    common: Truths
    """(n,) no more than are to be expected of new rows."""


def encode(parts: Sequence[SeenRows]) -> bytes:
    """The parts as bytes; the same rows give the same bytes. Empty where they are too many, or none are known."""
    if not parts:
        return b""
    different = {(part[:-1], hashlib.sha256(part.hashes.data).digest()): part for part in parts}
    if sum(part.rows for part in different.values()) > MAX_HASHED_ROWS:
        return b""
    arrays: dict[str, NDArray[Any]] = {}
    packed = state_format.pack(tuple(different.values()), "seen", arrays)
    return safetensors_format.write({"format": FORMAT, "seen": packed}, arrays)


def decode(content: bytes) -> tuple[SeenRows, ...] | None:
    """None where nothing is known. Raises CorruptModel for what `encode` did not write."""
    if not content:
        return None
    document, arrays = safetensors_format.read(content)
    try:
        if document["format"] != FORMAT:
            raise CorruptModel("The stored hashes of training rows have a format this version does not know.")
        parts = state_format.unpack(tuple[SeenRows, ...], document["seen"], arrays)
    except (KeyError, TypeError, ValueError):
        raise CorruptModel("The stored hashes of training rows do not fit this version's format.") from None
    return parts


def recognise(parts: Sequence[SeenRows], table: pa.Table, target: str | None, own_digest: str) -> Recognised:
    """Rows of a table that one of the trainings has learned from.

    target: the column of the truth. own: digest of the table's dataset; chance explains no row of a training on it.
    """
    recognised = Recognised(*np.zeros((2, table.num_rows), np.bool_))
    for part in parts:
        hashes = row_hashes(table, part.features, None if part.target is None else target)
        same = part.within(hashes)
        chance = part.data_digest != own_digest and part.expected(int(same.sum()), table.num_rows)
        (recognised.common if chance else recognised.seen)[same] = True
    return Recognised(recognised.seen, recognised.common & ~recognised.seen)


def warnings(recognised: Recognised, *, left_out: bool) -> Iterator[str]:
    """left_out: true if those that are seen were not evaluated."""
    seen, common, rows = int(recognised.seen.sum()), int(recognised.common.sum()), recognised.seen.size
    equal = f"of {rows} rows equal a training row of the model in all columns used"
    if seen and left_out:
        yield f"{seen} {equal} and were left out of the evaluation."
    elif seen:
        yield f"{seen} {equal}: the metrics are optimistic for rows the model has not seen."
    if common > NOTABLE * rows:
        yield (
            f"{common} {equal}, no more than are to be expected of new rows, as many training rows equal "
            f"each other: they were evaluated. If the dataset holds copies of training rows, the "
            f"metrics are optimistic."
        )
