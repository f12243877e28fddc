"""The response surface: predictions over a grid of one to three inputs, the others held fixed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, model_validator

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.suggestions import no_such
from app.base.wire import Body, Wire
from app.ml.contract.algorithm import JSON, Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.labels import Label
from app.ml.kinds.query import Query, Subject
from app.ml.models.model import Model, Predicted
from app.ml.models.model_response import Flag, ModelResponse, flags_of
from app.ml.models.raw_rows import grid, one_row, raw_matrix
from app.ml.tables.cells import flaw, read_cells
from app.ml.training.reporting.reporting import finite


class SweepAxis(Body):
    """One input that is varied: over the values given, else over a range of numbers."""

    column: str = Field(description="Input that varies.")
    values: list[Any] | None = Field(
        None, min_length=1, description="Values to use, as in a row to predict; null: evenly spaced ones."
    )
    start: float | None = Field(None, description="First value; null: the smallest training value.")
    stop: float | None = Field(None, description="Last value; null: the largest training value.")
    points: int = Field(25, ge=2, le=1000, description="Evenly spaced, both ends included.")

    @model_validator(mode="after")
    def _one_way(self) -> "SweepAxis":
        if self.values is not None and {"start", "stop", "points"} & self.model_fields_set:
            raise ValueError("Give values or a range, not both.")
        return self


class SweepRequest(Body):
    """A response surface: some inputs vary, the others are fixed."""

    vary: list[SweepAxis] = Field(min_length=1, max_length=3, description="Inputs that vary: one to three axes.")
    fixed: dict[str, Any] = Field({}, description="Every other input, as in a row to predict; by default none.")


class SweptAxis(Wire):
    """Axis of a grid."""

    column: str = Field(description="Input that varies.")
    values: list[Any] = Field(description="Values of the input.")


class Sweep(ModelResponse):
    """Predictions over a grid. Lists are nested, one level for each axis in order."""

    axes: list[SweptAxis] = Field(description="Axes of the grid.")
    predictions: list[Any] = Field(description="Predictions, nested one level for each axis.")
    classes: list[Label] | None = Field(
        None, description="Classes in the order of the probabilities; null for other tasks."
    )
    probabilities: list[Any] | None = Field(
        None, description="Probabilities, nested one level for each axis; null for other tasks."
    )
    flags: list[Flag] = Field([], description="Rows are counted through the grid, the last axis fastest.")


def sweep(subject: Subject, request: SweepRequest) -> Sweep:
    """Raises InvalidRequest for axes that cannot be, InvalidData for values the model cannot take."""
    model = subject.model
    axes = [_Axis.of(model, axis) for axis in _checked(subject, request.vary)]
    varied = {axis.column.name for axis in axes}
    held = [column for column in model.inputs if column.name not in varied]
    cells = one_row(request.fixed, held, "/fixed") if held else {}
    base = raw_matrix(model, cells, {axis.column.name: axis.cells[:1] for axis in axes}, 1)
    raw = grid(base, [(axis.place, _along(model, cells, axis, axes)) for axis in axes])
    predicted = model.predict_raw(raw)
    shape = tuple(len(axis.values) for axis in axes)
    return Sweep(
        **subject.fields,
        axes=[SweptAxis(column=axis.column.name, values=axis.values) for axis in axes],
        predictions=_nested(_as_numbers(predicted), shape),
        classes=None if model.classes is None else list(model.classes),
        probabilities=None if predicted.probabilities is None else _nested(predicted.probabilities, shape),
        flags=flags_of(predicted),
    )


def _checked(subject: Subject, vary: Sequence[SweepAxis]) -> Sequence[SweepAxis]:
    """Raises InvalidRequest with every fault of every axis."""
    columns_by_name = {column.name: column for column in subject.model.inputs}
    names = [axis.column for axis in vary]
    faults = []
    for i, axis in enumerate(vary):
        pointer = f"/vary/{i}"
        column = columns_by_name.get(axis.column)
        if column is None:
            faults.append(
                Fault(
                    f"{pointer}/column",
                    no_such("The model has no input", axis.column, columns_by_name),
                    "unknown_column",
                )
            )
        elif axis.column in names[:i]:
            faults.append(Fault(f"{pointer}/column", "This input is varied twice.", "duplicate"))
        else:
            faults += _axis_faults(axis, column, pointer)
    if not faults:
        size = int(np.prod([float(len(_values(axis, columns_by_name[axis.column]))) for axis in vary]))
        if size > subject.max_rows:
            faults.append(Fault("/vary", f"The grid has {size} points; one request may return {subject.max_rows}."))
    if faults:
        raise InvalidRequest(faults=faults)
    return vary


class _Axis(NamedTuple):
    place: int
    column: InputColumn
    values: list[JSON]
    cells: pa.Array

    @classmethod
    def of(cls, model: Model, axis: SweepAxis) -> "_Axis":
        place = next(i for i, column in enumerate(model.inputs) if column.name == axis.column)
        column = model.inputs[place]
        values = _values(axis, column)
        return cls(place, column, values, read_cells(column, values)[0])


def _values(axis: SweepAxis, column: InputColumn) -> list[JSON]:
    """The values that the input takes in turn."""
    if axis.values is not None:
        return axis.values
    if column.levels is not None:
        return list(column.levels)
    if column.kind == ColumnKind.BOOLEAN:
        return [False, True]
    start, stop = _range(axis, column)
    points: list[JSON] = np.linspace(start or 0.0, stop or 0.0, axis.points).tolist()
    return points


def _range(axis: SweepAxis, column: InputColumn) -> tuple[float | None, float | None]:
    start = column.minimum if axis.start is None else axis.start
    return start, column.maximum if axis.stop is None else axis.stop


def _axis_faults(axis: SweepAxis, column: InputColumn, pointer: str) -> Iterator[Fault]:
    if column.kind == ColumnKind.TEXT:
        yield Fault(f"{pointer}/column", "Texts do not vary along an axis: give this one in fixed.", "wrong_kind")
        return
    if axis.values is not None:
        for j, value in enumerate(axis.values):
            if value_flaw := flaw(column, value):
                yield Fault(f"{pointer}/values/{j}", value_flaw.detail, value_flaw.code)
        return
    if column.kind == ColumnKind.DATETIME:
        yield Fault(f"{pointer}/values", "Give the points in time.", "missing")
    elif column.kind != ColumnKind.NUMERIC:
        for end in {"start", "stop", "points"} & axis.model_fields_set:
            yield Fault(f"{pointer}/{end}", f"A {column.kind} input has no range of numbers: give values.")
    elif None in _range(axis, column):
        yield Fault(f"{pointer}/start", "Training has seen no range: give start and stop.", "missing")


def _along(model: Model, held: Mapping[str, pa.Array], axis: _Axis, axes: Sequence[_Axis]) -> Vector:
    """The raw values of one axis."""
    others = {other.column.name: other.cells[:1] for other in axes if other is not axis}
    raw = raw_matrix(model, {**held, **others}, {axis.column.name: axis.cells}, len(axis.values))
    return raw[:, axis.place]


def _as_numbers(predicted: Predicted) -> NDArray[Any]:
    if predicted.classes is None:
        return predicted.values
    labels = np.empty(len(predicted.values), dtype=object)
    labels[:] = predicted.predictions
    return labels


def _nested(values: NDArray[Any], shape: tuple[int, ...]) -> list[Any]:
    nested: list[Any] = finite(values.reshape(*shape, *values.shape[1:]))
    return nested


QUERY = Query(operation="sweep_model", request=SweepRequest, response=Sweep, run=sweep)
