"""Counts of logged rows and their predictions by the bins of a version's reference."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.models.model import Model, Predicted
from app.ml.monitoring.column_bins import BinCounts, ReferenceColumn, count_values
from app.ml.monitoring.reference import Reference, prediction_counts


class TableCounts(NamedTuple):
    """Rows by bin, of each column of a reference and then of its predictions."""

    rows: int
    columns: tuple[BinCounts, ...]

    def written(self) -> list[list[float]]:
        """Return JSON: the bins of each column, and its missing values last."""
        return [[*column.counts.tolist(), column.missing] for column in self.columns]

    @classmethod
    def read(cls, rows: int, written: Sequence[Sequence[float]]) -> "TableCounts":
        """The counts that `written` has."""
        return cls(rows, tuple(BinCounts(np.array(column[:-1], np.float64), column[-1]) for column in written))

    def plus(self, other: "TableCounts") -> "TableCounts":
        """The sum; both are of one reference."""
        columns = (column + addend for column, addend in zip(self.columns, other.columns, strict=True))
        return TableCounts(self.rows + other.rows, tuple(columns))


class RowCounter:
    """Counts raw matrices of a model by the bins of its reference."""

    def __init__(self, reference: Reference, model: Model) -> None:
        self.reference, self._model = reference, model
        places = {column.name: place for place, column in enumerate(model.inputs)}
        self._columns = [
            (column, places[column.name], _coder(column, model.inputs[places[column.name]].levels or ()))
            for column in reference.columns
        ]

    def count(self, raw: Matrix, predicted: Predicted) -> TableCounts:
        """Counts of n rows. raw: (n, p) by the codes of the model."""
        inputs = (count_values(column, code(raw[:, place])) for column, place, code in self._columns)
        predictions = prediction_counts(self.reference.predictions, self._model.task, predicted)
        return TableCounts(len(raw), (*inputs, *predictions))


def _coder(column: ReferenceColumn, words: Sequence[str]) -> Callable[[Vector], Vector]:
    """From values of the raw matrix to those that `count_values` takes."""
    if column.kind == "numeric":
        return lambda values: values
    others = float(len(column.levels))
    places = {level: float(place) for place, level in enumerate(column.levels)}
    bins = np.array([*(places.get(word, others) for word in words), others, others])

    def code(values: Vector) -> Vector:
        """Codes beyond the words, and negative ones, are other levels."""
        inside = np.where((values >= 0) & (values < len(words)), values, len(words))
        result: Vector = np.where(np.isnan(values), np.nan, bins[inside.astype(np.intp)])
        return result

    return code
