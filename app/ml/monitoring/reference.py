"""The reference of a model version: bins of its inputs in the training rows, and of its predictions on others.

It is stored beside the version, as JSON, since no prediction needs it.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pydantic import Field, ValidationError

from app.base.errors import CorruptModel
from app.base.wire import Wire
from app.ml.contract.algorithm import Labels, Task, Vector
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.task import PredictionKind
from app.ml.models.model import Model, Predicted
from app.ml.monitoring.column_bins import (
    COMPARED_KINDS,
    BinCounts,
    ReferenceColumn,
    count_values,
    level_column,
    number_column,
    reference_column,
)
from app.ml.preparation.arrow_columns import Raw

PredictionColumn: TypeAlias = tuple[str, Vector, list[str] | None]
PREDICTION, PROBABILITY = "prediction", "probability"


class Reference(Wire):
    """Distributions of the inputs and of the predictions of a model version, or of the columns of a dataset."""

    rows: int = Field(description="Number of reference rows.")
    columns: list[ReferenceColumn] = Field(description="Bins and counts of each column.")
    predictions: list[ReferenceColumn] = Field(
        [],
        description="Bins and counts of the predictions on rows held out in training, else on training rows; of "
        "classes also of the largest probability.",
    )


def encode(reference: Reference | None) -> bytes:
    """The reference as bytes; empty for none."""
    return b"" if reference is None else reference.model_dump_json().encode()


def decode(content: bytes) -> Reference | None:
    """None where there is none. Raises CorruptModel for what `encode` did not write."""
    if not content:
        return None
    try:
        return Reference.model_validate_json(content)
    except ValidationError:
        raise CorruptModel("The stored reference does not fit this version's format.") from None


def table_reference(table: pa.Table, columns: Sequence[TableColumn]) -> Reference:
    """Bins of these columns of a table, of those that are compared. Raises InvalidData for infinities."""
    compared = [column for column in columns if ColumnKind(column.kind) in COMPARED_KINDS]
    compared_columns = [
        reference_column(each.name, ColumnKind(each.kind), table.column(each.name)) for each in compared
    ]
    return Reference(rows=table.num_rows, columns=compared_columns)


def raw_reference(raw: Raw, rows: Labels) -> list[ReferenceColumn]:
    """Bins of the inputs of rows read for training."""
    result = []
    for place, (column, words) in enumerate(zip(raw.columns, raw.vocabularies, strict=True)):
        values = np.ascontiguousarray(raw.values[rows, place])
        if column.kind not in COMPARED_KINDS:
            continue
        if column.kind.measured:
            result.append(number_column(column.name, values))
        elif words is not None:
            result.append(level_column(column.name, values, words.to_pylist()))
    return result


def prediction_reference(model: Model, predicted: Predicted) -> list[ReferenceColumn]:
    """Bins of predictions; none for tasks whose predictions are coordinates."""
    return [
        number_column(name, values) if words is None else level_column(name, values, words)
        for name, values, words in prediction_columns(model.task, predicted)
    ]


def prediction_columns(task: Task, predicted: Predicted) -> list[PredictionColumn]:
    """Name, (n,) values and words of each column of predictions; words are None of numbers."""
    match task.record.prediction:
        case PredictionKind.PROBABILITIES:
            names = [str(label) for label in predicted.classes or ()]
            result: list[PredictionColumn] = [(PREDICTION, predicted.values.astype(np.float64), names)]
            if predicted.probabilities is not None and names:
                largest = predicted.probabilities[:, 1] if len(names) == 2 else predicted.probabilities.max(axis=1)
                result.append((PROBABILITY, largest, None))
            return result
        case PredictionKind.LABEL:
            codes = predicted.values.astype(np.int64)
            words = [str(label) for label in range(int(codes.max(initial=-1)) + 1)]
            return [(PREDICTION, codes.astype(np.float64), words)]
        case PredictionKind.NUMBER | PredictionKind.LOG_DENSITY:
            values = np.where(np.isfinite(predicted.values), predicted.values, np.nan)
            return [(PREDICTION, values, None)]
    return []


def prediction_counts(reference: Sequence[ReferenceColumn], task: Task, predicted: Predicted) -> list[BinCounts]:
    """Predictions by the bins of the reference, in its order."""
    predicted_columns = {name: (values, words) for name, values, words in prediction_columns(task, predicted)}
    result = []
    for column in reference:
        values, words = predicted_columns[column.name]
        if words is not None:
            places = {level: place for place, level in enumerate(column.levels)}
            codes = np.array(
                [*(places.get(word, len(column.levels)) for word in words), len(column.levels)], np.float64
            )
            values = codes[values.astype(np.intp)]
        result.append(count_values(column, values))
    return result
