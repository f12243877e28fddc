"""The data sheet: what one column of a table holds, in figures (LION 5, 6.1).

A column comes in pieces that can be passed over several times, so that its length does not matter.
Every figure is exact and independent of where the pieces end, but for rounding in the mean and the
standard deviation. Two rules call for judgement:

- A string column is *text* if it has more than `COUNTED` different values, or over 20 of them and
  more than half of all, or more than 64 characters on average; else it is *categorical*.
- A column is *identifier-like* if it has at least `IDENTIFIER_ROWS` values, no two the same (of a
  longer column the first `COUNTED` are compared), and they are strings, or whole numbers that count
  up by one from 0 or 1, or whole numbers in a column named like an identifier (`customer_id`,
  `orderNumber`). Never a number with a fraction: measurements may well all differ.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypeAliasType

from app.ml.contract.columns import ColumnKind
from app.ml.contract.moments import are_dates
from app.ml.contract.notation import MARKERS, Notation
from app.ml.statistics.distribution import Bin, Percentile, Whiskers, spread
from app.ml.statistics.figures import Figure
from app.ml.statistics.quantiles import Values
from app.wire import Wire

COUNTED = 100_000
"""Different values counted before giving up."""
COUNTED_BYTES = 64 << 20
TOP_LEVELS = 20
LEVEL_LENGTH = 200
IDENTIFIER_ROWS = 20
OUTLIERS = 100
"""Told by their row."""
_ID_WORDS = {"id", "ids", "key", "index", "idx", "nr", "number", "uuid", "guid"}

Pieces = Callable[[], Iterator[pa.Array]]
"""Passes over one column, as often as asked; types as in `app.ml.contract.columns`."""


Extreme = TypeAliasType("Extreme", float | str)
"""The smallest or largest value of a column."""


class Level(Wire):
    """Value of a categorical column."""

    value: str = Field(description="The value.")
    count: int = Field(description="Number of rows with this value.")


class Offer(Wire):
    """Another reading of a column, to be had by uploading the file again with these options."""

    sentence: str = Field(description="Effect of the options.")
    kinds: dict[str, str] | None = Field(
        None, description="Value for the option `kinds` of the upload: kinds by column; null: the option is not needed."
    )
    missing: list[str] | None = Field(
        None, description="Values for the option `missing` of the upload; null: the option is not needed."
    )


class Column(Wire):
    """The data sheet of one column. Quartiles follow the linear rule (Hyndman & Fan type 7)."""

    name: str = Field(description="Name of the column.")
    kind: str = Field(description="numeric, categorical, boolean, text or datetime.")
    count: int = Field(description="Rows that have a value.")
    missing: int = Field(description="Number of missing values.")
    distinct: int | None = Field(None, description="Different values; absent where there were too many to count.")
    minimum: Extreme | None = Field(None, description="Smallest value: a number, or a time as ISO 8601 in UTC.")
    first_quartile: float | None = Field(None, description="First quartile; null where the column has no numbers.")
    median: float | None = Field(None, description="Median; null where the column has no numbers.")
    third_quartile: float | None = Field(None, description="Third quartile; null where the column has no numbers.")
    maximum: Extreme | None = Field(None, description="Largest value: a number, or a time as ISO 8601 in UTC.")
    mean: float | None = Field(None, description="Arithmetic mean; null where the column has no numbers.")
    standard_deviation: float | None = Field(None, description="With n - 1 in the denominator.")
    lower_whisker: float | None = Field(None, description="Smallest value within 1.5 interquartile ranges of the box.")
    upper_whisker: float | None = Field(None, description="Largest value that is no outlier; null without numbers.")
    outliers: int | None = Field(None, description="Values beyond the whiskers.")
    outlier_rows: list[int] | None = Field(
        None, description="Their rows, from 0, those farthest out first; at most 100. Absent without outliers."
    )
    other_whiskers: list[Whiskers] | None = Field(None, description="Box plots by other rules.")
    percentiles: list[Percentile] | None = Field(None, description="Beside the quartiles.")
    histogram: list[Bin] | None = Field(None, description="Histogram of the numbers, in ascending order.")
    top_levels: list[Level] | None = Field(None, description="Most frequent first; long values are cut.")
    identifier_like: bool = Field(
        False, description="Names rows rather than describing them; not a feature by default."
    )
    smoothness: Figure | None = Field(
        None,
        description="Likeness of this column in rows that are near each other in the other columns, in a sample of "
        "rows. 1: they are alike; 0: no more than any two rows, which does not rule out a good model where few of many "
        "columns matter. Null: too few values vary.",
    )
    notation: Notation | None = Field(
        None,
        description="How the text cells of the file were written; null: the plain way, 1234.5 and 2024-12-31.",
    )
    mostly_numbers: str | None = Field(
        None,
        description="Sentence on a column of texts or categories most of whose values are numbers, with the lines of "
        "those that are not; null: it is no such column.",
    )
    offers: list[Offer] = Field([], description="Other readings of the column that the uploaded file allows.")
    warnings: list[str] = Field([], description="Sentences on what was noticed in the column.")


class Remark(NamedTuple):
    """How the file wrote a column, for its data sheet."""

    warnings: Sequence[str] = ()
    offers: Sequence[Offer] = ()
    notation: Notation | None = None
    kind: ColumnKind | None = None
    """The kind that was chosen for a column of strings; None: its values decide."""
    mostly_numbers: str | None = None
    """Of a column that was not read as numbers, though most of its values are: the sentence that says so."""


def describe(name: str, of: pa.DataType, pieces: Pieces, remark: Remark = Remark()) -> Column:  # noqa: B008  immutable
    """The sheet of one column of type `of`; the remark's warnings come first."""
    missing = sum(piece.null_count for piece in pieces())
    count = sum(len(piece) for piece in pieces()) - missing
    kind, figures = _FIGURES[of.id](pieces, count)
    distinct = figures["distinct"] if "distinct" in figures else _distinct(pieces)
    identifier = count >= IDENTIFIER_ROWS and _identifier_like(name, of, pieces, count, distinct)
    warnings = [*remark.warnings, *_warnings(count, distinct, identifier=identifier)]
    if remark.kind is not None and pa.types.is_string(of):
        kind = remark.kind
    known = {"name": name, "kind": kind, "count": count, "missing": missing, "identifier_like": identifier}
    offers = [*remark.offers, *_marker_offers(kind, figures.get("top_levels") or [])]
    if pa.types.is_integer(of) and count and all(are_dates(piece.drop_null()) for piece in pieces()):
        offers.append(Offer(sentence="Read the numbers as dates: year, month and day.", kinds={name: "date:YMD"}))
    how = {"notation": remark.notation, "mostly_numbers": remark.mostly_numbers}
    written = how | {"offers": offers, "warnings": warnings}
    return Column(**(known | figures | {"distinct": distinct} | written))


