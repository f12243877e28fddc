"""Columns that give the target away: copies of it, columns that all but determine it, times after it, identifiers.

Each check is of a sample of rows, in their order in the table, and costs one sort for each column.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Vector
from app.ml.contract.columns import ColumnKind
from app.ml.numerics.dependence.correlation import ranks
from app.ml.numerics.dependence.determined_share import determined_share

MIN_CHECKED_ROWS = 20
"""Rows with values of column and target below which nothing is found."""
MIN_SHARE_OF_NUMBERS, MIN_SHARE_OF_CLASSES = 0.95, 0.9
"""Determined shares that no column had in twenty public tables without a leak, but those of series with a trend."""
FEW_ROWS = 0.5
"""Over the number of rows it is added to these shares: those of a few rows vary more."""
MIN_FILLED_SHARE = 0.05
"""Share of the rows that have a value of the column."""
COPY_TOLERANCE = 1e-6
"""Largest deviation of a copy, as a share of the range of the target."""
MIN_LATER_SHARE = 0.9
"""Share of the rows in which a time is later than another that makes it the later one."""
MIN_DIGITS = 6
"""Whole numbers of equally many digits, no two equal, are like identifiers from so many digits on."""
GAPLESS = 1.1
"""Numbers within a range of so many times the rows, no two equal, count the rows."""
YEARS = range(1500, 2101)
NAMED_COLUMNS = 10
"""Columns named in one warning."""


class CheckedColumn(NamedTuple):
    name: str
    kind: ColumnKind
    values: Vector
    """(n,) numbers, truth values as 0 and 1, times in seconds, or codes of categories; NaN where missing."""

    @property
    def there(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.values)


class CheckedTarget(NamedTuple):
    name: str
    y: Vector
    """(n,) numbers or class codes."""
    classes: bool
    scale: Vector
    """(n,) what determined shares are of: ranks of numbers, or class codes."""

    @classmethod
    def of(cls, name: str, y: Vector, *, classes: bool) -> Self:
        return cls(name, y, classes, y if classes else ranks(y))


class Line(NamedTuple):
    """The target as a linear function of a column, by least squares."""

    slope: float
    offset: float
    deviation: float
    """Largest deviation of the target from it."""
    share: float
    """Share of the variance of the target that it explains."""

    @classmethod
    def fit(cls, x: Vector, y: Vector) -> Self:
        """x, y: (n,), neither constant. Deviations are divided by the largest, so that no square overflows."""
        means, centred = (x.mean(), y.mean()), (x - x.mean(), y - y.mean())
        reach = np.abs(centred[0]).max(), np.abs(centred[1]).max()
        across, up = centred[0] / reach[0], centred[1] / reach[1]
        steepness = (across @ up) / (across @ across)
        residual = up - steepness * across
        slope = float(steepness * reach[1] / reach[0])
        deviation = float(np.abs(residual).max() * reach[1])
        return cls(slope, float(means[1] - slope * means[0]), deviation, float(1 - residual @ residual / (up @ up)))


def copy_warnings(columns: Sequence[CheckedColumn], target: CheckedTarget) -> Iterator[tuple[str, str]]:
    """Name and warning for each column that equals the target, but for units or the names of classes."""
    for column in columns:
        there = column.there
        if there.sum() < max(MIN_CHECKED_ROWS / 2, MIN_FILLED_SHARE * there.size):
            continue
        if copied := _copied(column, target):
            warning = (
                f"Column {column.name!r} {copied}, in all {there.sum()} rows compared: a model that reads it learns "
                "nothing else. Leave it out of features, unless it is known before the target."
            )
            yield column.name, warning


def _copied(column: CheckedColumn, target: CheckedTarget) -> str | None:
    """The way in which a column is the target; None: it is not."""
    x, y = column.values[column.there], target.y[column.there]
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    if target.classes:
        return f"names the classes of the target {target.name!r}, one to one" if _one_to_one(x, y) else None
    if column.kind is ColumnKind.CATEGORICAL:
        return None
    if np.array_equal(x, y):
        return f"equals the target {target.name!r}"
    line, tolerance = Line.fit(x, y), COPY_TOLERANCE * np.ptp(y)
    if line.deviation > tolerance:
        return None
    plus = f" plus {line.offset:.6g}" if abs(line.offset) > tolerance else ""
    return f"is the target {target.name!r} in other units: the target is {line.slope:.6g} times it{plus}"


def _one_to_one(x: Vector, y: Vector) -> bool:
    if np.unique(x).size != np.unique(y).size:
        return False
    (_, codes), (classes, labels) = (np.unique(values, return_inverse=True) for values in (x, y))
    return bool(np.unique(codes * classes.size + labels).size == classes.size)


def determined_warnings(
    columns: Sequence[CheckedColumn], target: CheckedTarget, rng: np.random.Generator
) -> Iterator[str]:
    """A warning of all columns each of which nearly determines the target alone."""
    if len(columns) < 2:
        return
    least = (MIN_SHARE_OF_CLASSES if target.classes else MIN_SHARE_OF_NUMBERS) + FEW_ROWS / max(1, target.y.size)
    shares = {column.name: _determined(column, target, rng) for column in columns}
    strong = sorted(((share, name) for name, share in shares.items() if share >= least), reverse=True)
    if strong:
        shown = listed([f"{name!r} ({math.floor(1000 * share) / 10:g} %)" for share, name in strong])
        columns_are, they_are, them = (
            ("Column", "it is", "it") if len(strong) == 1 else ("Each of the columns", "they are", "them")
        )
        yield (
            f"{columns_are} {shown} alone nearly determines the target {target.name!r}, by the share of its variation "
            f"that the column explains in {target.y.size} rows. If {they_are} known only after the target, leave "
            f"{them} out of features."
        )


def _determined(column: CheckedColumn, target: CheckedTarget, rng: np.random.Generator) -> float:
    """The largest share: in all rows, where a missing value is one of its own, or in rows with a value.

    Of numbers it is that of their ranks, which many equal or a few far ones do not rule, or the square of the
    correlation, which few rows suffice for.
    """
    if column.kind is ColumnKind.DATETIME or (_is_monotone(column.values) and not _is_monotone(target.y)):
        return 0.0  # a clock, beside which every steady series is smooth
    there, categories = column.there, column.kind is ColumnKind.CATEGORICAL
    if there.sum() < max(MIN_CHECKED_ROWS, MIN_FILLED_SHARE * there.size):
        return 0.0
    parts = [there] if there.all() else [there, np.ones(there.size, np.bool_)]
    shares = [
        determined_share(column.values[part], target.scale[part], rng, categories=categories, classes=target.classes)
        for part in parts
    ]
    if not categories and not target.classes:
        x, y = column.values[there], target.y[there]
        shares.append(Line.fit(x, y).share if np.ptp(x) > 0 and np.ptp(y) > 0 else 0.0)
    return max((share for share in shares if not math.isnan(share)), default=0.0)


def _is_monotone(x: Vector) -> bool:
    """True if values rise, or fall, from row to row."""
    steps = np.diff(x[~np.isnan(x)])
    return bool((steps >= 0).all() or (steps <= 0).all())


def late_warnings(columns: Sequence[CheckedColumn], time: CheckedColumn | None) -> Iterator[str]:
    """A warning of times after that of the row. time: the column that orders the rows; None: the earliest of dates."""
    dates = [column for column in columns if column.kind is ColumnKind.DATETIME]
    first = time or _earliest(dates)
    if first is None:
        return
    others = (
        dates if first.kind is ColumnKind.DATETIME else [column for column in columns if _moves_with(column, first)]
    )
    later = {column.name: _later(column, first) for column in others if column.name != first.name}
    later = {name: share for name, share in later.items() if share}
    if later:
        shown = listed([f"{name!r} (in {share:.0%} of the rows)" for name, share in later.items()])
        rows_time = "the earliest date of the rows" if time is None else "the time that orders the rows"
        advice = " If rows are predicted at another time, name its column in validation.time." if time is None else ""
        columns_are, it_is, them = (
            ("Column", "it is", "it") if len(later) == 1 else ("Each of the columns", "they are", "them")
        )
        yield (
            f"{columns_are} {shown} is later than {first.name!r}, {rows_time}, and perhaps not known yet when a row is "
            f"predicted. Leave {them} out of features, unless {it_is} known by then.{advice}"
        )


def _earliest(dates: Sequence[CheckedColumn]) -> CheckedColumn | None:
    """The date that is before any other in most rows; None: there is none, or it is a date of birth."""
    for column in dates:
        if all(_later(other, column) for other in dates if other is not column) and len(dates) > 1:
            return None if {"birth", "born", "dob"} & {*column.name.lower().replace("-", "_").split("_")} else column
    return None


def _later(column: CheckedColumn, first: CheckedColumn) -> float:
    """The share of the rows with both in which it is later; 0 where these are few."""
    both = column.there & first.there
    if both.sum() < MIN_CHECKED_ROWS / 2:
        return 0.0
    share = float((column.values[both] > first.values[both]).mean())
    return share if share >= MIN_LATER_SHARE else 0.0


def _moves_with(column: CheckedColumn, first: CheckedColumn) -> bool:
    """True if numbers stay near those of a time of numbers, as those of another time do."""
    both = column.there & first.there
    if column.kind is not ColumnKind.NUMERIC or not both.any():
        return False
    x, t = column.values[both], first.values[both]
    return bool(np.std(x - t) < np.std(t) / 2 and np.abs(x - t).max() <= np.ptp(t))


def identifier_warnings(columns: Sequence[CheckedColumn], rows: int) -> Iterator[str]:
    """A warning of features whose whole numbers name rows, beyond those that the data sheet flags. rows: in all."""
    names = [repr(column.name) for column in columns if _names_rows(column, rows)]
    if names:
        columns_look, them = ("Column", "it") if len(names) == 1 else ("Each of the columns", "them")
        yield (
            f"{columns_look} {listed(names)} looks like an identifier: every one of {columns[0].values.size} rows has "
            f"another whole number, without gaps or with equally many digits. Leave {them} out of features: such "
            "numbers mean nothing for new rows."
        )


def _names_rows(column: CheckedColumn, rows: int) -> bool:
    x = column.values[column.there]
    if column.kind is not ColumnKind.NUMERIC or x.size < MIN_CHECKED_ROWS or np.unique(x).size < x.size:
        return False
    low, high = float(x.min()), float(x.max())
    if low < 0 or not (x == np.floor(x)).all() or (low in YEARS and high in YEARS):
        return False
    digits = len(str(int(low)))
    return high - low < GAPLESS * rows or (digits >= MIN_DIGITS and digits == len(str(int(high))))


def listed(parts: Sequence[str]) -> str:
    """The first parts and the number of the others, as a sentence has them."""
    more = len(parts) - NAMED_COLUMNS
    shown = [*parts[:NAMED_COLUMNS], *([f"{more} more"] if more > 0 else [])]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)
