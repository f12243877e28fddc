"""Imputation by column: the value of each column that a request names, from its training rows, as SimpleImputer has it.

A named column is filled before anything else is made of it: functions, parts of dates, levels and encodings see the
value. Its scale and its range are those of the values that are there. Algorithms that take missing values get named
columns filled too. Row weights play no part.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.contract.dates_and_times import moments
from app.ml.numerics.scaling import Spread
from app.ml.preparation.arrow_columns import Raw, RawColumn, codes, distinct, measured
from app.ml.preparation.request import Constant, Imputation, Strategy

Fill: TypeAlias = float | str
"""A number as in the raw matrix, or a category."""
SUMMARIES: Mapping[str, Callable[[Vector], float]] = {"mean": np.mean, "median": np.median}


def learned_fills(
    how: Imputation, raw: Raw, rows: Labels, spreads: Mapping[str, Spread] = MappingProxyType({})
) -> dict[str, Fill]:
    """By name, of the columns that the request names; categories that keep a level for missing values are left out.

    spreads: by name, moments of columns of more rows than these, where these are a sample.
    """
    fills: dict[str, Fill] = {}
    for place, column in enumerate(raw.columns):
        strategy = None if isinstance(how, str) else how.get(column.name)
        if strategy is None or strategy == "level":
            continue
        if strategy == "mean" and column.name in spreads:
            fills[column.name] = spreads[column.name].mean
            continue
        values = raw.values[rows, place]
        words = raw.vocabularies[place]
        fill = _fill(strategy, column.kind, values[~np.isnan(values)], words)
        if fill is not None:
            fills[column.name] = fill
    return fills


def _fill(strategy: Strategy, kind: ColumnKind, present: Vector, words: pa.Array | None) -> Fill | None:
    """Without training values a number is 0, and a category None: it keeps a level for missing values."""
    if isinstance(strategy, Constant):
        return constant_fill(strategy, kind)
    if not present.size:
        return 0.0 if words is None else None
    if strategy != "most_frequent":
        return float(SUMMARIES[strategy](present))
    values, counts = np.unique(present, return_counts=True)
    commonest = float(values[counts.argmax()])  # of several the smallest
    return commonest if words is None else str(words[int(commonest)].as_py())


def constant_fill(strategy: Constant, kind: ColumnKind) -> Fill | None:
    """The constant as the raw matrix has it; None where it is no value of this kind."""
    constant = strategy.constant
    if kind == ColumnKind.DATETIME:
        time = moments(pa.array([constant if isinstance(constant, str) else ""]), "YMD")
        return None if time.null_count else float(measured(time, "")[0])
    if kind == ColumnKind.BOOLEAN:
        return float(constant) if isinstance(constant, bool) else None
    if kind == ColumnKind.NUMERIC:
        return None if isinstance(constant, bool | str) else float(constant)
    return constant if isinstance(constant, str) else None


def filled_words(values: Vector, words: pa.Array, fill: Fill | None) -> tuple[Vector, pa.Array]:
    """Codes (n,) of a categorical column and their words, ascending, with this word for missing values."""
    lacking = np.isnan(values)
    if fill is None or not lacking.any():
        return values, words
    fill_word = pa.array([fill], words.type)
    extended = distinct(pa.concat_arrays([words, fill_word]))
    filled = np.full(values.size, codes(fill_word, extended)[0])
    filled[~lacking] = codes(words, extended)[values[~lacking].astype(np.intp)]
    return filled, extended


def filled_numbers(values: Matrix, columns: Sequence[RawColumn], fills: Mapping[str, Fill]) -> Matrix:
    """Numbers (n, p) of a table read for training with these values in place of missing ones."""
    if not fills:
        return values
    column_fills = [fills.get(column.name, np.nan) for column in columns]
    return filled(values, np.array([np.nan if isinstance(fill, str) else fill for fill in column_fills]))


def filled(raw: Matrix, fills: Vector | None) -> Matrix:
    """The raw matrix (n, p) with these values in place of missing ones."""
    return raw if fills is None else np.where(np.isnan(raw), fills, raw)
