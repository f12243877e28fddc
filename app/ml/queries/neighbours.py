"""The training rows nearest to each row: their numbers in the dataset, distances, targets and shares in the prediction.

Training rows that have names may be given by them. A map (`mds`, `smacof`) has the rows that are nearest in it, by
their distances there, and neither targets nor shares. At most 100,000 neighbours of all rows together.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import BodyTooLarge, InvalidRequest
from app.base.faults import Fault
from app.base.suggestions import no_such
from app.base.wire import Body, Wire
from app.ml.contract.labels import Label
from app.ml.kinds.query import Query, Subject, declared
from app.ml.models.model import Model
from app.ml.models.model_response import Flag, ModelResponse, flags_of
from app.ml.preparation.target_transform import in_units
from app.ml.tables.rows import read_rows
from app.ml.training.reporting.reporting import finite

if TYPE_CHECKING:
    from app.ml.numerics.neighbours.neighbour_lists import Neighbours

MOST_NEIGHBOURS = 100_000
"""Neighbours in one response."""


class NeighboursRequest(Body):
    """Rows, or names of training rows, and how many neighbours of each."""

    rows: list[dict[str, Any]] | None = Field(
        None, min_length=1, description="Rows, each an object of values by column name; null: training rows, by items."
    )
    items: list[str] | None = Field(
        None,
        min_length=1,
        max_length=MOST_NEIGHBOURS,
        description="Names of training rows, for a model trained with `item`; such a row is a neighbour of itself, at "
        "distance 0. Null: rows are given.",
    )
    n_neighbors: int | None = Field(
        None, ge=1, le=10_000, description="Neighbours of each row; null: as many as the model uses."
    )


class Neighbour(Wire):
    """A training row, or a prototype, near a row of the request."""

    row: int | None = Field(None, description="Number of the training row in its dataset, from 0; null: a prototype.")
    item: str | None = Field(
        None, description="Name of the training row, by the column `item` of the training; null: it named none."
    )
    prototype: int | None = Field(None, description="Number of the prototype, from 0; null: a training row.")
    distance: float = Field(
        description="Distance by the metric of the model, in its prepared columns; of a map, the distance in it."
    )
    target: Label | None = Field(
        None,
        description="Target of the training row, a class or a number in its own unit; null: beyond the largest number, "
        "or the model has no target.",
    )
    share: float | None = Field(
        None, description="Share in the prediction of these neighbours, from 0 to 1; null: it is not made of them."
    )


class NeighboursResponse(ModelResponse):
    """The nearest training rows of each row."""

    neighbours: list[list[Neighbour]] = Field(
        description="Neighbours of each row, in the order of the request, nearest first."
    )
    flags: list[Flag] = Field([], description="Rows whose prediction deserves doubt, by reason.")


def neighbours(subject: Subject, request: NeighboursRequest) -> NeighboursResponse:
    """Raises BodyTooLarge for more than fit into a response, InvalidRequest for unknown items, else as a prediction
    does.
    """
    model = subject.model
    if request.items is not None or request.rows is None:
        return _response(subject, _of_items(model, request), [])
    raw = model.preparation.raw(read_rows({"rows": request.rows}, model.inputs, max_rows=subject.max_rows).table)
    nearest = partial(model.algorithm.queries["neighbours"], model.params, model.state, count=request.n_neighbors)
    nearest_rows = _limited(nearest, model.preparation.matrix(raw))
    return _response(subject, nearest_rows, flags_of(model.predict_raw(raw)))


def _of_items(model: Model, request: NeighboursRequest) -> "Neighbours":
    """Neighbours of training rows that are given by name."""
    if request.items is None or request.rows is not None:
        raise InvalidRequest(faults=[Fault("/items", "Give either rows or items.")])
    queries = model.algorithm.queries
    names = queries["items"](model.params, model.state)
    if names is None:
        raise InvalidRequest(faults=[Fault("/items", "The training rows have no names: give rows.")])
    places = {name: i for i, name in enumerate(names.tolist())}
    faults = [
        Fault(f"/items/{i}", no_such("The model has no training row named", item, sorted(places)))
        for i, item in enumerate(request.items)
        if item not in places
    ]
    if faults:
        raise InvalidRequest(faults=faults)
    nearest = partial(queries["neighbours_of_items"], model.params, model.state, count=request.n_neighbors)
    return _limited(nearest, np.array([places[item] for item in request.items]))


def _limited(nearest: "Callable[[NDArray[Any]], Neighbours]", rows: NDArray[Any]) -> "Neighbours":
    each = nearest(rows[:1]).numbers.shape[1]
    if len(rows) > (most := max(1, MOST_NEIGHBOURS // each)):
        raise BodyTooLarge(
            f"With {each} neighbours of each row, one request may send {most} rows; or lower n_neighbors."
        )
    return nearest(rows)


def _response(subject: Subject, nearest_rows: "Neighbours", flags: list[Flag]) -> NeighboursResponse:
    rows = [list(_row(subject.model, nearest_rows, i)) for i in range(len(nearest_rows.numbers))]
    return NeighboursResponse(**subject.fields, neighbours=rows, flags=flags)


def _row(model: Model, nearest_rows: "Neighbours", i: int) -> Iterator[Neighbour]:
    each = nearest_rows.numbers.shape[1]
    if nearest_rows.targets is None:
        targets: list[Label | None] = [None] * each
    elif model.classes is None:
        targets = finite(in_units(model.linearising, nearest_rows.targets[i]))
    else:
        targets = [model.classes[int(code)] for code in nearest_rows.targets[i]]
    kind = "prototype" if nearest_rows.prototypes else "row"
    items = [None] * each if nearest_rows.items is None else nearest_rows.items[i].tolist()
    shares = [None] * each if nearest_rows.shares is None else nearest_rows.shares[i].tolist()
    numbers, distances = nearest_rows.numbers[i].tolist(), nearest_rows.distances[i].tolist()
    for number, item, distance, target, share in zip(numbers, items, distances, targets, shares, strict=True):
        fields = {kind: number, "item": item}
        yield Neighbour.model_validate(fields | {"distance": distance, "target": target, "share": share})


QUERY = Query(
    operation="find_neighbours",
    request=NeighboursRequest,
    response=NeighboursResponse,
    run=neighbours,
    offered=declared("neighbours"),
)
