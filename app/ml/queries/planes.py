"""The planes of a self-organising map: prototypes column by column, distances of adjacent ones (U-matrix), and rows.

Each list has a value for every cell, row by row of the grid, in units and categories of the table.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from app.base.errors import BodyTooLarge, InvalidRequest
from app.base.faults import Fault
from app.base.suggestions import no_such
from app.base.wire import Body, Wire
from app.ml.kinds.query import Query, Subject, declared
from app.ml.models.decoding import MOST_VALUES
from app.ml.models.model import Model
from app.ml.models.model_response import ModelResponse
from app.ml.numerics.maps.grid import steps, u_matrix
from app.ml.preparation.restoring import restore
from app.ml.training.reporting.reporting import finite

if TYPE_CHECKING:
    from app.ml.numerics.maps.cell_map import CellMap


class PlanesRequest(Body):
    """The inputs whose planes are returned."""

    columns: list[str] | None = Field(None, description="Names of inputs of the model; null: all of them.")


class Plane(Wire):
    """A component plane: one input in all cells."""

    column: str = Field(description="Name of the input.")
    values: list[Any] = Field(
        description="Value in the prototype of each cell, in units of the table; of categories the most probable one."
    )
    shares: list[float] | None = Field(
        None, description="Share of that category in each cell, from 0 to 1; null: the input is a number."
    )


class Border(Wire):
    """Two adjacent cells."""

    first: int = Field(description="Number of one cell.")
    second: int = Field(description="Number of the other cell, the larger one.")
    distance: float | None = Field(
        description="Euclidean distance of the two prototypes, in prepared columns; null: beyond the largest number."
    )


class Planes(ModelResponse):
    """A self-organising map. Cells are numbered row by row of the grid, from 0."""

    topology: str = Field(description="Grid of the cells: hexagonal or square.")
    grid_height: int = Field(description="Number of rows of cells.")
    grid_width: int = Field(description="Number of cells in a row.")
    x: list[float] = Field(description="Horizontal position of each cell; adjacent cells are 1 apart.")
    y: list[float] = Field(description="Vertical position of each cell, which grows with the row of the grid.")
    hits: list[int] = Field(description="Number of training rows in each cell.")
    u_matrix: list[float | None] = Field(
        description="Mean distance of the prototype of each cell to those of adjacent cells, in prepared (scaled) "
        "columns: large between groups. Null: beyond the largest number."
    )
    borders: list[Border] = Field(description="Distances of all adjacent cells.")
    names: list[str | None] | None = Field(
        None,
        description="Most frequent class of the training rows of each cell, null where none has one; null: the "
        "training named no target.",
    )
    name_shares: list[float] | None = Field(
        None, description="Share of that class in each cell, from 0 to 1, 0 where there is none; null: no target."
    )
    given_names: list[str | None] | None = Field(
        None,
        description="Name that a person has given to each cell, null where it has none; null: no cell has a name.",
    )
    planes: list[Plane] = Field(
        description="Component plane of each input; none where the model learned from a projection of the inputs."
    )
    quantisation_error: float | None = Field(
        description="Mean distance of the training rows to the nearest prototype, in prepared (scaled) columns, not "
        "squared as in the metric of this name; null: beyond the largest number."
    )
    topographic_error: float = Field(
        description="Share of the training rows whose two nearest prototypes are not in adjacent cells."
    )


def planes(subject: Subject, request: PlanesRequest) -> Planes:
    """Raises InvalidRequest for names that are no inputs; BodyTooLarge for more values than a response holds."""
    model = subject.model
    columns = _columns(model, request)
    cell_map: CellMap = model.algorithm.queries["planes"](model.params, model.state)
    grid = cell_map.grid
    if grid.cells * len(columns) > MOST_VALUES:
        raise BodyTooLarge(
            f"{len(columns)} planes of {grid.cells} cells are more than {MOST_VALUES} values: name fewer columns."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        distances, mean = steps(grid, cell_map.prototypes), u_matrix(grid, cell_map.prototypes)
    return Planes(
        **subject.fields,
        topology="hexagonal" if grid.hexagonal else "square",
        grid_height=grid.height,
        grid_width=grid.width,
        x=grid.positions[:, 0].tolist(),
        y=grid.positions[:, 1].tolist(),
        hits=cell_map.hits.tolist(),
        u_matrix=finite(mean),
        borders=[
            Border(first=cell, second=other, distance=distance)
            for (cell, other), distance in zip(grid.pairs.tolist(), finite(distances), strict=True)
        ],
        names=None if cell_map.names is None else [name or None for name in cell_map.names.tolist()],
        name_shares=None if cell_map.shares is None else cell_map.shares.tolist(),
        given_names=[subject.names.get(cell) for cell in range(grid.cells)] if subject.names else None,
        planes=_planes(model, cell_map, columns),
        quantisation_error=finite(cell_map.quantisation_error),
        topographic_error=cell_map.topographic_error,
    )


def _columns(model: Model, request: PlanesRequest) -> list[str]:
    names = [column.name for column in model.inputs]
    if request.columns is None:
        return names
    faults = [
        Fault(f"/columns/{place}", no_such("The model has no input", name, names), "unknown_column")
        for place, name in enumerate(request.columns)
        if name not in names
    ]
    if faults:
        raise InvalidRequest(faults=faults)
    return list(dict.fromkeys(request.columns))


def _planes(model: Model, cell_map: "CellMap", columns: list[str]) -> list[Plane]:
    if not model.preparation.restorable:
        return []
    rows = restore(model.preparation, cell_map.prototypes)
    return [
        Plane(
            column=name,
            values=[row.values[name] for row in rows],
            shares=[row.shares[name] for row in rows] if name in rows[0].shares else None,
        )
        for name in columns
    ]


QUERY = Query(operation="read_planes", request=PlanesRequest, response=Planes, run=planes, offered=declared("planes"))
