"""Distribution of the numbers of a column: moments, quartiles, box plot and histogram (LION 5)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Matrix, Vector
from app.ml.statistics.quantiles import HELD, Values, quantiles, quantiles_of_sorted

MOST_BINS = 50
PERCENTILES = 0.01, 0.05, 0.1, 0.9, 0.95, 0.99
SHARES = *PERCENTILES, 0.09, 0.25, 0.5, 0.75, 0.91


class Bin(Wire):
    """One bar of a histogram: from `lower` (included) to `upper` (excluded, but for the last)."""

    lower: float = Field(description="Lower end of the bin.")
    upper: float = Field(description="Upper end of the bin.")
    count: int = Field(description="Number of values in the bin.")


class Percentile(Wire):
    """The value below which this share of the values lies."""

    share: float = Field(description="Share of the values at or below, from 0 to 1.")
    value: float = Field(description="Value of the percentile.")


class Whiskers(Wire):
    """The ends of a box plot by another rule, and how many values lie beyond."""

    rule: str = Field(
        description="extremes: minimum and maximum. deviation: one standard deviation around the mean. percentiles: "
        "the 9th and the 91st."
    )
    lower: float = Field(description="Smallest value that is no outlier.")
    upper: float = Field(description="Largest value that is no outlier.")
    outliers: int = Field(description="Number of outliers.")


def histogram(values: Vector) -> list[Bin]:
    """Histogram of finite values (n,), at least one."""
    edges = _edges(float(values.min()), float(values.max()), values.size)
    counts = np.histogram(values, edges)[0] if edges.size > 1 and edges[0] < edges[-1] else [values.size]
    return _bins(edges, counts)


def _bins(edges: Vector, counts: ArrayLike) -> list[Bin]:
    ends = edges.tolist()
    return [
        Bin(lower=a, upper=b, count=n) for a, b, n in zip(ends[:-1], ends[1:], np.asarray(counts).tolist(), strict=True)
    ]


def spread(values: Values, count: int) -> dict[str, Any]:
    """The metrics of `app.ml.tables.data_sheet.Column` that only numbers have; `count` values, at least one."""
    return spread_and_distinct(values, count)[0]


def spread_and_distinct(values: Values, count: int) -> tuple[dict[str, Any], int | None]:
    """The result of `spread`, and how many values differ, where that is at hand."""
    return _spread_of_sorted(values, count) if count <= HELD else (_spread_of_many(values, count), None)


def _spread_of_many(values: Values, count: int) -> dict[str, Any]:
    low = min(float(x.min()) for x in values() if len(x))
    high = max(float(x.max()) for x in values() if len(x))
    center = moments(values, low, high)
    quantile_of = dict(zip(SHARES, quantiles(values, count, SHARES), strict=True))
    reach = 1.5 * (quantile_of[0.75] - quantile_of[0.25])
    edges = _edges(low, high, count)
    box = _box(values, quantile_of[0.25] - reach, quantile_of[0.75] + reach, edges)
    return _fields((low, high), center, quantile_of, box, edges, beyond=partial(_beyond, values))


def _spread_of_sorted(values: Values, count: int) -> tuple[dict[str, Any], int]:
    """The same of values that fit into memory: sorted once, nearly all of it is looked up."""
    ordered = np.sort(np.concatenate([*values()])) + 0.0  # -0.0 is 0.0
    low, high = float(ordered[0]), float(ordered[-1])
    center = moments(values, low, high)
    quantile_of = dict(zip(SHARES, quantiles_of_sorted(ordered, SHARES), strict=True))
    reach = 1.5 * (quantile_of[0.75] - quantile_of[0.25])
    edges = _edges(low, high, count)

    def beyond(lower: float, upper: float) -> int:
        inside = np.searchsorted(ordered, upper, side="right") - np.searchsorted(ordered, lower)
        return count - int(inside)

    first = np.searchsorted(ordered, quantile_of[0.25] - reach)
    last = np.searchsorted(ordered, quantile_of[0.75] + reach, side="right") - 1
    counts = np.diff(np.searchsorted(ordered, edges[:-1]), append=count)
    outliers = beyond(quantile_of[0.25] - reach, quantile_of[0.75] + reach)
    box = _Box(float(ordered[first]), float(ordered[last]), outliers, counts if low < high else np.array([count]))
    distinct = 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))
    return _fields((low, high), center, quantile_of, box, edges, beyond=beyond), distinct


def _fields(
    ends: tuple[float, float],
    moments: tuple[float, float | None],
    quantile_of: Mapping[float, float],
    box: "_Box",
    edges: Vector,
    *,
    beyond: Callable[[float, float], int],
) -> dict[str, Any]:
    """beyond: the number of values outside of an interval."""
    (low, high), (mean, deviation) = ends, moments
    rules = {"extremes": (low, high), "percentiles": (quantile_of[0.09], quantile_of[0.91])}
    if deviation is not None and np.isfinite([mean - deviation, mean + deviation]).all():
        rules["deviation"] = mean - deviation, mean + deviation
    return {
        "minimum": low,
        "first_quartile": quantile_of[0.25],
        "median": quantile_of[0.5],
        "third_quartile": quantile_of[0.75],
        "maximum": high,
        "mean": mean,
        "standard_deviation": deviation,
        "lower_whisker": box.low,
        "upper_whisker": box.high,
        "outliers": box.outliers,
        "other_whiskers": [
            Whiskers(rule=rule, lower=a, upper=b, outliers=beyond(a, b)) for rule, (a, b) in rules.items()
        ],
        "percentiles": [Percentile(share=share, value=quantile_of[share]) for share in PERCENTILES],
        "histogram": _bins(edges, box.counts),
    }


def spreads(values: Matrix) -> list[dict[str, Any]]:
    """`spread` of each row of values (k, n), n at least one: many short columns at once."""
    n = values.shape[1]
    ordered = np.sort(values, axis=1) + 0.0  # -0.0 is 0.0
    low, high = ordered[:, 0], ordered[:, -1]
    with np.errstate(all="ignore"):  # what is not finite is left out, as in `spread`
        mean, deviation = _moments_of_rows(values, low, high)
        quantile_of = {share: _quantile_of_rows(ordered, share) for share in SHARES}
        reach = 1.5 * (quantile_of[0.75] - quantile_of[0.25])
        inside = ~_beyond_of_rows(ordered, quantile_of[0.25] - reach, quantile_of[0.75] + reach)
        rules = {
            "extremes": (low, high),
            "percentiles": (quantile_of[0.09], quantile_of[0.91]),
            "deviation": (mean - deviation, mean + deviation),
        }
    edges, counts = _histograms(ordered, low, high)
    fields = {
        "minimum": low,
        "first_quartile": quantile_of[0.25],
        "median": quantile_of[0.5],
        "third_quartile": quantile_of[0.75],
        "maximum": high,
        "mean": mean,
        "standard_deviation": deviation,
        "lower_whisker": np.where(inside, ordered, np.inf).min(axis=1),
        "upper_whisker": np.where(inside, ordered, -np.inf).max(axis=1),
        "outliers": n - inside.sum(axis=1),
        "other_whiskers": zip(*(_whiskers(rule, ordered, *ends) for rule, ends in rules.items()), strict=True),
        "percentiles": zip(*(_percentiles(share, quantile_of[share]) for share in PERCENTILES), strict=True),
        "histogram": zip(edges.tolist(), counts.tolist(), strict=True),
    }
    lists = [x.tolist() if isinstance(x, np.ndarray) else list(x) for x in fields.values()]
    sound = ((low == high) | (np.diff(edges, axis=1) > 0).all(axis=1)).tolist()
    return [
        _described(dict(zip(fields, row, strict=True)), n) if good else spread(partial(iter, [x]), n)
        for x, good, row in zip(values, sound, zip(*lists, strict=True), strict=True)
    ]


def _described(row: dict[str, Any], n: int) -> dict[str, Any]:
    """The fields of one row, with what there is of them."""
    ends, counts = row["histogram"]
    if row["minimum"] == row["maximum"]:
        ends, counts = [row["minimum"], row["maximum"]], [n]
    row["histogram"] = [
        {"lower": a, "upper": b, "count": count} for a, b, count in zip(ends[:-1], ends[1:], counts, strict=True)
    ]
    row["standard_deviation"] = _finite(row["standard_deviation"])
    row["percentiles"] = list(row["percentiles"])
    row["other_whiskers"] = [w for w in row["other_whiskers"] if np.isfinite(w["lower"]) and np.isfinite(w["upper"])]
    return row


def _whiskers(rule: str, values: Matrix, low: Vector, high: Vector) -> list[dict[str, Any]]:
    outliers = _beyond_of_rows(values, low, high).sum(axis=1)
    triples = zip(low.tolist(), high.tolist(), outliers.tolist(), strict=True)
    return [{"rule": rule, "lower": a, "upper": b, "outliers": count} for a, b, count in triples]


def _percentiles(share: float, values: Vector) -> list[dict[str, float]]:
    return [{"share": share, "value": value} for value in values.tolist()]


def _beyond_of_rows(values: Matrix, low: Vector, high: Vector) -> NDArray[np.bool_]:
    return (values < low[:, None]) | (values > high[:, None])


def _quantile_of_rows(ordered: Matrix, share: float) -> Vector:
    """The quantile of each row by the rule of `quantiles`; rows are in ascending order."""
    last = ordered.shape[1] - 1
    place = last * share
    lower, upper, part = ordered[:, int(place)], ordered[:, min(int(place) + 1, last)], place - int(place)
    return np.where(lower == upper, lower, (1.0 - part) * lower + part * upper)


def _moments_of_rows(values: Matrix, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """The `moments` of each row; NaN or infinity where the deviation is null."""
    n = values.shape[1]
    scale = np.ldexp(1.0, np.frexp(np.maximum(np.abs(low), np.abs(high)))[1] - 1)
    x = values / scale[:, None]
    center = x.mean(axis=1)
    variance = np.square(x - center[:, None]).sum(axis=1) / (n - 1) if n > 1 else np.full(len(values), np.nan)
    deviation = scale * np.array([value**0.5 for value in variance.tolist()])
    constant = low == high
    return np.where(constant, low, scale * (center * n / n)), np.where(constant & (n > 1), 0.0, deviation)


def _histograms(ordered: Matrix, low: Vector, high: Vector) -> tuple[Matrix, NDArray[np.int64]]:
    """Edges (k, b + 1) and counts (k, b) of rows in ascending order, as `_edges` and `_box` have them."""
    n = ordered.shape[1]
    bins = min(MOST_BINS, int(np.ceil(2 * n ** (1 / 3))))
    share = np.arange(bins + 1) / bins
    edges = low[:, None] * (1 - share) + high[:, None] * share
    edges[:, 0], edges[:, -1] = low, high
    not_below = np.stack([(ordered >= edges[:, number, None]).sum(axis=1) for number in range(bins)], axis=1)
    return edges, -np.diff(not_below, axis=1, append=0)


def moments(values: Values, low: float, high: float) -> tuple[float, float | None]:
    """Mean and standard deviation (n - 1; None for one value), chunks merged by Chan, Golub & LeVeque (1979).

    Values are divided by a power of two near the largest, which costs no digit and cannot overflow.
    """
    if low == high:
        return low, 0.0 if sum(len(x) for x in values()) > 1 else None
    scale = float(np.ldexp(1.0, int(np.frexp(max(abs(low), abs(high)))[1]) - 1))
    n, mean, squares = 0, 0.0, 0.0
    for chunk in values():
        if not len(chunk):
            continue
        x, k = chunk / scale, len(chunk)
        center = float(x.mean())
        shift = center - mean
        squares += float(np.square(x - center).sum()) + shift * shift * n * k / (n + k)
        mean += shift * k / (n + k)
        n += k
    return scale * mean, _finite(scale * (squares / (n - 1)) ** 0.5)


def _beyond(values: Values, low: float, high: float) -> int:
    return sum(int(((x < low) | (x > high)).sum()) for x in values())


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _edges(low: float, high: float, count: int) -> NDArray[np.float64]:
    """Equal bins, their number by Rice's rule: 2·∛n."""
    if low == high:
        return np.array([low, high])
    bins = min(MOST_BINS, int(np.ceil(2 * count ** (1 / 3))))
    share = np.arange(bins + 1) / bins
    edges = low * (1 - share) + high * share  # high - low may overflow
    edges[0], edges[-1] = low, high
    return np.unique(edges)


class _Box(NamedTuple):
    low: float
    high: float
    outliers: int
    counts: NDArray[np.int64]


def _box(values: Values, low: float, high: float, edges: NDArray[np.float64]) -> _Box:
    """Whiskers: the outermost values within the fences [low, high]; and the histogram."""
    lowest, highest, outliers = np.inf, -np.inf, 0
    counts = np.zeros(len(edges) - 1, np.int64)
    for x in values():
        inside = x[(x >= low) & (x <= high)]
        lowest, highest = inside.min(initial=lowest), inside.max(initial=highest)
        outliers += len(x) - len(inside)
        place = np.searchsorted(edges, x, side="right") - 1
        counts += np.bincount(np.minimum(place, len(counts) - 1), minlength=len(counts))
    return _Box(float(lowest), float(highest), outliers, counts)
