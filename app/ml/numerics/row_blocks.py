"""Blocks of consecutive rows whose numbers stay in the cache."""

from collections.abc import Iterator

BLOCK = 1 << 15
"""Numbers of one block: 256 KiB."""


def blocks(rows: int, width: int) -> Iterator[slice]:
    """Slices of `rows` rows of `width` numbers each, of at most BLOCK numbers (and at least one row)."""
    step = max(1, BLOCK // max(1, width))
    return (slice(start, start + step) for start in range(0, rows, step))
