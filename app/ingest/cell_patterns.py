"""Counting how the cells of a text column are written, by their shape: every digit is a 9, a lone zero stays 0.

A column of numbers or dates has few shapes, however many values it has; so all readings of it can be tried at the end
of one pass. Only columns whose sampled cells look like numbers or dates are counted at all.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.ml.contract.cell_shapes import ZERO, letters_of
from app.ml.contract.dates_and_times import DATE_PATTERNS, DateOrder
from app.ml.contract.missing_markers import MISSING
from app.ml.contract.month_names import MONTHS
from app.ml.contract.notation import TRUTH_VALUES, Notation, bare, read
from app.ml.evaluation.splits import evenly

PLUS = ord("+")
SAMPLED = 32
"""Cells of a block that are looked at to see whether a text column is worth counting."""
MOST_SHAPES = 5000
"""Counted of a column; numbers and dates have fewer."""
MAX_CELL_LENGTH = 48
"""Characters of a cell; no number or date is longer."""
ORDERS: tuple[DateOrder, ...] = get_args(DateOrder)
CURRENCIES = [
    "US$", "HK$", "R$", "C$", "A$", "$", "€", "£", "¥", "₹", "₽", "₩", "₺", "₪", "₫", "฿", "₴", "₱", "₦",
    "zł", "Kč", "kr.", "kr", "Fr.", "Fr", "Rs.", "Rs",
    "USD", "EUR", "GBP", "JPY", "CHF", "CNY", "INR", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF",
    "RON", "BGN", "TRY", "RUB", "UAH", "BRL", "MXN", "ARS", "CLP", "COP", "ZAR", "KRW", "SGD", "HKD", "TWD", "THB",
    "IDR", "MYR", "PHP", "VND", "ILS", "AED", "SAR", "EGP", "NGN", "KES", "ISK",
]  # fmt: skip
CURRENCY = "(?:" + "|".join(map(re.escape, CURRENCIES)) + ")"
_SIGN = "[-+(\u2212]?"
_MISSING = frozenset(MISSING)
_NUMBER = re.compile(
    rf"^{_SIGN}\s*{CURRENCY}?\s*{_SIGN}\.?[0-9][0-9.,' \u2019\u00a0\u202f\u2009]*(?:[eE][-+]?[0-9]+)?"
    rf"(?:[.,][-\u2013\u2014]{{1,2}})?[-)]?\s*(?:%|{CURRENCY})?\)?$"
)
_CLOCK_ONLY = re.compile(r"^[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?: ?[AaPp]\.?[Mm]\.?)?$")
_DATES = list(map(re.compile, DATE_PATTERNS))
_DATE_SHAPE = re.compile(
    r"(?i)[09]{1,4}[./-][09]{1,2}[./-][09]{1,4}(?![09]).*|[09]{4}[-/][09]{1,2}$|[09]{1,2}[-/][09]{4}$|"
    r"[09]{4}[ -]?Q9$|Q9[ /-]?[09]{4}$|[09]{4}-?W[09]{2}(?:-?9)?$|"
    r"[^a-zà-ÿ]*(?:st|nd|rd|th|of|de|di|d'|[ .])*(?:" + "|".join(MONTHS) + ")(?![a-zà-ÿ])"
)
"""Generous, for shapes: what begins so may be a date."""
_BOOLEAN_SHAPES = frozenset(TRUTH_VALUES) - {"1"} | {"9"}
_DIGIT = re.compile("[0-9]")
_GROUPED = "^[-+]?(?:[0-9]+|[1-9][0-9]{0,2}[.,][0-9]{3})$"
_GROUPED_CELL = re.compile(rf"{_GROUPED}|^(?:{'|'.join(map(re.escape, MISSING))})?$")
_INFINITE = re.compile(r"(?i)^[-+]?inf(?:inity)?$")


def cell_kind(cell: str) -> Literal["number", "date"] | None:
    """The kind of a cell without blanks around it that looks like a number or a date; None for any other."""
    if len(cell) > MAX_CELL_LENGTH or not _DIGIT.search(cell):
        return "number" if _INFINITE.match(cell) else None
    if any(pattern.match(cell) for pattern in _DATES):
        return "date"
    return "number" if _NUMBER.match(cell) or _CLOCK_ONLY.match(cell) else None


@cache
def _places(rows: int) -> pa.Array:
    """Rows far from each other."""
    return pa.array(evenly(rows, SAMPLED))


@dataclass
class Sample:
    """Cells of a text column seen so far, and those that look like numbers or dates."""

    cells: int = 0
    measured: int = 0

    def add(self, values: pa.Array) -> None:
        texts = filter(None, values.take(_places(len(values))).to_pylist())
        cells = [cell for text in texts if (cell := text[:MAX_CELL_LENGTH].strip()) not in _MISSING]
        self.cells += len(cells)
        self.measured += sum(map(bool, map(cell_kind, cells)))

    def add_measured(self, values: pa.Array) -> None:
        """Values that are all numbers or dates."""
        cells = min(len(values) - values.null_count, SAMPLED)
        self.cells, self.measured = self.cells + cells, self.measured + cells

    @property
    def suspicious(self) -> bool:
        return 2 * self.measured > self.cells


@dataclass
class Shapes:
    """The cells of one column, counted by shape."""

    counts: Counter[str] = field(default_factory=Counter)
    dates: Counter[DateOrder] = field(default_factory=Counter)
    """Cells that are a date in this order."""
    booleans: int = 0
    padded: bool = False
    """True if there is a number with a leading zero, such as 0123, or with a plus sign."""
    total: int = 0
    """Cells, those of shapes that are not counted among them."""

    @property
    def complete(self) -> bool:
        """True if all shapes are counted."""
        return self.total == self.counts.total()

    def add(self, values: pa.Array, missing: tuple[str, ...]) -> None:
        cells = bare(values, missing).drop_null()
        short = (pc.max(pc.binary_length(cells)).as_py() or 0) <= MAX_CELL_LENGTH
        shape_counts = pc.value_counts(shaped(cells if short else pc.utf8_slice_codeunits(cells, 0, MAX_CELL_LENGTH)))
        counts = dict(zip(shape_counts.field(0).to_pylist(), shape_counts.field(1).to_pylist(), strict=True))
        has_room = len(self.counts) < MOST_SHAPES
        self.counts.update({shape: n for shape, n in counts.items() if has_room or shape in self.counts})
        self.total += len(cells)
        self.padded |= padded(cells)
        if not _BOOLEAN_SHAPES.isdisjoint(map(str.lower, counts)):
            self.booleans += len(cells) - read(cells, Notation(), "boolean").null_count
        if "9" * 8 in counts or any(_DATE_SHAPE.match(shape) for shape in counts):
            for order in ORDERS:
                times = read(cells, Notation(dates=order), "datetime")
                self.dates[order] += len(times) - times.null_count


def is_grouped(values: pa.Array) -> bool:
    """True if every mark in these numbers may separate thousands: three digits behind it, one to three in front."""
    first = values[0].as_py() if len(values) else None
    if first is not None and not _GROUPED_CELL.match(first.strip()):  # most columns of decimals show it at once
        return False
    if len(values) > SAMPLED and not is_grouped(values[:SAMPLED]):
        return False
    return bool(pc.all(pc.match_substring_regex(bare(values), _GROUPED), min_count=0).as_py())


def padded(values: pa.Array) -> bool:
    """True if a cell begins with a zero or a plus sign, and another digit."""
    ends, letters = letters_of(values)
    if not letters.size:
        return False
    first = letters.take(ends[:-1], mode="clip")
    zeros = np.flatnonzero((first == ZERO) | (first == PLUS))
    longer = ends[zeros][ends[zeros + 1] - ends[zeros] > 1]
    return bool((letters[longer + 1] - ZERO < 10).any())


def shaped(cells: pa.Array) -> pa.Array:
    """Cells without nulls, each digit written as 9; a 0 without a digit beside it stays."""
    if not len(cells):
        return cells
    ends, letters = letters_of(cells)
    letters = letters[ends[0] : ends[-1]].copy()
    digit = np.concatenate([[False], letters - ZERO < 10, [False]])
    starts, behind = (ends[:-1] - ends[0])[ends[:-1] < ends[1:]], (ends[1:] - ends[0])[ends[:-1] < ends[1:]]
    before, after = digit[:-2].copy(), digit[2:].copy()
    before[starts], after[behind - 1] = False, False
    lone = (letters == ZERO) & ~before & ~after
    letters[digit[1:-1] & ~lone] = ZERO + 9
    return pa.StringArray.from_buffers(len(cells), pa.py_buffer(ends - ends[0]), pa.py_buffer(letters))
