"""Checks of a request for parts of dates, before any row is read: faults, and names of the columns."""

from collections.abc import Iterator, Mapping, Sequence

from app.base.faults import Fault, place
from app.base.suggestions import no_such
from app.ml.contract.columns import ColumnKind
from app.ml.preparation.date_parts import AT, TIMED, by_date, part_names
from app.ml.preparation.request import DatePart, Dates


def date_faults(how: Dates, features: Mapping[str, str]) -> Iterator[Fault]:
    """features: the kind of each column to learn from."""
    if not isinstance(how, Mapping):
        yield from _twice(how, AT)
        if how and not by_date(how, features):
            detail = "No feature is a date: leave dates out, or name a column of dates in features."
            yield Fault(AT, detail, "missing")
        return
    for name, parts in how.items():
        pointer = place("preprocessing", "dates", name)
        if name not in features:
            yield Fault(pointer, no_such("The features have no column", name, features), "unknown_column")
        elif features[name] != ColumnKind.DATETIME:
            yield Fault(pointer, f"{name!r} is {features[name]}: only dates have such parts.", "not_a_date")
        yield from _twice(parts, pointer)


def date_names(how: Dates, features: Mapping[str, str]) -> list[str]:
    """Columns that parts make for sure, of a request without faults: rows may show that dates have no time of day."""
    sure = isinstance(how, Mapping)
    dates = by_date(how, features).items()
    return [name for date, parts in dates for name in part_names(date, [p for p in parts if sure or p not in TIMED])]


def part_count(how: Dates, features: Mapping[str, str]) -> int:
    """Columns that parts make at most."""
    return sum(len(part_names(date, parts)) for date, parts in by_date(how, features).items())


def _twice(parts: Sequence[DatePart], pointer: str) -> Iterator[Fault]:
    for i, part in enumerate(parts):
        if part in parts[:i]:
            yield Fault(f"{pointer}/{i}", f"{part} is named twice.", "duplicate")
