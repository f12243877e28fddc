"""Dialects of a CSV file beside the one that its first lines show: for files whose rows do not fit that one."""

import csv
import io
from collections.abc import Iterator

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ingest.csv_rewriting import Text
from app.ingest.upload_options import ReadOptions
from app.ml.tables.csv_dialect import BLANK, Dialect
from app.ml.tables.stray_quotes import QUOTE

COMMENT = "#"
_COMMENTED = "Lines that begin with # were left out as comments: if they are rows, give another comment, such as %."
_UNQUOTED = "Quotes that are never closed would swallow rows: all quotes were read as letters."
_LETTERS = "Line {} has quotes that do not enclose a cell: all quotes were read as letters."
_MENDED = "Line {} has quotes within a cell that are not doubled: such quotes were read as letters."
_ESCAPED = "A backslash was read as an escape: it makes a letter of the character behind it."
_BLANKS = "The cells were read as separated by blanks: to read the lines otherwise, give their delimiter."
_APOSTROPHES = "Apostrophes around cells were read as quotes."
_BEFORE_QUOTES = "Blanks in front of quotes were left out."
_OF_DIALECTS = {"unclosed_quote", "stray_quote", "ragged_row", "too_long", "unreadable"}
"""Faults that may come of quotes that are stray or never closed, of comments or of escapes."""
SWALLOWING = Fault("", "A quote that is never closed seems to swallow rows: close or double it.", "unclosed_quote")
_BEHIND_QUOTE = "expected after"
"""In the error of a strict reader about letters behind a closing quote."""
STRAY = Fault("", "Letters follow a closing quote: double the quotes within a cell.", "stray_quote")


def other_dialects(source: Text, dialect: Dialect) -> Iterator[tuple[str, Dialect]]:
    """Dialects in which a file may be read that the detected one does not fit, each with a warning."""
    letters = dialect._replace(quoted=False)
    if has_stray_quotes(source, dialect):
        counts = dialect.stray_quotes(_lines(source))
        if counts.are_letters() and is_regular(source, letters, dialect.quote, narrowest=1):
            yield _LETTERS.format(counts.line), letters
        yield _MENDED.format(counts.line), dialect._replace(mended=True)
    regular = is_regular(source, letters, dialect.quote)
    if regular and not dialect.stray_quotes(_lines(source)).enclose_cells():
        yield _UNQUOTED, letters
    commented, escaped = dialect._replace(comment=COMMENT), dialect._replace(escaped=True)
    if dialect.comment is None and is_regular(source, commented, COMMENT):
        yield _COMMENTED, commented
    for other in (escaped, escaped._replace(quoted=False)):
        if not dialect.escaped and is_regular(source, other, "\\"):
            yield _ESCAPED, other


def is_of_dialect(refusal: InvalidData) -> bool:
    """True if another dialect may be the remedy."""
    return not {fault.code for fault in refusal.faults}.isdisjoint(_OF_DIALECTS)


def unusual(dialect: Dialect, options: ReadOptions) -> Iterator[str]:
    """Warnings about a dialect that few files have."""
    if dialect.escaped:
        yield _ESCAPED
    if dialect.delimiter == BLANK and options.delimiter is None:
        yield _BLANKS
    if dialect.quote != QUOTE:
        yield _APOSTROPHES
    if dialect.skips_blanks:
        yield _BEFORE_QUOTES


def has_stray_quotes(source: Text, dialect: Dialect) -> bool:
    """True if a quote of the file is stray in this dialect."""
    if not dialect.quoted or dialect.escaped or dialect.mended or dialect.quote != QUOTE:
        return False
    try:
        for _ in dialect.cells(_lines(source), strict=True):
            pass
    except csv.Error as error:
        return _BEHIND_QUOTE in str(error) and bool(dialect.stray_quotes(_lines(source)).stray)
    return False


def _lines(source: Text) -> Iterator[str]:
    return iter(io.TextIOWrapper(source.open(), "utf-8-sig", errors="surrogateescape", newline=""))


def is_regular(source: Text, dialect: Dialect, mark: str, *, narrowest: int = 2) -> bool:
    """True if all rows have as many cells, at least the narrowest, and the file has the mark of this dialect."""
    marked, widths = False, set[int]()

    def watched() -> Iterator[str]:
        nonlocal marked
        for line in _lines(source):
            marked = marked or (line.startswith(mark) if mark == COMMENT else mark in line)
            yield line

    try:
        for _, row in dialect.cells(watched(), strict=dialect.quoted):
            widths |= {len(row)} if row else set()
            if len(widths) > 1:
                return False
    except csv.Error:
        return False
    return marked and min(widths, default=0) >= narrowest
