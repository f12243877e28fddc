"""Distance of points to the rows of a table, and how far apart those rows are.

Numbers and moments differ by their standard deviations in the table, categories and truth values by 1. A missing value
is 1 from any other, and 0 from another missing one. The distance is the root of the sum of the squares.

Source: Wilson & Martinez (1997), J. Artif. Intell. Res. 6:1, section 2.3 (there with ranges for deviations).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.numerics.scaling import spread
from app.ml.tables.cells import read_cells

COMPARED = 100
"""Rows whose distance to the nearest other one is looked up."""


class NearestTrainingRow(Wire):
    """The training row that is nearest to a solution."""

    row: int = Field(description="Number of the row in the dataset, from 0.")
    distance: float = Field(
        description="Euclidean distance over all inputs: numbers in standard deviations of the dataset, 1 where a "
        "category differs or only one of both values is missing."
    )
    usual_distance: float | None = Field(
        None, description="Median distance of a training row to the nearest other one; null of a single row."
    )


class Coordinate(NamedTuple):
    """One input of all rows."""

    column: InputColumn
    values: Vector
    """(n,) in standard deviations, or the codes of categories; NaN where missing."""
    scale: float
    categories: pa.Array | None
    """In the order of their codes; None of numbers."""

    @classmethod
    def of(cls, column: InputColumn, cells: pa.ChunkedArray) -> Self:
        if ColumnKind(column.kind) in {ColumnKind.NUMERIC, ColumnKind.DATETIME}:
            values = _numbers(cells)
            scale = spread(values).deviation or 1.0
            return cls(column, values / scale, scale, None)
        categories = pc.unique(cells).drop_null()
        return cls(column, _codes(cells, categories), 1.0, categories)

    def given(self, values: Sequence[Any]) -> Vector:
        """(k,) values as in rows to predict; −1 of categories that no row has."""
        cells, _ = read_cells(self.column, values)
        if self.categories is None:
            return _numbers(cells) / self.scale
        codes = _codes(cells, self.categories)
        return np.where(np.isnan(codes) & pc.is_valid(cells).to_numpy(zero_copy_only=False), -1.0, codes)

    def squares(self, value: float) -> Vector:
        """(n,) squared differences from a value."""
        if np.isnan(value):
            missing: Vector = np.where(np.isnan(self.values), 0.0, 1.0)
            return missing
        distances = (self.values - value) ** 2 if self.categories is None else np.where(self.values == value, 0.0, 1.0)
        return np.where(np.isnan(self.values), 1.0, distances)


class TrainingDistance(NamedTuple):
    coordinates: tuple[Coordinate, ...]
    usual: float | None
    """Median distance of a row to the nearest other one; None of a single row."""

    @classmethod
    def of(cls, inputs: Sequence[InputColumn], table: pa.Table) -> Self:
        """table: at least one row, in the kinds of the inputs."""
        coordinates, n = tuple(Coordinate.of(column, table.column(column.name)) for column in inputs), len(table)
        if n == 1:
            return cls(coordinates, None)
        nearest_distances = []
        for row in np.linspace(0, n - 1, min(n, COMPARED)).astype(np.intp):
            squares = _squares(coordinates, [coordinate.values[row] for coordinate in coordinates])
            squares[row] = np.inf
            nearest_distances.append(float(np.sqrt(squares.min())))
        return cls(coordinates, float(np.median(nearest_distances)))

    def nearest(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[NearestTrainingRow]:
        """The nearest row of the table to each row to predict."""
        coordinates_values = [
            coordinate.given([row[coordinate.column.name] for row in rows]) for coordinate in self.coordinates
        ]
        for values in zip(*coordinates_values, strict=True):
            squares = _squares(self.coordinates, values)
            place = int(squares.argmin())
            yield NearestTrainingRow(row=place, distance=float(np.sqrt(squares[place])), usual_distance=self.usual)


def _squares(coordinates: Sequence[Coordinate], values: Sequence[float]) -> Vector:
    """(n,)."""
    squares = coordinates[0].squares(values[0])
    for coordinate, value in zip(coordinates[1:], values[1:], strict=True):
        squares += coordinate.squares(value)
    return squares


def _numbers(cells: pa.Array | pa.ChunkedArray) -> Vector:
    """(n,) NaN where missing; moments in microseconds."""
    if pa.types.is_timestamp(cells.type):
        cells = cells.cast(pa.int64())
    numbers: Vector = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _codes(cells: pa.Array | pa.ChunkedArray, categories: pa.Array) -> Vector:
    """(n,) NaN where missing or none of them."""
    codes: Vector = pc.index_in(cells, categories, skip_nulls=True).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return codes
