"""Blocks of consecutive rows whose numbers stay in the cache, and sections of them whose sums are made at once."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from app.ml.contract.threads import run_at_once

BLOCK = 1 << 15
"""Numbers of one block: 256 KiB."""
SECTION_ROWS, ROWS_PER_COLUMN = 1 << 15, 8
"""Rows of a section at least, and for each column of what is summed: the sums of all sections are small beside them."""
SECTIONS = 16
"""Number of sections, at most."""


def blocks(rows: int, width: int) -> Iterator[slice]:
    """Slices of `rows` rows of `width` numbers each, of at most BLOCK numbers (and at least one row)."""
    step = max(1, BLOCK // max(1, width))
    return (slice(start, start + step) for start in range(0, rows, step))


def count_sections(rows: float, width: float) -> int:
    """Number of sections. width: columns of the squares that are summed over them."""
    return int(max(1, min(SECTIONS, rows // max(SECTION_ROWS, ROWS_PER_COLUMN * width))))


def sections(rows: int, width: int) -> list[slice]:
    """Slices of about equal numbers of rows, by the shape alone, whatever the number of cores."""
    count = count_sections(rows, width)
    return [slice(rows * number // count, rows * (number + 1) // count) for number in range(count)]


def summed(part: Callable[[slice], tuple[Any, ...]], rows: int, width: int) -> list[Any]:
    """The sums of what `part` makes of each section, added in their order; made at once on cores that are free."""
    first, *others = run_at_once([partial(part, section) for section in sections(rows, width)])
    sums = list(first)
    for more in others:
        for number, sums_of_block in enumerate(more):
            sums[number] = sums[number] + sums_of_block
    return sums
