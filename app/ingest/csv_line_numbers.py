"""The lines that rows of a CSV file begin on, counted from 1 as an editor does."""

from collections.abc import Callable, Sequence
from typing import BinaryIO

from app.base.faults import Fault
from app.ingest.csv_diagnosis import rows_of
from app.ingest.csv_layout import Layout

MAX_WALKED_ROWS = 1_000_000
"""Rows walked through one by one where lines and rows differ; beyond them no line is found."""
CHUNK = 1 << 20


def lines_of(start: Callable[[], BinaryIO], layout: Layout, longest: int, rows: Sequence[int]) -> list[int]:
    """In the order of the rows, which count from 0; those that are not found are left out.

    start: opens the file from its start. longest: bytes of a row, at most.
    """
    if not rows:
        return []
    if _regular(start()):
        return [row + layout.values_line for row in rows]
    required = {row for row in rows if row < MAX_WALKED_ROWS}
    line_of: dict[int, int] = {}
    walked = (
        row
        for row in rows_of(start(), layout, longest)
        if not isinstance(row, Fault) and row.line >= layout.values_line
    )
    for number, row in enumerate(walked):
        if len(line_of) == len(required):
            break
        if number in required:
            line_of[number] = row.line
    return [line_of[row] for row in rows if row in line_of]


def _regular(file: BinaryIO) -> bool:
    """True if every line is one row: there are no quotes and no blank lines."""
    before = b"\n"
    while chunk := file.read(CHUNK):
        joined = before + chunk
        if any(mark in joined for mark in (b'"', b"\n\n", b"\n\r", b"\r\r")):
            return False
        before = chunk[-1:]
    return True
