"""Quotes within a quoted cell of a CSV file that are not doubled, and letters behind its closing quote.

A quote ends a cell if a delimiter or the end of the line follows; any other quote is a letter. A cell that begins with
a quote and has no such end in its line has letters alone. Lines are rewritten so that any reader reads them so.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO

QUOTE = '"'
MAX_QUOTED_LENGTH = 4 << 20
"""Characters of the lines of a cell in quotes; one that goes on is never closed."""
_BLANKS = re.compile("[ \t]*")


@dataclass
class QuoteCounts:
    """Cells of lines that have quotes, by their column from 0."""

    quoted: Counter[int] = field(default_factory=Counter)
    """Cells in quotes, with stray ones among their letters or not."""
    bare: Counter[int] = field(default_factory=Counter)
    """Cells that have no quotes around them."""
    stray: Counter[int] = field(default_factory=Counter)
    """Cells whose quotes are not those of RFC 4180."""
    needed: bool = False
    """True if a cell in regular quotes has a delimiter, a line end or a doubled quote in it."""
    line: int = 0
    """The first line that has a stray quote, from 1."""
    lines_without: int = 0
    """Lines that have no quotes."""

    def are_letters(self) -> bool:
        """True if most cells of the columns that have stray quotes are not in quotes, and none needs them."""
        quoted, bare = (sum(counts[column] for column in self.stray) for counts in (self.quoted, self.bare))
        return not self.needed and quoted < bare + len(self.stray) * self.lines_without

    def enclose_cells(self) -> bool:
        """True if most cells of a column are in quotes."""
        return any(count > self.bare[column] + self.lines_without for column, count in self.quoted.items())


class Requoted:
    """Lines in which each cell with stray quotes is in quotes of its own."""

    def __init__(self, lines: Iterator[str], delimiter: str) -> None:
        self.counts = QuoteCounts()
        self._lines, self._delimiter = lines, delimiter
        self._ahead: list[str] = []  # lines that were looked at, the next one last
        self._number = 0
        self._never_closed = False
        mark, inside = re.escape(delimiter), '(?:[^"]|"")*+'
        end = rf"[ \t]*(?={mark}|[\r\n]|\Z)"
        self._letters = re.compile(rf"(?:(?!{mark})[^\r\n])*+")
        self._regular = re.compile(rf'("{inside}"){end}')
        self._lenient = re.compile(rf'"((?:(?!{mark}[ \t]*")[^"\r\n]|"(?!{end}))*+)"{end}')
        self._begun, self._middle = re.compile(rf'"{inside}\Z'), re.compile(rf"{inside}\Z")
        self._ended = re.compile(rf'{inside}"{end}')

    def __iter__(self) -> Iterator[str]:
        while (line := self._next()) is not None:
            if QUOTE in line and not self._never_closed:
                yield from StringIO(self._row(line), newline="")
            else:
                self.counts.lines_without += 1
                yield line

    def _next(self) -> str | None:
        line = self._ahead.pop() if self._ahead else next(self._lines, None)
        self._number += line is not None
        return line

    def _row(self, row: str) -> str:
        """The row that begins with this line, rewritten."""
        written, start, column = "", 0, 0
        while True:
            begin = _end(_BLANKS, row, start)
            is_quoted = row.startswith(QUOTE, begin)
            if is_quoted and self._begun.match(row, begin):
                row += self._rest_of_cell()
                if self._never_closed:
                    return written + row[start:]
            if regular := self._regular.match(row, begin):
                self._count(column, regular[1])
                cell, end = row[start : regular.end(1)], regular.end()
            elif is_quoted:
                self.counts.stray[column] += 1
                self.counts.line = self.counts.line or self._number
                cell, end = self._stray(row, start, begin, column)
            else:
                end = _end(self._letters, row, start)
                cell = row[start:end]
                self.counts.bare[column] += bool(cell)
            written += cell
            if not row.startswith(self._delimiter, end):
                return written + row[end:]
            written += self._delimiter
            start, column = end + len(self._delimiter), column + 1

    def _rest_of_cell(self) -> str:
        """The following lines up to the end of a cell in quotes; nothing if it has no end but a stray quote."""
        lines: list[str] = []
        characters = 0
        while characters <= MAX_QUOTED_LENGTH and (line := self._next()) is not None:
            lines.append(line)
            characters += len(line)
            if self._ended.match(line):
                return "".join(lines)
            if not self._middle.match(line):
                break
        else:
            self._never_closed = True
        self._ahead += reversed(lines)
        self._number -= len(lines)
        return ""

    def _count(self, column: int, cell: str) -> None:
        self.counts.quoted[column] += 1
        self.counts.needed |= any(mark in cell[1:-1] for mark in (self._delimiter, QUOTE, "\r", "\n"))

    def _stray(self, row: str, start: int, begin: int, column: int) -> tuple[str, int]:
        """A cell with stray quotes in quotes of its own, and its end in the row."""
        lenient = self._lenient.match(row, begin)
        (self.counts.quoted if lenient else self.counts.bare)[column] += 1
        end = lenient.end() if lenient else _end(self._letters, row, start)
        cell = lenient[1].replace(2 * QUOTE, QUOTE) if lenient else row[start:end]
        return QUOTE + cell.replace(QUOTE, 2 * QUOTE) + QUOTE, end


def _end(pattern: re.Pattern[str], row: str, start: int) -> int:
    """The end of the match of a pattern that always matches."""
    match = pattern.match(row, start)
    return start if match is None else match.end()
