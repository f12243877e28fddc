"""Statistics of a column by its type: distribution of numbers, most frequent levels, first and last moment."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.ml.contract.columns import ColumnKind
from app.ml.statistics.histogram_and_box_plot import spread_and_distinct, spreads
from app.ml.statistics.quantiles import Values
from app.ml.tables.data_sheet import Chunks, Level

COUNTED = 100_000
"""Different values counted before giving up."""
EXACT = 2.0**53
"""Up to here float64 holds every whole number."""
COUNTED_BYTES = 64 << 20
TOP_LEVELS = 20
LEVEL_LENGTH = 200
OUTLIERS = 100
"""Listed by their row."""


def different(chunks: Chunks) -> int | None:
    seen: pa.Array | None = None
    for chunk in _slices(chunks):
        values = pc.add(chunk, 0.0) if pa.types.is_floating(chunk.type) else chunk  # -0.0 is 0.0
        new = pc.unique(values.drop_null())
        seen = new if seen is None else pc.unique(pa.concat_arrays([seen, new]))
        if len(seen) > COUNTED:
            return None
    return 0 if seen is None else len(seen)


def _slices(chunks: Chunks) -> Iterator[pa.Array]:
    """The same rows, at most `COUNTED` at a time: what has too many different values shows it soon."""
    return (part.slice(start, COUNTED) for part in chunks() for start in range(0, len(part), COUNTED))


def _numeric(chunks: Chunks, count: int) -> tuple[ColumnKind, dict[str, Any]]:
    if not count:
        return ColumnKind.NUMERIC, {}
    statistics, distinct = spread_and_distinct(_floats(chunks), count)
    rounded = pa.types.is_integer(next(chunks()).type) and max(-statistics["minimum"], statistics["maximum"]) > EXACT
    if distinct is not None and not rounded:
        statistics["distinct"] = distinct if distinct <= COUNTED else None
    if statistics["outliers"]:
        statistics["outlier_rows"] = _outermost(chunks, statistics["lower_whisker"], statistics["upper_whisker"])
    return ColumnKind.NUMERIC, statistics


def numeric_statistics(columns: Sequence[pa.Array]) -> list[dict[str, Any]]:
    """The statistics of `STATISTICS` for numeric columns, with `distinct`, many short ones at once."""
    statistics: list[dict[str, Any]] = [{"distinct": 0} for _ in columns]
    groups: dict[tuple[int, pa.DataType], list[int]] = defaultdict(list)
    for number, column in enumerate(columns):
        groups[len(column) - column.null_count, column.type].append(number)
    for (count, _), numbers in groups.items():
        if not count:
            continue
        values = np.stack([columns[number].drop_null().to_numpy() for number in numbers])
        distinct = 1 + (np.diff(np.sort(values, axis=1), axis=1) != 0).sum(axis=1)
        described = spreads(values.astype(np.float64, copy=False))
        for number, different_values, row in zip(numbers, distinct.tolist(), described, strict=True):
            statistics[number] = row | {"distinct": different_values}
            if row["outliers"]:
                ends = row["lower_whisker"], row["upper_whisker"]
                statistics[number]["outlier_rows"] = _outermost(partial(iter, [columns[number]]), *ends)
    return statistics


def _outermost(chunks: Chunks, low: float, high: float) -> list[int]:
    """Rows of the values outside of [low, high], the farthest first."""
    rows, beyond, start = np.zeros(0, np.intp), np.zeros(0), 0
    for chunk in chunks():
        x = chunk.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)  # NaN where missing
        with np.errstate(over="ignore"):
            out = np.maximum(low - x, x - high)
        far_rows = np.flatnonzero(out > 0)
        rows, beyond = np.append(rows, far_rows + start), np.append(beyond, out[far_rows])
        farthest = np.argsort(-beyond, kind="stable")[:OUTLIERS]
        rows, beyond, start = rows[farthest], beyond[farthest], start + len(x)
    return [int(row) for row in rows]


def _floats(chunks: Chunks) -> Values:
    def values() -> Iterator[NDArray[np.float64]]:
        for chunk in chunks():
            # Whole numbers beyond 2⁵³ are rounded, here and in no stored value.
            yield chunk.drop_null().cast(pa.float64(), safe=False).to_numpy()

    return values


# levels


def _boolean(chunks: Chunks, _: int) -> tuple[ColumnKind, dict[str, Any]]:
    counts: Counter[str] = Counter()
    for chunk in chunks():
        yes = pc.sum(chunk).as_py() or 0
        counts["true"] += yes
        counts["false"] += len(chunk) - chunk.null_count - yes
    return ColumnKind.BOOLEAN, {"top_levels": _top(+counts)}


def _string(chunks: Chunks, count: int) -> tuple[ColumnKind, dict[str, Any]]:
    counts = _level_counts(chunks)
    if counts is None:
        return ColumnKind.TEXT, {"distinct": None}
    letters = sum(len(value) * n for value, n in counts.items())
    text = letters > 64 * count or (len(counts) > 20 and len(counts) > count / 2)
    return ColumnKind.TEXT if text else ColumnKind.CATEGORICAL, {"distinct": len(counts), "top_levels": _top(counts)}


def _level_counts(chunks: Chunks) -> Counter[str] | None:
    """None where there are too many different ones."""
    counts: Counter[str] = Counter()
    for chunk in _slices(chunks):
        value_counts = pc.value_counts(chunk.drop_null())
        values, numbers = value_counts.flatten()
        counts.update(dict(zip(values.to_pylist(), numbers.to_pylist(), strict=True)))
        if len(counts) > COUNTED or sum(map(len, counts)) > COUNTED_BYTES:
            return None
    return counts


def _top(counts: Counter[str]) -> list[Level]:
    ordered = sorted(counts.items(), key=lambda level: (-level[1], level[0]))
    return [Level(value=value[:LEVEL_LENGTH], count=n) for value, n in ordered[:TOP_LEVELS]]


def _datetime(chunks: Chunks, count: int) -> tuple[ColumnKind, dict[str, Any]]:
    if not count:
        return ColumnKind.DATETIME, {}
    extremes = [pc.min_max(chunk).as_py() for chunk in chunks() if chunk.null_count < len(chunk)]
    low, high = min(e["min"] for e in extremes), max(e["max"] for e in extremes)
    return ColumnKind.DATETIME, {"minimum": iso(low), "maximum": iso(high)}


def iso(moment: Any) -> str:
    """A `datetime` in UTC as ISO 8601."""
    return str(moment.isoformat()).replace("+00:00", "Z")


NUMERIC_TYPES = frozenset({pa.int64().id, pa.float64().id})
STATISTICS: dict[int, Callable[[Chunks, int], tuple[ColumnKind, dict[str, Any]]]] = {
    pa.int64().id: _numeric,
    pa.float64().id: _numeric,
    pa.bool_().id: _boolean,
    pa.string().id: _string,
    pa.timestamp("us").id: _datetime,
}
