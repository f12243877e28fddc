"""Dialect of a CSV file: its delimiter, its quotes and escapes, detected from its first lines.

A plain file has the quotes of RFC 4180, and a quote inside a field without quotes is a letter.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from app.ml.tables.stray_quotes import QuoteCounts, Requoted

DELIMITERS = ",;\t|"
BLANK = " "
SAMPLED_ROWS = 100
"""Rows from which the dialect is detected."""
MAX_LINES_ABOVE = 30
"""Lines above a table, such as a title, that are recognised."""
_SEPARATOR_LINE = re.compile(r"sep=(.)\s*")
_BLANK_BEFORE_QUOTE = {
    quote: re.compile(rf"(?:^[ \t]++|[,;|][ \t]++|\t ++){quote}", re.MULTILINE) for quote in ('"', "'")
}
_ESCAPED_QUOTE = {quote: re.compile(rf"\\{quote}(?!{quote}|\s*(?:[,;\t|]|$))", re.MULTILINE) for quote in ('"', "'")}
_APOSTROPHE = re.compile(r"(?:^|[,;\t|]) *+'", re.MULTILINE)
_SINGLE_QUOTED = re.compile(r"(?:^|[,;\t|]) *+'(?:[^'\\\r\n]|''|\\.)*+' *+(?=[,;\t|\r\n]|\Z)", re.MULTILINE)
_NUMBER = re.compile(r"[-+]?(?:\d++(?:[.,]\d*+)?|[.,]\d++)(?:[eE][-+]?\d++)?")


class Dialect(NamedTuple):
    delimiter: str
    skips_blanks: bool = False
    """Blanks in front of a cell do not belong to it: a quote may follow them."""
    quoted: bool = True
    """False: a quote is a letter."""
    escaped: bool = False
    """A backslash makes a letter of the character behind it."""
    comment: str | None = None
    """Beginning of lines that are no rows."""
    trailing: bool = False
    """Every row ends with a delimiter behind its last cell."""
    quote: str = '"'
    """The character that encloses a cell."""
    mended: bool = False
    """Quotes within a cell that are not doubled are letters."""

    @property
    def plain(self) -> bool:
        """True if Arrow reads it."""
        return self == Dialect(self.delimiter) and self.delimiter != BLANK

    @property
    def written(self) -> str:
        """The delimiter of the rewritten file."""
        return "," if self.delimiter == BLANK else self.delimiter

    def cells(self, lines: Iterator[str], *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Every row with the number of its last line; a blank line and a comment are a row without cells.

        Raises csv.Error for a field without end, and if strict for a quote that is never closed or has letters behind.
        """
        bare = map(self._bare, lines)
        rows = csv.reader(
            iter(Requoted(bare, self.delimiter)) if self.mended else bare,
            delimiter=self.delimiter,
            skipinitialspace=self.skips_blanks or self.delimiter == BLANK,
            quotechar=self.quote,
            quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
            escapechar="\\" if self.escaped else None,
            strict=strict,
        )
        for row in rows:
            yield rows.line_num, row[:-1] if self.trailing and len(row) > 1 and not row[-1].strip() else row

    def stray_quotes(self, lines: Iterator[str]) -> QuoteCounts:
        """Those of all the lines, which this dialect reads with quotes."""
        requoted = Requoted(map(self._bare, lines), self.delimiter)
        for _ in requoted:
            pass
        return requoted.counts

    def _bare(self, line: str) -> str:
        """The line without what is no cell; its end is kept."""
        if self.comment is not None and line.startswith(self.comment):
            return "\n"
        return line if self.delimiter != BLANK else line.replace("\t", BLANK).strip() + "\n"


def detect_dialect(
    text: str, delimiters: str = DELIMITERS, *, delimiter: str | None = None, comment: str | None = None
) -> Dialect:
    """The dialect of a file that begins with this text, which may be cut within a line.

    delimiter, comment: where they are given.
    """
    lines = text.splitlines(keepends=True)
    quote = "'" if _has_single_quotes(text) else '"'
    base = Dialect(
        ",",
        skips_blanks=_BLANK_BEFORE_QUOTE[quote].search(text) is not None,
        escaped=_ESCAPED_QUOTE[quote].search(text) is not None,
        comment=comment,
        quote=quote,
    )
    if delimiter is not None:
        dialect = base._replace(delimiter=delimiter)
    elif (separator := _SEPARATOR_LINE.fullmatch(lines[0] if lines else "")) and separator[1] in delimiters:
        dialect = base._replace(delimiter=separator[1])
    else:
        dialect = max((base._replace(delimiter=each) for each in delimiters), key=lambda d: _agreement(lines, d))
        if dialect.delimiter == "," and _agreement(lines, dialect)[0] == 0 and _is_blank_separated(lines, base):
            dialect = base._replace(delimiter=BLANK)
    return dialect._replace(trailing=_ends_with_delimiters(lines, dialect))


def _has_single_quotes(text: str) -> bool:
    """True if the text has no other quotes, and every cell that begins with an apostrophe ends with one."""
    if "'" not in text or '"' in text:
        return False
    begun = len(_APOSTROPHE.findall(text))
    return begun > 1 and begun == len(_SINGLE_QUOTED.findall(text))


def sample_rows(lines: Sequence[str], dialect: Dialect) -> list[list[str]]:
    """The first rows that are not blank, without the last, which may be cut."""
    try:
        rows = list(islice((row for _, row in dialect.cells(iter(lines)) if row), SAMPLED_ROWS))
    except csv.Error:
        return []
    return rows[:-1] if len(rows) > 1 else rows


def usual_width(rows: Sequence[Sequence[str]]) -> int:
    """The width of most rows below the first; of two that are as frequent, the larger; 0 without rows."""
    counts = Counter(map(len, rows[1:] or rows))
    return max(counts, key=lambda width: (counts[width], width), default=0)


def _agreement(lines: Sequence[str], dialect: Dialect) -> tuple[float, float, int]:
    """Share of rows of the usual width, share of cells without another delimiter in them, and the width.

    Nothing for a width of 1.
    """
    rows = sample_rows(lines, dialect)
    width = usual_width(rows)
    if width < 2:
        return (0.0, 0.0, 0)
    agreeing = [row for row in rows if len(row) == width]
    others = set(DELIMITERS) - {dialect.delimiter}
    foreign = sum(not others.isdisjoint(cell) for row in agreeing for cell in row)
    return (len(agreeing) / len(rows), 1 - foreign / (width * len(agreeing)), width)


def _is_blank_separated(lines: Sequence[str], base: Dialect) -> bool:
    """True if every line has as many words, and some column of them is of numbers."""
    rows = sample_rows(lines, base._replace(delimiter=BLANK))
    widths = {len(row) for row in rows}
    if len(rows) < 3 or len(widths) != 1 or widths == {1}:
        return False
    return any(all(map(_NUMBER.fullmatch, column)) for column in zip(*rows[1:], strict=True))


def _ends_with_delimiters(lines: Sequence[str], dialect: Dialect) -> bool:
    """True if all rows below the names have an empty cell more than these, at the end."""
    rows = sample_rows(lines, dialect)
    width = usual_width(rows)
    names = next((row for row in rows if len(row) in {width, width - 1}), None)
    below = [row for row in rows if len(row) == width]
    return names is not None and len(names) == width - 1 > 0 and all(not row[-1].strip() for row in below)
