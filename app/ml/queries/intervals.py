"""Predictions of a regression with error bars, readable too; `predict` describes what they bound."""

import numpy as np
from pydantic import Field

from app.base.errors import NoInterval
from app.ml.kinds.query import Options, Query, Subject
from app.ml.models.model_response import Flag, ModelResponse, flags_of
from app.ml.statistics.intervals import Bounds
from app.ml.statistics.metric_value import shown
from app.ml.tables.row_forms import PredictRequest
from app.ml.tables.rows import read_rows
from app.ml.training.reporting.reporting import finite


class IntervalOptions(Options):
    """Level of the intervals."""

    confidence: float = Field(0.95, ge=0.5, lt=1, description="Confidence level of each interval, from 0.5 to below 1.")


class Intervals(ModelResponse):
    """Predictions with intervals. Null bounds: nothing limits that side."""

    predictions: list[float | None] = Field(
        description="One prediction for each row, in the order of the request; null for a row that could not "
        "be predicted."
    )
    lower: list[float | None] = Field(description="Lower end of each interval; null where nothing limits it.")
    upper: list[float | None] = Field(description="Upper end of each interval; null where nothing limits it.")
    confidence: float = Field(description="Confidence level of the intervals, from 0 to 1.")
    interval: str = Field(
        description="Method of the bounds, as in a prediction: algorithm, split-conformal, cv-plus or cross-validation."
    )
    display: list[str] = Field(description="Each prediction, rounded to its error bar.")
    flags: list[Flag] = Field([], description="Rows whose prediction deserves doubt, by reason.")


def intervals(subject: Subject, request: PredictRequest, *, confidence: float) -> Intervals:
    """Raises as a prediction does."""
    model = subject.model
    table = read_rows(request.model_dump(), model.inputs, max_rows=subject.max_rows).table
    predicted = model.predict(table, confidence)
    bounds = np.asarray(predicted.intervals)
    rows = zip(predicted.values.tolist(), *bounds.T.tolist(), strict=True)
    return Intervals(
        **subject.fields,
        predictions=finite(predicted.values),
        lower=finite(bounds[:, 0]),
        upper=finite(bounds[:, 1]),
        confidence=confidence,
        interval=model.interval_name,
        display=[shown(value, Bounds(lower, upper)) for value, lower, upper in rows],
        flags=flags_of(predicted),
    )


QUERY = Query(
    operation="estimate_intervals",
    request=PredictRequest,
    response=Intervals,
    run=intervals,
    options=IntervalOptions,
    offered=lambda model: model.algorithm.interval is not None and model.task.of_numbers,
    refusal=NoInterval,
)
