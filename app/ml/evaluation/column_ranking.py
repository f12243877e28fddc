"""Columns ranked by a measure: values with intervals, corrected p-values, ties, and the columns left out."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Labels, Vector
from app.ml.evaluation.column_measures import (
    MEASURES_OF_COLUMNS,
    NATS,
    Measure,
    MeasuredColumn,
    MeasureName,
    MeasureOptions,
    Values,
    measured,
)
from app.ml.numerics.dependence.dependence import Dependence
from app.ml.numerics.dependence.greedy_relevance import mifs
from app.ml.statistics.intervals import Bounds
from app.ml.statistics.metric_value import Metric, metric
from app.ml.statistics.multiple_testing import benjamini_hochberg, holm

TIE = 1e-9
"""Relative difference below which two values are equal."""


class RankedColumn(Wire):
    """A column with its rank."""

    column: str = Field(description="Name of the column.")
    kind: str = Field(description="Kind of the column: numeric, boolean, datetime or categorical.")
    rank: int = Field(description="Rank from 1. Columns with equal values share the smallest.")
    tied_with: list[str] = Field([], description="Other columns with the same rank.")
    value: Metric = Field(description="Value of the measure with its interval; `n` is the number of rows used.")
    missing: int = Field(description="Rows that were left out, because they lack a value.")
    p_value: float | None = Field(
        None,
        description="Probability of a value at least as extreme if target and column are independent; null: the "
        "measure has no test. 0 is below the smallest number.",
    )
    p_holm: float | None = Field(
        None,
        description="p-value corrected by Holm: the probability of any false discovery among the columns at or below "
        "it. Null: there is no test.",
    )
    p_benjamini_hochberg: float | None = Field(
        None,
        description="p-value corrected by Benjamini and Hochberg: the expected share of false discoveries among the "
        "columns at or below it. Null: there is no test.",
    )


class LeftOutColumn(Wire):
    """A column that a measure does not rank."""

    column: str = Field(description="Name of the column.")
    reason: str = Field(description="Reason why the measure does not apply.")


class ColumnRanking(Wire):
    """Columns in the order of one measure."""

    measure: str = Field(description="Name of the measure.")
    definition: str = Field(description="Definition of the measure, its unit, and the test behind the p-values.")
    tests: int = Field(description="Number of tests that the p-values are corrected for.")
    columns: list[RankedColumn] = Field(description="Columns by rank.")
    left_out: list[LeftOutColumn] = Field([], description="Columns to which the measure does not apply.")
    notes: list[str] = Field([], description="Limits of these values; empty where there are none.")


class NamedColumn(NamedTuple):
    name: str
    kind: str
    values: Values


class _Entry(NamedTuple):
    column: NamedColumn
    found: MeasuredColumn


def ranking(
    name: MeasureName,
    columns: Sequence[NamedColumn],
    target: Values,
    options: MeasureOptions,
    progress: Callable[[float], None],
) -> ColumnRanking:
    """Rank columns by one measure. target: (n,) full values.

    Each column is measured on the rows in which it has a value.
    """
    measure, entries, left_out = MEASURES_OF_COLUMNS[name], list[_Entry](), list[LeftOutColumn]()
    for place, column in enumerate(columns):
        reason = measure.refusal(column.values, target)
        if reason is None:
            entry = _Entry(column, measured(measure, column.values, target, options))
            reason = _undefined(entry)
            entries += [] if reason else [entry]
        if reason is not None:
            left_out.append(LeftOutColumn(column=column.name, reason=reason))
        progress((place + 1) / len(columns) / (2 if name == "mifs" else 1))
    if name == "mifs":
        entries = _taken(entries, options, lambda share: progress((1 + share) / 2))
    else:
        entries = _ordered(entries, measure)
    return ColumnRanking(
        measure=name,
        definition=measure.definition,
        tests=sum(not math.isnan(entry.found.dependence.p_value) for entry in entries),
        columns=_ranked(name, entries, measure),
        left_out=left_out,
        notes=_notes(name, entries),
    )


def _undefined(entry: _Entry) -> str | None:
    """Reason why a column has no value."""
    if not math.isnan(entry.found.dependence.value):
        return None
    values = entry.column.values.values[entry.column.values.there]
    if values.size < 2 or np.ptp(values) == 0:
        return f"It has a single value in the {entry.found.rows} rows used."
    return f"Its {entry.found.rows} rows with a value are too few, or do not vary within the classes."


def _ordered(entries: Sequence[_Entry], measure: Measure) -> list[_Entry]:
    """From the largest; equal values in the order of the columns."""
    size = np.array([measure.ordered(entry.found.dependence.value) for entry in entries])
    return [entries[place] for place in np.argsort(-size, kind="stable")]


def _taken(entries: Sequence[_Entry], options: MeasureOptions, progress: Callable[[float], None]) -> list[_Entry]:
    """In the order of MIFS, with its scores instead of the information alone."""
    if not entries:
        return []
    codes = [_codes(entry.column.values, options.max_bins) for entry in entries]
    relevance = np.array([entry.found.dependence.value for entry in entries]) * NATS
    taken = mifs(codes, relevance, options.beta, progress, bias_correction=options.bias_correction)
    return [
        entries[place]._replace(found=entries[place].found._replace(dependence=Dependence(score / NATS)))
        for place, score in zip(taken.order, taken.scores, strict=True)
    ]


def _codes(column: Values, bins: int | None) -> Labels:
    """(n,) codes, -1 where there is no value."""
    codes = np.full(column.values.size, -1, np.intp)
    codes[column.there] = column.take(column.there).codes(bins)
    return codes


def _ranked(name: MeasureName, entries: Sequence[_Entry], measure: Measure) -> list[RankedColumn]:
    size = np.array([measure.ordered(entry.found.dependence.value) for entry in entries])
    p = np.array([entry.found.dependence.p_value for entry in entries])
    step = np.ones(len(entries), np.bool_)
    if name != "mifs":  # the order of its steps is no order of values
        step[1:] = -np.diff(size) > TIE * np.abs(size[:-1])
    first = np.maximum.accumulate(np.where(step, np.arange(step.size), 0))
    corrected = {"p_value": p, "p_holm": holm(p), "p_benjamini_hochberg": benjamini_hochberg(p)}
    return [
        RankedColumn(
            column=entry.column.name,
            kind=entry.column.kind,
            rank=int(first[place]) + 1,
            tied_with=[entries[i].column.name for i in np.flatnonzero(first == first[place]).tolist() if i != place],
            value=_value(name, entry.found),
            missing=entry.found.missing,
            **_defined(corrected, place),
        )
        for place, entry in enumerate(entries)
    ]


def _value(name: MeasureName, measured_column: MeasuredColumn) -> Metric:
    dependence = measured_column.dependence
    return metric(
        name,
        dependence.value,
        Bounds(dependence.lower, dependence.upper),
        "normal (approximate)",
        n=measured_column.rows,
        label=None,
    )


def _defined(values: Mapping[str, Vector], place: int) -> dict[str, float | None]:
    return {name: None if math.isnan(each[place]) else float(each[place]) for name, each in values.items()}


def _notes(name: MeasureName, entries: Sequence[_Entry]) -> list[str]:
    notes = []
    sparse = [entry.column.name for entry in entries if entry.found.sparse]
    if sparse:
        shown = ", ".join(map(repr, sparse[:10])) + (f" and {len(sparse) - 10} more" if len(sparse) > 10 else "")
        what = "their p-values are rough" if name == "chi_square" else "their information may be overestimated"
        notes.append(f"Few rows for the number of categories or bins of {shown}: {what}.")
    gaps = sum(entry.found.missing > 0 for entry in entries)
    if gaps:
        notes.append(f"{gaps} columns lack values: each is measured on the rows that have one.")
    return notes
