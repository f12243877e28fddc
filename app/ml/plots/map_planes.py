"""Component planes of a self-organising map: the values of each column in the prototypes of all cells.

Columns whose planes look alike vary together. Of more columns than the picture has room for, those are drawn that vary
most over the map.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from app.ml.charts.channels import colour, data, distinct, tooltips
from app.ml.charts.layers import layer
from app.ml.charts.map_tiles import Tiles
from app.ml.charts.numbers import counted, tick_format
from app.ml.charts.specification import Specification
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.algorithm import JSON
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.models.decoding import MOST_VALUES
from app.ml.queries.planes import QUERY, Planes, PlanesRequest, planes

MOST_PLANES, MOST_TILES = 9, 12_000
"""Planes of a picture, and cells of all of them: of large maps fewer planes are drawn."""
PANEL = 190
"""Longest side of a plane in pixels."""
MIN_LEGEND, MAX_LEGEND = 60.0, 110.0
"""Length of the colour scale of a plane in pixels: the shortest, and the longest."""
HEADING = {"frame": "group", "fontSize": 12, "fontWeight": "normal", "offset": 6, "limit": PANEL}
LABELS = 90
"""Longest name of a category in pixels."""
MILLISECONDS = 1000.0
"""Milliseconds of a second: dates of charts are counted in them."""
DAYS = 3 * 86_400 * MILLISECONDS
"""Range of dates from which labels have no hours."""
OTHER = "other categories"


class _Values(NamedTuple):
    """A plane as colours show it."""

    column: InputColumn
    place: int
    """Place among the inputs of the model."""
    values: list[Any]
    """(m,) numbers, milliseconds since 1970 for dates, or categories; None: no value."""
    spread: float
    """Variation over the cells, from 0 to 1."""


def draw(source: PlotSubject) -> Drawing:
    response = _response(source)
    most = max(1, min(MOST_PLANES, MOST_TILES // len(response.x)))
    varying = sorted(_planes(source, response), key=lambda plane: -plane.spread)[:most]
    shown_planes = sorted(varying, key=lambda plane: plane.place)
    tiles = Tiles.within(PANEL, response.x, response.y, hexagonal=response.topology == "hexagonal")
    names = distinct([plane.column.name for plane in shown_planes])
    drawn = [_panel(response, plane, name, tiles) for plane, name in zip(shown_planes, names, strict=True)]
    view = {"concat": drawn, "columns": 3, "spacing": 22, "resolve": {"scale": {"color": "independent"}}}
    return Drawing(view, _subtitle(source, response, len(shown_planes)))


def _subtitle(source: PlotSubject, response: Planes, drawn: int) -> tuple[str, str]:
    every = len(source.subject.model.inputs)
    columns = (
        counted(drawn, every, "column") if drawn == every else f"{drawn} of {every} columns, with the largest variation"
    )
    cells = f"{response.grid_height} × {response.grid_width} cells in a {response.topology} grid"
    return f"{cells}; {columns}", "Colour: value in the prototype of the cell, in the units of the table"


def _response(source: PlotSubject) -> Planes:
    """The map with the planes of all inputs; of more values than a response holds those of the first ones."""
    model = source.subject.model
    cells = model.algorithm.queries["planes"](model.params, model.state).grid.cells
    names = [column.name for column in model.inputs[: max(1, MOST_VALUES // cells)]]
    return planes(source.subject, PlanesRequest(columns=names))


def _planes(source: PlotSubject, response: Planes) -> Iterator[_Values]:
    """Planes with values."""
    places = {column.name: place for place, column in enumerate(source.subject.model.inputs)}
    for plane in response.planes:
        place = places[plane.column]
        column = source.subject.model.inputs[place]
        values = [_value(column, value) for value in plane.values]
        if any(value is not None for value in values):
            yield _Values(column, place, values, _spread(column, values))


def _value(column: InputColumn, value: Any) -> Any:
    if value is None or column.kind not in (ColumnKind.DATETIME, ColumnKind.BOOLEAN):
        return value
    if column.kind == ColumnKind.BOOLEAN:
        return str(value).lower()
    return datetime.fromisoformat(value).timestamp() * MILLISECONDS


def _spread(column: InputColumn, values: Sequence[Any]) -> float:
    """Twice the standard deviation of numbers over the training range; the share of cells of all categories but one."""
    present = [value for value in values if value is not None]
    if isinstance(present[0], str):
        return 1 - Counter(present).most_common(1)[0][1] / len(present)
    unit = MILLISECONDS if column.kind == ColumnKind.DATETIME else 1.0
    width = ((column.maximum or 0.0) / 2 - (column.minimum or 0.0) / 2) * unit
    with np.errstate(over="ignore", invalid="ignore"):
        share = float(np.std(present) / width) if width > 0 else 0.0
    return share if math.isfinite(share) else 0.0


def _panel(response: Planes, plane: _Values, name: str, tiles: Tiles) -> Specification:
    categories = isinstance(next(value for value in plane.values if value is not None), str)
    values = _called(plane.values) if categories else plane.values
    rows = [
        {"x": x, "y": y, "place": place, "value": value}
        for place, (x, y, value) in enumerate(zip(response.x, response.y, values, strict=True))
        if value is not None
    ]
    length = min(MAX_LEGEND, max(MIN_LEGEND, tiles.view["height"]))
    shades = _categories(values) if categories else _shades(plane.column, [row["value"] for row in rows], length)
    seen = [*tooltips(place="cell"), _tooltip(plane.column, name)]
    return {
        "title": {"text": name, **HEADING},
        "data": data(rows),
        **tiles.view,
        "layer": [layer(tiles.mark, color=shades, tooltip=seen)],
    }


def _called(values: Sequence[str | None]) -> list[str | None]:
    """Categories that colours can distinguish; of more, the commonest and one name for the others."""
    counts = Counter(value for value in values if value is not None)
    if len(counts) <= CATEGORIES:
        return list(values)
    frequent = {name for name, _ in counts.most_common(CATEGORIES - 1)}
    return [value if value is None or value in frequent else OTHER for value in values]


def _categories(values: Sequence[str | None]) -> Specification:
    order = sorted({value for value in values if value is not None}, key=lambda name: (name == OTHER, name))
    legend = {"orient": "right", "labelLimit": LABELS, "symbolType": "square", "symbolStrokeWidth": 0}
    return colour("value", order) | {"legend": legend}


def _shades(column: InputColumn, values: Sequence[float], length: float) -> Specification:
    low, high = min(values), max(values)
    legend: Specification = {"orient": "right", "gradientThickness": 10, "gradientLength": length, "title": None}
    legend |= {"values": [low, low / 2 + high / 2, high]}
    if column.kind == ColumnKind.DATETIME:
        legend |= {"labelExpr": f"utcFormat(datum.value, '{'%Y-%m-%d' if high - low > DAYS else '%b %d %H:%M'}')"}
    else:
        legend |= {"format": tick_format(low, high)}
    return {"field": "value", "type": "quantitative", "scale": {"range": "ramp", "zero": False}, "legend": legend}


def _tooltip(column: InputColumn, name: str) -> JSON:
    kind = {"type": "temporal"} if column.kind == ColumnKind.DATETIME else {}
    return {"field": "value", "title": name, **kind}


def _applies(source: PlotSubject) -> bool:
    return QUERY.offered(source.subject.model) and source.subject.model.preparation.restorable


PLOT = Plot(title="Component planes", applies=_applies, draw=draw)
