r"""Self-organising map: prototypes in the cells of a grid in the plane, such that similar rows come to near cells.

Each cell of a square or hexagonal grid has a prototype p, a row of the prepared columns. The cell of a row is that of
the nearest prototype. In batch mode all prototypes become means of the rows at once, in online mode they move towards
one drawn row at a time,

    pᵢ = Σⱼ wⱼ a(c(xⱼ), i) xⱼ / Σⱼ wⱼ a(c(xⱼ), i)   or   pᵢ += ηₜ a(c(x), i) (x − pᵢ),   a(c, i) = exp(−D²/(2σₜ²)),

with c(x) the cell of x, D the distance of two cells in the grid, and ηₜ = A/(B + t), at most 1. The radius σₜ falls
from `radius_start` to `radius_end`: while it is large the prototypes are one small sheet, and as it falls they unfold
and fit the rows more closely. At first they are rows drawn by weight. In general no energy falls with every step; with
a radius near 0 the batch mode is k-means, whose inertia never rises. Of several starts the one with the lowest
quantisation error is kept.

The quantisation error is the mean distance of the rows to their prototypes; the topographic error the share of rows
whose two nearest prototypes are not in adjacent cells, where the sheet is torn or folded. Both are in the summary,
and the outputs give them for each new row. With a target, which the fit does not see, each cell is named after the most
frequent class of its rows. The query `planes` returns the map: the prototypes in the units of the table, column by
column, the distances between adjacent ones (U-matrix), the rows of each cell, and the names.

In short: The table is laid out on a grid, so that similar rows are in the same cell or in cells near it. Its planes
show which columns vary where.

Use when: a picture of many columns at once is wanted, with groups and the passages between them. To name a few groups
only, `kmeans` is simpler.

The radius falls as the book has it: for 49 cells and 100 steps it is 7 at the first, 4.5 at the 50th and 2 in the end.

>>> import numpy as np
>>> schedule_of(SOM(grid_height=7, grid_width=7)).radii(np.array([0, 50, 100]) / 100).tolist()
[7.0, 4.5, 2.0]

One cell alone is at the mean of the rows, in batch mode after one epoch and online with η = 1/(1 + t):

>>> rows = Data.of(Task.CLUSTERING, [[0.0], [1.0], [5.0]])
>>> fit(SOM(grid_height=1, grid_width=1, epochs=1), rows, Context.of(0)).state.prototypes.tolist()
[[2.0]]

References: Kohonen (1982), Biol. Cybern. 43:59; Kohonen (2001), Self-Organizing Maps, 3rd ed.; Ultsch & Siemon (1990),
Proc. INNC: 305; Battiti & Brunato, The LION Way, ch. 14.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Labels,
    Matrix,
    Output,
    Params,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.clustering.seeding import canonical_order
from app.ml.numerics.maps.cell_map import CellMap
from app.ml.numerics.maps.cell_names import name_cells
from app.ml.numerics.maps.grid import Grid
from app.ml.numerics.maps.self_organising import Rows, Schedule, batch_epochs, online_epochs, places
from app.ml.numerics.tensor_graphs.distance_tensors import nearest_place

MOST_CELLS = 1000
"""Cells in the summary; the query `planes` has all."""


class SOM(Params):
    """Self-organising map."""

    grid_height: int = Field(10, ge=1, le=100, description="Number of rows of cells.")
    grid_width: int = Field(10, ge=1, le=100, description="Number of cells in a row.")
    topology: Literal["hexagonal", "square"] = Field(
        "hexagonal", description="Grid of the cells: an inner cell has six neighbours (hexagonal) or four (square)."
    )
    mode: Literal["batch", "online"] = Field(
        "batch", description="Fit to all rows at once, in every epoch (batch), or to one drawn row at a time (online)."
    )
    epochs: int = Field(
        20, ge=1, le=100_000, description="Number of passes over the rows; online, of as many draws as there are rows."
    )
    radius_start: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="Radius σ of the neighbourhood at the start, in cells. Null: the root of the number of cells.",
    )
    radius_end: float = Field(
        2.0,
        gt=0,
        le=1e6,
        description="Radius σ of the neighbourhood at the end, in cells. Smaller brings prototypes nearer to the rows "
        "and the map nearer to k-means.",
    )
    decay: Literal["linear", "exponential"] = Field(
        "linear", description="Course of the radius from start to end: by equal differences, or by equal ratios."
    )
    step_scale: float = Field(
        1.0,
        gt=0,
        le=1e12,
        description="Numerator A of the step A/(B + t), the share by which the nearest prototype moves to the row "
        "drawn after t others, at most 1. Unused in batch mode.",
    )
    step_offset: float = Field(
        20.0, ge=1, le=1e12, description="Number B in the step A/(B + t): larger is slower. Unused in batch mode."
    )
    n_init: int = Field(1, ge=1, le=1000, description="Number of starts, of which the best is kept.")


class State(NamedTuple):
    prototypes: Matrix
    """(m, d) row by row of the grid."""
    hits: Labels
    """(m,) training rows of each cell."""
    errors: Matrix
    """(s, 2) quantisation and topographic error of each start on the training rows."""
    best: int
    """The start that is kept."""
    names: NDArray[np.str_] | None = None
    """(m,) most frequent class of the rows of each cell, "" where none has one; None: there are no classes."""
    shares: Vector | None = None
    """(m,) share of that class among the rows that have one."""


class _Start(NamedTuple):
    state: State
    curve: list[float]


def grid_of(params: SOM) -> Grid:
    return Grid(params.grid_height, params.grid_width, params.topology == "hexagonal")


def schedule_of(params: SOM) -> Schedule:
    first = math.sqrt(params.grid_height * params.grid_width) if params.radius_start is None else params.radius_start
    steps = params.step_scale, params.step_offset
    return Schedule(params.epochs, first, params.radius_end, params.decay == "exponential", *steps)


def fit(params: SOM, data: Data, context: Context) -> Fit[State]:
    order = canonical_order(data.x)
    rows = Rows(data.x[order], data.weights[order])
    starts = [_start(params, rows, context, place) for place in range(params.n_init)]
    errors = np.concatenate([start.state.errors for start in starts])
    best = int(errors[:, 0].argmin())
    state = starts[best].state._replace(errors=errors, best=best)
    return Fit(state, iterations=params.epochs, curves={"quantisation_error": starts[best].curve})


def _start(params: SOM, rows: Rows, context: Context, place: int) -> _Start:
    grid, schedule = grid_of(params), schedule_of(params)
    prototypes = rows.x[rows.drawn(context.rng, grid.cells)]
    if params.mode == "batch":
        epochs = batch_epochs(rows, grid, prototypes, schedule)
    else:
        epochs = online_epochs(rows, grid, prototypes, schedule, context.rng)
    curve = []
    for done, epoch in enumerate(epochs, 1):
        prototypes = epoch.prototypes
        curve.append(epoch.error)
        context.progress((place + done / params.epochs) / params.n_init, quantisation_error=epoch.error)
    placed_rows = places(rows.x, prototypes)
    both = np.stack([placed_rows.distance, placed_rows.torn(grid)], axis=1)
    errors = np.average(both, axis=0, weights=rows.weights)[None]
    return _Start(State(prototypes, np.bincount(placed_rows.nearest, minlength=grid.cells), errors, 0), curve)


def named(params: SOM, state: State, data: Data, codes: Labels, names: Sequence[str]) -> State:
    cells = predict(params, state, data.x)
    cell_names, shares = name_cells(cells, codes, data.weights, names, len(state.prototypes))
    return state._replace(names=cell_names, shares=shares)


def predict(params: SOM, state: State, x: Matrix) -> Labels:
    return places(x, state.prototypes).nearest


def coordinates(params: SOM, state: State, x: Matrix) -> Matrix:
    return np.asarray(grid_of(params).positions[predict(params, state, x)])


def distance(params: SOM, state: State, x: Matrix) -> Vector:
    return places(x, state.prototypes).distance


def second(params: SOM, state: State, x: Matrix) -> Labels:
    return places(x, state.prototypes).second


def torn(params: SOM, state: State, x: Matrix) -> NDArray[np.bool_]:
    return places(x, state.prototypes).torn(grid_of(params)) > 0


def planes(params: SOM, state: State) -> CellMap:
    quantisation, topographic = state.errors[state.best].tolist()
    return CellMap(grid_of(params), state.prototypes, state.hits, quantisation, topographic, state.names, state.shares)


def summary(params: SOM, state: State) -> JSON:
    """Distances are in prepared (scaled) columns. `starts`: errors of each start."""
    starts = [
        {"quantisation_error": quantisation, "topographic_error": other}
        for quantisation, other in state.errors.tolist()
    ]
    result = {
        **starts[state.best],
        "starts": starts,
        "empty_cells": int((state.hits == 0).sum()),
        "hits": state.hits[:MOST_CELLS].tolist(),
    }
    return result if state.names is None else result | {"names": [name or None for name in state.names[:MOST_CELLS]]}


def _seconds(params: SOM, size: Size) -> float:
    pair, row = (
        (3e-10 + 1.2e-10 * size.columns, 1.5e-7) if params.mode == "batch" else (2e-9 + 4e-10 * size.columns, 1e-6)
    )
    each = params.grid_height * params.grid_width * pair + row
    return 1.2e-4 * size.columns + params.n_init * (size.rows * (params.epochs * each + 2e-6) + 1e-3 * params.epochs)


def to_tensor(params: SOM, state: State, x: Tensor) -> Tensor:
    return nearest_place(state.prototypes, x)


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=SOM,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=_seconds,
    rowwise=True,
    outputs={
        "coordinates": Output("Coordinates x and y of the cell in the grid; neighbours are 1 apart.", coordinates),
        "distance": Output("Euclidean distance to the prototype of the cell, in the prepared columns.", distance),
        "second_cell": Output("Cell with the second nearest prototype.", second),
        "torn": Output("True where the cell and the second cell are not adjacent (topographic error).", torn),
    },
    prototypes=lambda _, state: state.prototypes,
    named=named,
    summary=summary,
    queries={"planes": planes},
    breaks={
        Symmetry.SCALE: "A distance gives a column the weight of its unit; scale the columns alike first.",
    },
)
