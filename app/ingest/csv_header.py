"""Header row of a CSV file: whether the first row of a table holds the names of its columns, or values."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from app.ingest.cell_patterns import cell_kind
from app.ingest.upload_options import HeaderRow, ReadOptions
from app.ml.contract.missing_markers import MISSING

MEASURED_SHARE = 0.8
"""Share of cells that are numbers, or dates, in a column of these."""
YEARS = range(1800, 2200)
"""Whole numbers that may be the years of a table whose columns are years."""
MAX_CELLS_LOOKED_AT, MIN_ROWS_LOOKED_AT = 20_000, 5
"""Bounds of the cells whose kinds show whether there is a header."""
_DOUBT = "{}: if the first row holds values, upload the file with header=absent."
_READ_AS_VALUES = (
    "The first row is like the rows below it and was read as values: if it holds names, upload it with header=present."
)


def has_header(
    first: Sequence[str], below: Sequence[Sequence[str]], options: ReadOptions
) -> tuple[bool, tuple[str, ...]]:
    """True if the first row holds the names, and a warning where that is uncertain.

    Names differ in kind from the cells below them; a first row of the kinds below it holds values.
    """
    if options.header_row is not None:
        return True, ()
    if options.header is not HeaderRow.DETECT:
        return options.header is HeaderRow.PRESENT, ()
    first = first[:MAX_CELLS_LOOKED_AT]  # of a line of a million cells, the first of them show it as well
    is_missing = {*MISSING, *options.missing}.__contains__
    cells = [cell for cell in first if not is_missing(cell)]
    measured = [cell for cell in cells if cell_kind(cell)]
    columns = columns_of(below, len(first))
    recurring = _recurring(first, columns, is_missing)
    alike = _alike(first, columns)
    counted = bool(measured) and measured == [str(number) for number in range(len(measured))]
    if counted or has_names(first, columns, is_missing):
        numbers = counted or 2 * alike > len(cells)
        return True, (_DOUBT.format("Column names are numbers"),) if numbers else ()
    if alike and _is_progression(measured) and len(measured) < len(cells) and not recurring:
        return True, (_DOUBT.format("Column names are numbers"),)
    repeated = len(first) > 1 and len(below) > 1 and 2 * recurring > len(cells)
    if repeated or alike or (measured and len(measured) == len(cells)):
        return False, (_READ_AS_VALUES,)
    return True, (_DOUBT.format("Cells of the first row occur below it"),) if recurring else ()


def columns_of(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """The cells below each of so many names, of as many rows as are looked at in a table of this width."""
    looked_at = rows[: max(MIN_ROWS_LOOKED_AT, MAX_CELLS_LOOKED_AT // max(width, 1))]
    return [[row[number] for row in looked_at if number < len(row)] for number in range(width)]


def column_kind(cells: Sequence[str]) -> str | None:
    """The kind of a column of numbers or of dates, by its cells."""
    kinds = Counter(cell_kind(cell) for cell in cells if cell not in MISSING)
    kind = max(kinds, key=kinds.__getitem__, default=None)
    return kind if kind and kinds[kind] >= MEASURED_SHARE * kinds.total() else None


def has_names(
    first: Sequence[str],
    columns: Sequence[Sequence[str]],
    is_missing: Callable[[str], bool] = frozenset(MISSING).__contains__,
) -> bool:
    """True if a cell that is no number stands above numbers, or one that is no date above dates."""
    kinds = map(column_kind, columns)
    return any(
        kind and not is_missing(cell) and cell_kind(cell) != kind for cell, kind in zip(first, kinds, strict=True)
    )


def _alike(first: Sequence[str], columns: Sequence[Sequence[str]]) -> int:
    """Number of cells that are numbers above numbers, or dates above dates."""
    kinds = map(cell_kind, first)
    return sum(kind is not None and kind == column_kind(column) for kind, column in zip(kinds, columns, strict=True))


def _is_progression(cells: Sequence[str]) -> bool:
    """True for three whole numbers or more, or two years, that differ by as much each."""
    if len(cells) < 2 or not all(cell.isascii() and cell.isdigit() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    steps = {after - before for before, after in pairwise(numbers)}
    return len(steps) == 1 and steps != {0} and (len(cells) > 2 or all(number in YEARS for number in numbers))


def _recurring(first: Sequence[str], columns: Sequence[Sequence[str]], is_missing: Callable[[str], bool]) -> int:
    """Number of words of the first row that occur again in their column."""
    return sum(
        not is_missing(cell) and not cell_kind(cell) and cell in column
        for cell, column in zip(first, columns, strict=True)
    )
