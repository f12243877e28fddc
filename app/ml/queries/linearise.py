"""The tangent of the model at a row, by central differences, and from where to where it can be trusted.

The outputs of a model are the numbers it predicts: the prediction of a regression or density, the probabilities of a
classification, the coordinates of a projection.

Reference: Battiti & Brunato, The LION Way, section 4.5 (equation 4.4).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.suggestions import no_such
from app.base.wire import Body, Wire
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.contract.labels import Label
from app.ml.contract.task import PredictionKind
from app.ml.kinds.query import Query, Subject
from app.ml.models.model import Model
from app.ml.models.model_response import ModelResponse
from app.ml.models.raw_rows import grid, one_row, outputs, raw_matrix
from app.ml.training.reporting.reporting import finite

PROBES = 101
"""Points across an input's training range at which the tangent is compared with the model."""


class LineariseRequest(Body):
    """A point of operation, and how to look around it."""

    row: dict[str, Any] = Field(description="Every input, as in a row to predict.")
    inputs: list[str] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Inputs to move; null: every number and datetime that the row has.",
    )
    relative_step: float = Field(
        1e-5,
        ge=1e-10,
        le=0.5,
        description="Step of the differences, in parts of the input's size or training range, whichever is larger.",
    )
    tolerance: float = Field(
        0.1,
        gt=0,
        le=1,
        description="Largest difference between tangent and model, as a share of the output's variation.",
    )


class Slope(Wire):
    """Effect of moving one input."""

    column: str = Field(description="Name of the input.")
    at: float = Field(description="Datetimes in seconds since 1970, UTC.")
    step: float = Field(description="Size of the step, in units of the input; null: it is no number.")
    slopes: list[float | None] = Field(description="Per unit of the input, one for each output.")
    trusted_from: float = Field(description="Down to here the tangent misses by no more than the tolerance.")
    trusted_to: float = Field(description="Up to here.")


class Linearisation(ModelResponse):
    """The linear approximation of the model at a point: outputs ≈ values + slopes · (input - at)."""

    outputs: list[Label] = Field(description="Names of the values: the target, the classes or the coordinates.")
    values: list[float | None] = Field(description="Values of the outputs at the point.")
    inputs: list[Slope] = Field(description="Slopes along each input.")
    warnings: list[str] = Field(
        [], description="Sentences on what a careful reader should know; empty where there is none."
    )


class Tangent(NamedTuple):
    """The linear approximation f(x) ≈ f(c) + slopes · (x - c), for q outputs and m inputs."""

    value: Vector
    """(q,) the outputs at the point."""
    slopes: Matrix
    """(m, q) central differences, per unit of the input."""
    steps: Vector
    """(m,) half the distance between the two points of each difference."""
    trusted: Matrix
    """(m, 2) from where to where, along one input with the others held, the tangent is close enough."""
    varies: Matrix
    """(m, q) the difference between the outputs' largest and smallest values across the training range."""


def linearise(subject: Subject, request: LineariseRequest) -> Linearisation:
    """Raises InvalidRequest for inputs with no slope, InvalidData for a row the model cannot take."""
    model = subject.model
    if model.task.labels:
        raise InvalidRequest("The labels of a clustering have no slope.")
    base = raw_matrix(model, one_row(request.row, model.inputs, "/row"), {}, 1)
    places = np.array(list(_movable(model, base[0, :], request.inputs)), np.intp)
    if not places.size:
        raise InvalidRequest("The row has no number or datetime that could move.")
    linear_form = tangent(model, base, places, relative_step=request.relative_step, tolerance=request.tolerance)
    return Linearisation(
        **subject.fields,
        outputs=_named_outputs(model, linear_form.value.size),
        values=finite(linear_form.value),
        inputs=[
            Slope(
                column=model.inputs[place].name,
                at=float(base[0, place]),
                step=float(linear_form.steps[i]),
                slopes=finite(linear_form.slopes[i]),
                trusted_from=float(linear_form.trusted[i, 0]),
                trusted_to=float(linear_form.trusted[i, 1]),
            )
            for i, place in enumerate(places)
        ],
        warnings=list(_flat(model, places, linear_form)),
    )


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


def _flat(model: Model, places: NDArray[np.intp], linear_form: Tangent) -> Iterator[str]:
    for i, place in enumerate(places.tolist()):
        if not linear_form.slopes[i].any() and linear_form.varies[i].any():
            yield (
                f"Moving {model.inputs[place].name!r} changes nothing nearby, but does further off: the model goes in "
                "steps. A larger relative_step, or a sweep, shows more."
            )


def tangent(model: Model, base: Matrix, places: Labels, *, relative_step: float, tolerance: float) -> Tangent:
    """The model's prediction as one input moves, and how far that can be relied on.

    base: (1, p), the raw row. places: (m,) of measured inputs that the row has.
    relative_step: of the larger of the input's size and its training range.
    tolerance: of an output's variation across that range, by which the tangent may miss it.
    """
    base_values = base[0, places]
    low, high = _ranges(model, places, base_values)
    scale = np.maximum(np.abs(base_values), high - low)
    step = relative_step * np.where(scale > 0, scale, 1.0)
    ends = outputs(model, _moved(base, np.append(places, places), np.append(base_values + step, base_values - step)))
    above, below = np.split(ends, 2)
    widths = (base_values + step) - (base_values - step)  # as floats have it
    slopes = (above - below) / widths[:, None]
    value = outputs(model, base)[0]
    trusted, varies = np.empty((places.size, 2)), np.empty(slopes.shape)
    for i, place in enumerate(places.tolist()):
        points = np.unique(np.append(np.linspace(low[i], high[i], PROBES), base_values[i]))
        predictions = outputs(model, grid(base, [(place, points)]))
        varies[i] = np.ptp(predictions, axis=0)
        # Beside the tolerance: even a line misses itself by rounding.
        allowed = tolerance * varies[i] + 1e-9 * (np.abs(value) + varies[i])
        miss = np.abs(predictions - value - (points - base_values[i])[:, None] * slopes[i])
        trusted[i] = points[_around((miss <= allowed).all(axis=1), int(np.searchsorted(points, base_values[i])))]
    return Tangent(value, slopes, step, trusted, varies)


def _ranges(model: Model, places: Labels, values: Vector) -> tuple[Vector, Vector]:
    """Range of each input in training, widened to hold the point."""
    columns = [model.inputs[place] for place in places]
    low = [c.minimum if c.minimum is not None else x for c, x in zip(columns, values, strict=True)]
    high = [c.maximum if c.maximum is not None else x for c, x in zip(columns, values, strict=True)]
    return np.minimum(low, values), np.maximum(high, values)


def _moved(base: Matrix, places: Labels, to: Vector) -> Matrix:
    """A row for each place: the base with this one input moved."""
    raw = base[np.zeros(places.size, np.intp)]
    raw[np.arange(places.size), places] = to
    return raw


def _around(holds: NDArray[np.bool_], centre: int) -> list[int]:
    """The first and the last place of the run of truths around the centre, which counts as one."""
    broken = np.flatnonzero(~holds)
    before, after = broken[broken < centre], broken[broken > centre]
    return [int(before.max(initial=-1)) + 1, int(after.min(initial=holds.size)) - 1]


QUERY = Query(operation="linearise_model", request=LineariseRequest, response=Linearisation, run=linearise)
