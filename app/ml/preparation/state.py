"""State of a preparation, computed on the training rows: ranges and levels of the inputs, functions, scaling."""

import math
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.numerics.scaling import MAX_MULTIPLIABLE, Spread, spread
from app.ml.preparation.arrow_columns import Raw, RawColumn
from app.ml.preparation.date_parts import DateParts, learned_parts
from app.ml.preparation.functions import Basis, learned
from app.ml.preparation.imputation import Fill, filled_numbers, filled_words
from app.ml.preparation.request import Preprocessing
from app.ml.preparation.target_encoding import MOST_LEVELS

Truths = NDArray[np.bool_]


class PreparationState(NamedTuple):
    """An entry per column of the wide matrix (p + f,), neutral where it does not apply."""

    fill: Vector
    offset: Vector
    scale: Vector
    other: Truths
    """Categorical inputs with a level for everything rare."""
    missing: Truths
    """Categorical inputs with a level for missing values."""


class _Fact(NamedTuple):
    """Facts of one column, as in `PreparationState`."""

    fill: float
    offset: float
    scale: float
    other: bool = False
    missing: bool = False


def learn(
    raw: Raw,
    rows: Labels,
    how: Preprocessing,
    fills: Mapping[str, Fill] = MappingProxyType({}),
    spreads: Mapping[str, Spread] = MappingProxyType({}),
    *,
    encodes: bool,
    scaled: bool,
    centred: bool,
) -> tuple[list[InputColumn], Basis, PreparationState]:
    """Ranges, levels, functions and scales of the columns. Raises InvalidData for undefined functions.

    fills: by name, what stands for missing values of columns. spreads: by name, moments of columns of more rows than
    these, where these are a sample. encodes: whether columns of more than `max_levels`
    categories keep them all, to be encoded by the target. scaled: whether the algorithm wants numbers on one scale at
    all. centred: whether a column's 0 may move for it.
    """
    as_wanted = partial(_number, how=how, scaled=scaled, centred=centred)
    inputs, facts, spread_of = [], [], {}
    for place, column in enumerate(raw.columns):
        values, words = raw.values[rows, place], raw.vocabularies[place]
        complete = None if np.isnan(values).any() else True
        if words is None:
            spread_of[column.name] = spreads.get(column.name) or spread(values)
            inputs.append(_measured_input(column, spread_of[column.name], complete=complete))
            facts.append(as_wanted(column.name, values, spread_of[column.name], fill=fills.get(column.name)))
        else:
            values, words = filled_words(values, words, fills.get(column.name))
            levels, other = _levels(values, words, how.max_levels)
            if other and encodes:
                levels, other = _levels(values, words, MOST_LEVELS)
            inputs.append(InputColumn(**column._asdict(), levels=levels, complete=complete))
            facts.append(_Fact(0.0, 0.0, 1.0, other, bool(np.isnan(values).any())))
    numbers = [column.name for column in raw.columns if column.kind is ColumnKind.NUMERIC and not column.role]
    parts = learned_parts(how.dates, raw)
    functions = (*parts, *learned(how.basis, numbers, spread_of, scaled=how.scale != "none" and centred))
    basis = Basis(tuple(column.name for column in inputs), functions)
    if functions:
        complete_values = filled_numbers(raw.values[rows], raw.columns, fills)
        table = basis.of(complete_values)
        _defined(basis, complete_values, table, how)
        columns = zip(basis.names, np.asfortranarray(table).T, strict=True)
        facts += [as_wanted(name, values, spread(values)) for name, values in columns]
    fill, offset, scale = (np.array([fact[i] for fact in facts], np.float64) for i in range(3))
    others, lacking = (np.array([fact[i] for fact in facts], np.bool_) for i in (3, 4))
    return inputs, basis, PreparationState(fill, offset, scale, others, lacking)


def _defined(basis: Basis, raw: Matrix, values: Matrix, how: Preprocessing) -> None:
    missing = np.isnan(values).sum(axis=0)
    missing[: sum(len(function.names) for function in basis.functions if isinstance(function, DateParts))] = (
        0  # missing as dates are
    )
    undefined = basis.undefined(raw, values).sum(axis=0)
    messages = [f"{name}: {count}" for name, count in zip(basis.names, undefined.tolist(), strict=True) if count]
    if messages and how.undefined == "refuse":
        raise InvalidData(
            f"Functions without a value in training rows, with the number of such rows: {'; '.join(messages[:10])}. "
            "To take such values for missing ones, set preprocessing.undefined to impute."
        )
    if (nowhere := np.flatnonzero(missing == len(raw))).size:
        raise InvalidData(f"The function {basis.names[nowhere[0]]} has no value in any training row.")


def _number(
    name: str,
    values: Vector,
    column_spread: Spread,
    how: Preprocessing,
    *,
    scaled: bool,
    centred: bool,
    fill: Fill | None = None,
) -> _Fact:
    """Raises InvalidData for numbers that, scaled as requested, are still too large to compute with."""
    fill_value = _fill(values, column_spread, how) if fill is None else float(fill)
    fact = _Fact(fill_value, *(scaling(column_spread, how, centred=centred) if scaled else (0.0, 1.0)))
    if (
        scaled
        and not max(fact.offset - column_spread.low, column_spread.high - fact.offset) / fact.scale <= MAX_MULTIPLIABLE
    ):  # nor NaN
        advice = "divide them" if how.scale != "none" else "set preprocessing.scaling to standard"
        raise InvalidData(f"The numbers of the column {name!r} are too large to be multiplied: {advice}.")
    return fact


def _measured_input(column: RawColumn, column_spread: Spread, *, complete: bool | None) -> InputColumn:
    if column.kind is ColumnKind.BOOLEAN or not column_spread.rows:
        return InputColumn(**column._asdict(), complete=complete)
    return InputColumn(**column._asdict(), minimum=column_spread.low, maximum=column_spread.high, complete=complete)


def _fill(values: Vector, column_spread: Spread, how: Preprocessing) -> float:
    if how.imputation == "median" and column_spread.rows:
        return float(np.nanmedian(values))
    return column_spread.mean


def scaling(column_spread: Spread, how: Preprocessing, *, centred: bool) -> tuple[float, float]:
    """Offset and scale. A constant column becomes 0 by its offset alone.

    Without an offset the scale is measured from 0: the root mean square, or the largest absolute value.
    """
    if how.scale == "none":
        return 0.0, 1.0
    if not centred:
        reach = max(abs(column_spread.low), abs(column_spread.high))
        return 0.0, (
            math.hypot(column_spread.mean, column_spread.deviation) if how.scale == "standard" else reach
        ) or 1.0
    offset, scale = (
        (column_spread.mean, column_spread.deviation)
        if how.scale == "standard"
        else (column_spread.low, column_spread.high - column_spread.low)
    )
    return (offset, scale) if column_spread.deviation > 0 else (column_spread.mean, 1.0)


def _levels(values: Vector, words: pa.Array, limit: int) -> tuple[list[str], bool]:
    """The levels kept, ascending, and whether some were not."""
    counts = np.bincount(values[~np.isnan(values)].astype(np.intp), minlength=len(words))
    order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    used_codes = np.sort(order[:limit] if order.size <= limit else order[: limit - 1])
    return words.take(pa.array(used_codes)).to_pylist(), order.size > limit
