"""Rows that memory does not hold: blocks of them, read as often as a fit needs them, and a sample that is held."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from app.ml.contract.data import Data, Matrix, Vector


class Block(NamedTuple):
    """Consecutive rows."""

    x: Matrix
    """(b, d) finite, read-only."""
    weights: Vector
    """(b,) above zero."""


@dataclass(frozen=True, slots=True)
class StreamedRows:
    """Blocks in the same order each time that they are iterated over; one is in memory at a time."""

    blocks: Callable[[], Iterator[Block]]
    rows: int
    """Number of rows in all blocks."""
    sample: Data
    """Some of the rows, drawn at random."""
    prototypes: Matrix | None = None
    """(k, d) rows to start from, in place of draws; None: the fit draws its own."""

    def __iter__(self) -> Iterator[Block]:
        return self.blocks()
