"""Queries to a model in memory: response surfaces, tangents, explanations."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from app.errors import BodyTooLarge, Fault, InvalidData, InvalidRequest, NoExplanation
from app.formats.prediction import Version
from app.ml.contract.algorithm import JSON, Matrix, Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.task import PredictionKind
from app.ml.models.model import Model, Predicted
from app.ml.queries.surfaces import Tangent, grid, tangent
from app.ml.statistics.intervals import Bounds
from app.ml.statistics.metric_value import shown
from app.ml.tables.cells import flaw, read_cells
from app.ml.tables.rows import Incoming, read_rows
from app.ml.training.reporting import finite, readable
from app.schemas.predictions import Flag
from app.schemas.queries import (
    Explanations,
    Intervals,
    Linearisation,
    LineariseRequest,
    Slope,
    Sweep,
    SweepAxis,
    SweepRequest,
    SweptAxis,
)
from app.suggestions import no_such

MOST_BYTES = 2**25
"""Bytes of the explanations of one request: each row may list every one of many trees."""


class WhatIf:
    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows

    def sweep(self, version: Version, model: Model, request: SweepRequest) -> Sweep:
        """Raises InvalidRequest for axes that cannot be, InvalidData for values the model cannot take."""
        axes = [_Axis.of(model, axis) for axis in self._checked(model, request.vary)]
        varied = {axis.column.name for axis in axes}
        held = [column for column in model.inputs if column.name not in varied]
        cells = _one_row(request.fixed, held, "/fixed") if held else {}
        base = _raw(model, cells, {axis.column.name: axis.cells[:1] for axis in axes}, 1)
        raw = grid(base, [(axis.place, _along(model, cells, axis, axes)) for axis in axes])
        predicted = model.predict_raw(raw)
        shape = tuple(len(axis.values) for axis in axes)
        return Sweep(
            **_heads(version, model),
            axes=[SweptAxis(column=axis.column.name, values=axis.values) for axis in axes],
            predictions=_nested(_as_numbers(predicted), shape),
            classes=None if model.classes is None else list(model.classes),
            probabilities=None if predicted.probabilities is None else _nested(predicted.probabilities, shape),
            flags=_flags(predicted),
        )

    def linearise(self, version: Version, model: Model, request: LineariseRequest) -> Linearisation:
        """Raises InvalidRequest for inputs with no slope, InvalidData for a row the model cannot take."""
        if model.task.labels:
            raise InvalidRequest("The labels of a clustering have no slope.")
        base = _raw(model, _one_row(request.row, model.inputs, "/row"), {}, 1)
        places = np.array(list(_movable(model, base[0], request.inputs)), np.intp)
        if not places.size:
            raise InvalidRequest("The row has no number or datetime that could move.")
        found = tangent(model, base, places, relative_step=request.relative_step, tolerance=request.tolerance)
        return Linearisation(
            **_heads(version, model),
            outputs=_named_outputs(model, found.value.size),
            values=finite(found.value),
            inputs=[
                Slope(
                    column=model.inputs[place].name,
                    at=float(base[0, place]),
                    step=float(found.steps[i]),
                    slopes=finite(found.slopes[i]),
                    trusted_from=float(found.trusted[i, 0]),
                    trusted_to=float(found.trusted[i, 1]),
                )
                for i, place in enumerate(places)
            ],
            warnings=list(_flat(model, places, found)),
        )

    def explain(self, version: Version, model: Model, body: Mapping[str, Any]) -> Explanations:
        """Raises NoExplanation where the algorithm has none, BodyTooLarge for more than fits into a response, else as a
        prediction does.
        """
        explain = model.algorithm.explain
        if explain is None:
            raise NoExplanation(f"{model.name} does not explain single predictions.")
        incoming: Incoming = read_rows(body, model.inputs, max_rows=self._max_rows)
        raw = model.preparation.raw(incoming.table)
        predicted = model.predict_raw(raw)
        matrix = model.preparation.matrix(raw)

        def explained(rows: Matrix) -> list[JSON]:
            each = explain(model.params, model.state, rows)
            return [readable(one, model.preparation, model.classes or ()) for one in each]

        found = explained(matrix[:1])
        size = len(orjson.dumps(found))
        if size * len(matrix) > MOST_BYTES:
            raise BodyTooLarge(f"A row's explanation takes {size} bytes; one request may return {MOST_BYTES // size}.")
        if len(matrix) > 1:
            found += explained(matrix[1:])
        offsets, scales = model.preparation.scaling.units
        return Explanations(
            **_heads(version, model),
            predictions=finite(predicted.predictions),
            classes=None if model.classes is None else list(model.classes),
            target_function=None if model.linearising == "none" else model.linearising,
            explanations=found,
            columns=list(model.preparation.layout.names),
            offsets=offsets.tolist(),
            scales=scales.tolist(),
            flags=_flags(predicted),
        )

    def intervals(self, version: Version, model: Model, body: Mapping[str, Any], confidence: float) -> Intervals:
        """Raises NoInterval where the model has none, else as a prediction does."""
        _ = model.interval
        table = read_rows(body, model.inputs, max_rows=self._max_rows).table
        predicted = model.predict(table, confidence)
        bounds = np.asarray(predicted.intervals)
        rows = zip(predicted.values.tolist(), *bounds.T.tolist(), strict=True)
        return Intervals(
            **_heads(version, model),
            predictions=finite(predicted.values),
            lower=finite(bounds[:, 0]),
            upper=finite(bounds[:, 1]),
            confidence=confidence,
            interval=model.interval_name,
            display=[shown(value, Bounds(lower, upper)) for value, lower, upper in rows],
            flags=_flags(predicted),
        )

    def _checked(self, model: Model, vary: Sequence[SweepAxis]) -> Sequence[SweepAxis]:
        """Raises InvalidRequest with every fault of every axis."""
        known = {column.name: column for column in model.inputs}
        names = [axis.column for axis in vary]
        faults = []
        for i, axis in enumerate(vary):
            at = f"/vary/{i}"
            column = known.get(axis.column)
            if column is None:
                faults.append(
                    Fault(f"{at}/column", no_such("The model has no input", axis.column, known), "unknown_column")
                )
            elif axis.column in names[:i]:
                faults.append(Fault(f"{at}/column", "This input is varied twice.", "duplicate"))
            else:
                faults += _axis_faults(axis, column, at)
        if not faults:
            size = int(np.prod([float(len(_values(axis, known[axis.column]))) for axis in vary]))
            if size > self._max_rows:
                faults.append(Fault("/vary", f"The grid has {size} points; one request may return {self._max_rows}."))
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


def _axis_faults(axis: SweepAxis, column: InputColumn, at: str) -> Iterator[Fault]:
    if axis.values is not None:
        for j, value in enumerate(axis.values):
            if found := flaw(column, value):
                yield Fault(f"{at}/values/{j}", found.detail, found.code)
        return
    if column.kind == ColumnKind.DATETIME:
        yield Fault(f"{at}/values", "Give the points in time.", "missing")
    elif column.kind != ColumnKind.NUMERIC:
        for end in {"start", "stop", "points"} & axis.model_fields_set:
            yield Fault(f"{at}/{end}", f"A {column.kind} input has no range of numbers: give values.")
    elif None in _range(axis, column):
        yield Fault(f"{at}/start", "Training has seen no range: give start and stop.", "missing")


def _one_row(row: Mapping[str, Any], inputs: Sequence[InputColumn], root: str) -> dict[str, pa.Array]:
    """The cells of the one row. Faults point into the request."""
    try:
        table: pa.Table = read_rows({"rows": [dict(row)]}, inputs, max_rows=1).table
    except InvalidData as error:
        raise InvalidData(error.detail, faults=[_moved(fault, root) for fault in error.faults]) from None
    return {column.name: table.column(column.name) for column in inputs}


def _moved(fault: Fault, root: str) -> Fault:
    return fault._replace(pointer=root + fault.pointer.removeprefix("/rows").removeprefix("/0"))


def _raw(model: Model, held: Mapping[str, pa.Array], varied: Mapping[str, pa.Array], rows: int) -> Matrix:
    """The raw matrix of `rows` rows: cells that are held stay the same."""
    first = pa.array(np.zeros(rows, np.intp))
    columns = [varied[c.name] if c.name in varied else held[c.name].take(first) for c in model.inputs]
    return model.preparation.raw(pa.table(columns, names=[column.name for column in model.inputs]))


def _along(model: Model, held: Mapping[str, pa.Array], axis: _Axis, axes: Sequence[_Axis]) -> Vector:
    """The raw values of one axis."""
    others = {other.column.name: other.cells[:1] for other in axes if other is not axis}
    raw = _raw(model, {**held, **others}, {axis.column.name: axis.cells}, len(axis.values))
    return raw[:, axis.place]


def _movable(model: Model, row: Vector, names: Sequence[str] | None) -> Iterator[int]:
    """Places of inputs that a slope can be taken of. Raises InvalidRequest with every fault of the names."""
    kinds = {ColumnKind.NUMERIC, ColumnKind.DATETIME}
    places = {column.name: place for place, column in enumerate(model.inputs)}
    movable = {
        name: place
        for name, place in places.items()
        if ColumnKind(model.inputs[place].kind) in kinds and np.isfinite(row[place])
    }
    faults = []
    for i, name in enumerate(names or ()):
        if name not in places:
            faults.append(Fault(f"/inputs/{i}", no_such("The model has no input", name, places), "unknown_column"))
        elif name not in movable:
            faults.append(Fault(f"/inputs/{i}", "Only a number or datetime that the row has can move."))
    if faults:
        raise InvalidRequest(faults=faults)
    yield from movable.values() if names is None else (movable[name] for name in dict.fromkeys(names))


def _named_outputs(model: Model, count: int) -> list[bool | int | float | str]:
    if model.classes is not None:
        return list(model.classes)
    match model.task.record.prediction:
        case PredictionKind.NUMBER:
            return [model.target or "prediction"]
        case PredictionKind.LOG_DENSITY:
            return ["log_density"]
    return [f"coordinate_{i}" for i in range(count)]


def _flat(model: Model, places: NDArray[np.intp], found: Tangent) -> Iterator[str]:
    for i, place in enumerate(places.tolist()):
        if not found.slopes[i].any() and found.varies[i].any():
            yield (
                f"Moving {model.inputs[place].name!r} changes nothing nearby, but does further off: the model goes in "
                "steps. A larger relative_step, or a sweep, shows more."
            )


def _heads(version: Version, model: Model) -> dict[str, Any]:
    return {
        "model": version.model,
        "version": version.version,
        "digest": version.digest,
        "task": model.task.value,
    }


def _as_numbers(predicted: Predicted) -> NDArray[Any]:
    if predicted.classes is None:
        return predicted.values
    labels = np.empty(len(predicted.values), dtype=object)
    labels[:] = predicted.predictions
    return labels


def _nested(values: NDArray[Any], shape: tuple[int, ...]) -> list[Any]:
    nested: list[Any] = finite(values.reshape(*shape, *values.shape[1:]))
    return nested


def _flags(predicted: Predicted) -> list[Flag]:
    return [Flag(code=flag.code, column=flag.column, rows=flag.rows.tolist()) for flag in predicted.flags]
