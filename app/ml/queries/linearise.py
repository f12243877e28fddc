"""The tangent of the model at a row, by central differences, and from where to where it can be trusted."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.errors import Fault, InvalidRequest
from app.ml.contract.algorithm import Vector
from app.ml.contract.columns import ColumnKind
from app.ml.contract.labels import Label
from app.ml.contract.task import PredictionKind
from app.ml.models.model import Model
from app.ml.models.model_response import ModelResponse
from app.ml.models.raw_rows import one_row, raw_matrix
from app.ml.models.surfaces import Tangent, tangent
from app.ml.query import Query, Subject
from app.ml.training.reporting import finite
from app.suggestions import no_such
from app.wire import Body, Wire


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


def linearise(subject: Subject, request: LineariseRequest) -> Linearisation:
    """Raises InvalidRequest for inputs with no slope, InvalidData for a row the model cannot take."""
    model = subject.model
    if model.task.labels:
        raise InvalidRequest("The labels of a clustering have no slope.")
    base = raw_matrix(model, one_row(request.row, model.inputs, "/row"), {}, 1)
    places = np.array(list(_movable(model, base[0], request.inputs)), np.intp)
    if not places.size:
        raise InvalidRequest("The row has no number or datetime that could move.")
    found = tangent(model, base, places, relative_step=request.relative_step, tolerance=request.tolerance)
    return Linearisation(
        **subject.fields,
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


QUERY = Query(operation="linearise_model", request=LineariseRequest, response=Linearisation, run=linearise)
