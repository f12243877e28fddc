"""The readings that the counted cells of a text column allow: as numbers, as dates, as truth values.

All readings that fit the most cells are kept: 1,234 alone may be 1234 or 1.234, and 01/02/2024 a day in January or in
February. The rest of the file decides between them (`Evidence`).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from app.ingest.cell_patterns import CURRENCY, ORDERS, Shapes, cell_kind
from app.ml.contract.columns import ColumnKind
from app.ml.contract.missing_markers import MARKERS
from app.ml.contract.notation import Notation, is_balanced, pattern

_WAYS: tuple[tuple[str, str | None], ...] = (
    (".", None), (".", ","), (".", " "), (".", "'"), (",", None), (",", "."), (",", " "), (",", "'"),
)  # fmt: skip
WHOLE_DIGITS = 18
"""Every whole number of so many digits has 64 bits."""
_YEAR = re.compile("[09]{4}")
_MARK = re.compile(r"[09]+([./-])[09]")
_UNIT = re.compile(f"^[-+\u2212]?\\s*({CURRENCY})|({CURRENCY})\\s*%?$")


_PHONE, _LONG = re.compile(r"\+9{7,15}"), re.compile(r"[-+]?9{16,}")


class Code(Enum):
    """Whole numbers that name something, and why they are read as text."""

    PADDED = "The numbers have leading zeros and one length, as codes have: they were read as text."
    PHONE = "The numbers begin with a plus sign, as telephone numbers do: they were read as text."
    LONG = "Some whole numbers have more digits than a number of 64 bits can hold: they were read as text."


class Way(NamedTuple):
    """One reading of a column."""

    kind: ColumnKind
    notation: Notation
    cells: int
    """Number of cells that fit."""
    whole: bool = False
    """All that fit are whole numbers within 64 bits."""
    marked: bool = False
    """Some of them have a decimal mark."""
    mark: str = ""
    """Between the day, month and year of a date."""
    short_years: bool = False
    """Some dates have years of two digits."""

    @property
    def decimal(self) -> str | None:
        """The decimal mark that this reading takes for granted; None: either."""
        settled = self.marked or self.notation.thousands in {",", "."}
        return self.notation.decimal if settled else None


@dataclass
class Evidence:
    """Notations of the columns that allow one reading alone."""

    semicolons: bool
    """Fields are separated by semicolons, as where the comma is the decimal mark."""
    marks: set[str] = field(default_factory=set)
    orders: dict[str, set[str]] = field(default_factory=dict)
    """Orders of dates by the mark between their parts."""

    def add(self, ways: Iterable[Way]) -> None:
        candidates = list(ways)
        if len(candidates) == 1 and candidates[0].cells:
            way = candidates[0]
            self.marks |= {way.notation.decimal} if way.marked else set()
            self.orders.setdefault(way.mark, set()).add(way.notation.dates)

    def decides(self, ways: list[Way]) -> Way | None:
        """The reading; None where nothing decides between the orders of a date."""
        if len(ways) == 1:
            return ways[0]
        if ways[0].kind is ColumnKind.DATETIME:
            orders = self.orders.get(ways[0].mark, set()) - {"YMD"}
            return next((way for way in ways if {way.notation.dates} == orders), None)
        mark = next(iter(self.marks)) if len(self.marks) == 1 else "," if self.semicolons else "."
        return next((way for way in ways if way.notation.decimal == mark), ways[0])


def ways(shapes: Shapes) -> list[Way]:
    """The readings that fit the most cells, at least one; numbers before dates."""
    candidates = [*numbers(shapes), *dates(shapes)]
    most = max(way.cells for way in candidates)
    best = [way for way in candidates if way.cells == most]
    return [way for way in best if way.kind is best[0].kind]


def numbers(shapes: Shapes) -> list[Way]:
    """Every way of writing numbers, those that come to the same once; the plain one first."""
    counts = shapes.counts
    units = Counter[str]()
    for shape, cells in counts.items():
        if unit_match := _UNIT.search(shape):
            units[unit_match[1] or unit_match[2]] += cells
    unit = units.most_common(1)[0][0] if units else None
    signed = sum(cells for shape, cells in counts.items() if shape.endswith("%"))
    percent = 2 * signed > sum(counts.values())
    readings: dict[Notation, Way] = {}
    for decimal, thousands in _WAYS:
        notation = Notation.model_validate(
            {"decimal": decimal, "thousands": thousands, "unit": unit, "percent": percent}
        )
        way = _way(counts, notation)
        readings.setdefault(way.notation, way if shapes.complete else way._replace(whole=False))
    return list(readings.values())


def _way(counts: Mapping[str, int], notation: Notation) -> Way:
    """The reading in this notation, without what no cell makes use of."""
    matched = [(re.fullmatch(pattern(notation), shape), cells) for shape, cells in counts.items()]
    fitting = [(number, cells) for number, cells in matched if number and is_balanced(number)]
    digits = [match["number"] for match, _ in fitting]
    grouped = notation.thousands is not None and any(
        re.search(r"\d\D\d{2,3}", _whole(number, notation)) for number in digits
    )
    marked = any(notation.decimal in number for number in digits)
    used = {
        "thousands": notation.thousands if grouped else None,
        "decimal": notation.decimal if marked or (notation.thousands == "." and grouped) else ".",
    }
    digits = [re.sub(r"\D", "", number) if grouped else number for number in digits]
    short = all(number.isdigit() and len(number) <= WHOLE_DIGITS for number in digits)
    whole = short and not marked and not notation.percent and not any(match["exponent"] for match, _ in fitting)
    return Way(ColumnKind.NUMERIC, notation.model_copy(update=used), sum(n for _, n in fitting), whole, marked)


def _whole(number: str, notation: Notation) -> str:
    return number.split(notation.decimal, maxsplit=1)[0]


def dates(shapes: Shapes) -> Iterator[Way]:
    """The orders that fit; with dots, the day is first wherever it may be."""
    marks = Counter(match[1] for shape in shapes.counts if (match := _MARK.match(shape)))
    mark = marks.most_common(1)[0][0] if marks else ""
    orders = [order for order in ORDERS if shapes.dates[order]]
    if len({shapes.dates[order] for order in orders}) == 1 and len(orders) == len(ORDERS):
        orders = ["YMD"]  # months have names: the dates are the same in every order
    if shapes.dates["DMY"] == shapes.dates["MDY"] and mark == ".":
        orders = [order for order in orders if order != "MDY"]
    short_years = any(cell_kind(shape) == "date" and not _YEAR.search(shape) for shape in shapes.counts)
    for order in orders:
        yield Way(ColumnKind.DATETIME, Notation(dates=order), shapes.dates[order], mark=mark, short_years=short_years)


def markers(shapes: Shapes) -> dict[str, int]:
    """Words of `MARKERS` among the cells, and how often each occurs."""
    return {shape: cells for shape, cells in shapes.counts.items() if shape.lower() in MARKERS}


def code_of(shapes: Shapes, *, within_64_bits: bool) -> Code | None:
    """The kind of codes that these whole numbers are; None if they are numbers.

    within_64_bits: all of them are.
    """
    digits = {shape for shape in shapes.counts if shape.strip("09") == ""}
    if shapes.padded and len({len(shape) for shape in digits}) == 1 and "0" not in digits:
        return Code.PADDED
    if shapes.padded and all(_PHONE.fullmatch(shape) for shape in shapes.counts):
        return Code.PHONE
    return None if within_64_bits or not any(map(_LONG.fullmatch, shapes.counts)) else Code.LONG