def _warnings(count: int, distinct: int | None, *, identifier: bool) -> Iterator[str]:
    if not count:
        yield "No row has a value."
    elif distinct == 1:
        yield "All values are the same: nothing can be learned from it."
    if identifier:
        yield "Looks like an identifier, all values differ: it is a feature only where it is named in `features`."


def _marker_offers(kind: ColumnKind, levels: Sequence[Level]) -> Iterator[Offer]:
    """A level that is a marker of a missing value elsewhere may be one here."""
    found = [level.value for level in levels if level.value.strip().lower() in MARKERS]
    if kind is ColumnKind.CATEGORICAL and found:
        words = " and ".join(map(repr, found))
        yield Offer(sentence=f"Read {words} as missing instead of as a category.", missing=found)


def _distinct(pieces: Pieces) -> int | None:
    seen: pa.Array | None = None
    for piece in pieces():
        values = pc.add(piece, 0.0) if pa.types.is_floating(piece.type) else piece  # -0.0 is 0.0
        new = pc.unique(values.drop_null())
        seen = new if seen is None else pc.unique(pa.concat_arrays([seen, new]))
        if len(seen) > COUNTED:
            return None
    return 0 if seen is None else len(seen)


# identifiers


def _identifier_like(name: str, of: pa.DataType, pieces: Pieces, count: int, distinct: int | None) -> bool:
    if pa.types.is_string(of):
        return _all_different(pieces, count, distinct)
    if not pa.types.is_integer(of):
        return False
    return _counts_up(pieces) or (_named_like_identifier(name) and _all_different(pieces, count, distinct))


def _all_different(pieces: Pieces, count: int, distinct: int | None) -> bool:
    if distinct is not None:
        return distinct == count
    head: list[pa.Array] = []
    room = COUNTED
    for piece in pieces():
        head.append(piece.drop_null()[:room])
        room -= len(head[-1])
        if room <= 0:
            break
    values = pa.concat_arrays(head)
    return len(pc.unique(values)) == len(values)


