"""Rows that memory does not hold: blocks of them, read as often as a fit needs them, and a sample that is held."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.ml.contract.data import Data, Matrix, Vector


class Block(NamedTuple):
    """Consecutive rows."""

    x: Matrix
    """(b, d) finite, read-only."""
    weights: Vector
    """(b,) above zero."""


def blocks_of(data: Data, rows: int) -> Iterator[Block]:
    """Blocks of so many rows, in order."""
    spans = (slice(start, start + rows) for start in range(0, len(data.x), rows))
    return (Block(data.x[span], data.weights[span]) for span in spans)


@dataclass(frozen=True, slots=True)
class StreamedRows:
    """Blocks in the same order each time that they are iterated over; one is in memory at a time."""

    blocks: Callable[[], Iterator[Block]]
    rows: int
    """Number of rows in all blocks."""
    sample: Data
    """Some of the rows, drawn at random."""
    start: Any = None
    """State of another fit of the same columns, to start from; None: the fit starts anew."""

    def __iter__(self) -> Iterator[Block]:
        return self.blocks()
