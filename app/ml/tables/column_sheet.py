"""The data sheet: what one column of a table holds, in statistics (LION 5, 6.1).

A column comes in chunks that can be passed over several times, so that its length does not matter.
Every statistic is exact and independent of where the chunks end, but for rounding in the mean and the
standard deviation. Two rules are a choice:

- A string column is *text* if it has more than `COUNTED` different values, or over 20 of them and
  more than half of all, or more than 64 characters on average; else it is *categorical*.
- A column is *identifier-like* if it has at least `IDENTIFIER_ROWS` values, no two the same (of a
  longer column the first `COUNTED` are compared), and they are strings, or whole numbers that count
  up by one from 0 or 1, or whole numbers in a column named like an identifier (`customer_id`,
  `orderNumber`). Never a number with a fraction: measurements may well all differ.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from app.ml.contract.columns import ColumnKind
from app.ml.contract.dates_and_times import are_dates
from app.ml.contract.missing_markers import is_marker
from app.ml.tables.column_statistics import EXACT, STATISTICS, different
from app.ml.tables.data_sheet import Chunks, Column, Level, Offer, Remark
from app.ml.tables.identifiers import IDENTIFIER_ROWS, identifier_like

_ROUNDED = "Whole numbers beyond 2^53 are rounded to the nearest float where a model is trained on them, or predicts."


def describe(
    name: str,
    data_type: pa.DataType,
    chunks: Chunks,
    remark: Remark = Remark(),  # noqa: B008  immutable
    statistics: dict[str, Any] | None = None,
) -> Column:
    """The sheet of one column of type `data_type`; the remark's warnings come first.

    statistics: those of a numeric column, where they were computed with those of others.
    """
    missing = sum(chunk.null_count for chunk in chunks())
    count = sum(len(chunk) for chunk in chunks()) - missing
    if statistics is None:
        kind, statistics = STATISTICS[data_type.id](chunks, count)
    else:
        kind = ColumnKind.NUMERIC
    distinct = statistics["distinct"] if "distinct" in statistics else different(chunks)
    identifier = count >= IDENTIFIER_ROWS and identifier_like(name, data_type, chunks, count, distinct)
    warnings = [*remark.warnings, *_warnings(count, distinct, identifier=identifier)]
    if pa.types.is_integer(data_type) and max(abs(statistics.get(end) or 0) for end in ("minimum", "maximum")) > EXACT:
        warnings.append(_ROUNDED)
    if remark.kind is not None and pa.types.is_string(data_type):
        kind = remark.kind
    fields = {"name": name, "kind": kind, "count": count, "missing": missing, "identifier_like": identifier}
    levels = statistics.get("top_levels") or []
    offers = [*remark.offers, *_marker_offers(kind, levels)]
    warnings += _marker_warnings(kind, levels)
    if pa.types.is_integer(data_type) and count and all(are_dates(chunk.drop_null()) for chunk in chunks()):
        offers.append(Offer(sentence="Read the numbers as dates: year, month and day.", kinds={name: "date:YMD"}))
    how = {
        "notation": remark.notation,
        "mostly_numbers": remark.mostly_numbers,
        "other_notation": remark.other_notation,
        "cell_texts": remark.cell_texts,
    }
    written = how | {"offers": offers, "warnings": warnings}
    return Column(**(fields | statistics | {"distinct": distinct} | written))


def _warnings(count: int, distinct: int | None, *, identifier: bool) -> Iterator[str]:
    if not count:
        yield "No row has a value."
    elif distinct == 1:
        yield "All values are the same: nothing can be learned from it."
    if identifier:
        yield "Looks like an identifier, all values differ: it is a feature only where it is named in `features`."


def _marker_offers(kind: ColumnKind, levels: Sequence[Level]) -> Iterator[Offer]:
    """A level that is a marker of a missing value elsewhere may be one here."""
    markers = [level.value for level in levels if is_marker(level.value)]
    if kind is ColumnKind.CATEGORICAL and markers:
        words = " and ".join(map(repr, markers))
        yield Offer(sentence=f"Read {words} as missing instead of as a category.", missing=markers)


def _marker_warnings(kind: ColumnKind, levels: Sequence[Level]) -> Iterator[str]:
    """Warnings about such levels, with the number of their rows."""
    if kind is ColumnKind.CATEGORICAL:
        for level in filter(lambda level: is_marker(level.value), levels):
            cells = "1 value is" if level.count == 1 else f"{level.count} values are"
            yield f"{cells} {level.value!r}, kept as a category; give missing={level.value} to read it as missing."