def _counts_up(pieces: Pieces) -> bool:
    """Whole numbers 0, 1, 2, … or 1, 2, 3, … in the order of the rows."""
    expected: int | None = None
    for piece in pieces():
        values = piece.drop_null().to_numpy()
        if not len(values):
            continue
        start = int(values[0]) if expected is None else expected
        if (expected is None and start not in {0, 1}) or not np.array_equal(
            values, np.arange(start, start + len(values))
        ):
            return False
        expected = start + len(values)
    return True


def _named_like_identifier(name: str) -> bool:
    """Whether the last word is one for identifiers: `customer_id`, `orderNumber`, `ID`."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)
    return bool(words) and words[-1].lower() in _ID_WORDS


# numbers


def _numeric(pieces: Pieces, count: int) -> tuple[ColumnKind, dict[str, Any]]:
    if not count:
        return ColumnKind.NUMERIC, {}
    figures = spread(_floats(pieces), count)
    if figures["outliers"]:
        figures["outlier_rows"] = _outermost(pieces, figures["lower_whisker"], figures["upper_whisker"])
    return ColumnKind.NUMERIC, figures


def _outermost(pieces: Pieces, low: float, high: float) -> list[int]:
    """Rows of the values outside of [low, high], the farthest first."""
    rows, beyond, start = np.zeros(0, np.intp), np.zeros(0), 0
    for piece in pieces():
        x = piece.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)  # NaN where missing
        with np.errstate(over="ignore"):
            out = np.maximum(low - x, x - high)
        found = np.flatnonzero(out > 0)
        rows, beyond = np.append(rows, found + start), np.append(beyond, out[found])
        kept = np.argsort(-beyond, kind="stable")[:OUTLIERS]
        rows, beyond, start = rows[kept], beyond[kept], start + len(x)
    return [int(row) for row in rows]


def _floats(pieces: Pieces) -> Values:
    def values() -> Iterator[NDArray[np.float64]]:
        for piece in pieces():
            # Whole numbers beyond 2⁵³ are rounded, here and in no stored value.
            yield piece.drop_null().cast(pa.float64(), safe=False).to_numpy()

    return values


# levels


def _boolean(pieces: Pieces, _: int) -> tuple[ColumnKind, dict[str, Any]]:
    counts: Counter[str] = Counter()
    for piece in pieces():
        yes = pc.sum(piece).as_py() or 0
        counts["true"] += yes
        counts["false"] += len(piece) - piece.null_count - yes
    return ColumnKind.BOOLEAN, {"top_levels": _top(+counts)}


def _string(pieces: Pieces, count: int) -> tuple[ColumnKind, dict[str, Any]]:
    counts = _level_counts(pieces)
    if counts is None:
        return ColumnKind.TEXT, {"distinct": None}
    letters = sum(len(value) * n for value, n in counts.items())
    text = letters > 64 * count or (len(counts) > 20 and len(counts) > count / 2)
    return ColumnKind.TEXT if text else ColumnKind.CATEGORICAL, {"distinct": len(counts), "top_levels": _top(counts)}


def _level_counts(pieces: Pieces) -> Counter[str] | None:
    """None where there are too many different ones."""
    counts: Counter[str] = Counter()
    for piece in pieces():
        found = pc.value_counts(piece.drop_null())
        if len(found) > COUNTED:
            return None
        values, numbers = found.flatten()
        counts.update(dict(zip(values.to_pylist(), numbers.to_pylist(), strict=True)))
        if len(counts) > COUNTED or sum(map(len, counts)) > COUNTED_BYTES:
            return None
    return counts


def _top(counts: Counter[str]) -> list[Level]:
    ordered = sorted(counts.items(), key=lambda level: (-level[1], level[0]))
    return [Level(value=value[:LEVEL_LENGTH], count=n) for value, n in ordered[:TOP_LEVELS]]


def _datetime(pieces: Pieces, count: int) -> tuple[ColumnKind, dict[str, Any]]:
    if not count:
        return ColumnKind.DATETIME, {}
    extremes = [pc.min_max(piece).as_py() for piece in pieces() if piece.null_count < len(piece)]
    low, high = min(e["min"] for e in extremes), max(e["max"] for e in extremes)
    return ColumnKind.DATETIME, {"minimum": iso(low), "maximum": iso(high)}


def iso(moment: Any) -> str:
    """A `datetime` in UTC as ISO 8601."""
    return str(moment.isoformat()).replace("+00:00", "Z")


_FIGURES: dict[int, Callable[[Pieces, int], tuple[ColumnKind, dict[str, Any]]]] = {
    pa.int64().id: _numeric,
    pa.float64().id: _numeric,
    pa.bool_().id: _boolean,
    pa.string().id: _string,
    pa.timestamp("us").id: _datetime,
}
