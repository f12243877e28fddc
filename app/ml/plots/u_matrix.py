"""U-matrix of a self-organising map: distances of prototypes in adjacent cells, training rows and names of the cells.

The names are those that a person has given; where there are none, the most frequent classes. Regions of small
distances hold groups of similar rows; cells with a large distance lie between groups.

Reference: Ultsch & Siemon (1990), Proc. INNC: 305.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat

from app.ml.charts.channels import colour, data, tooltips
from app.ml.charts.layers import layer
from app.ml.charts.map_tiles import Tiles
from app.ml.charts.specification import Specification, printable
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.algorithm import JSON
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.queries.planes import QUERY, Planes, PlanesRequest, planes

ROOM = 480
"""Longest side of the map in pixels."""
DISC, SMALL_DISC = 0.62, 0.4
"""Diameter of the disc of most rows, as a share of the distance of two cells; the same above a name."""
OUTLINE = 0.03
"""Width of the line around a disc, as a share of the distance of two cells; at most one pixel."""
COUNTED, WRITTEN = 8.0, 30.0
"""Pixels between two cells from which they have discs, and from which names are written in them."""
STRONG = 0.75
"""Share of the largest distance from which a cell is strong in colour, and its text in the other shade."""
DISTANCE = "mean distance to adjacent cells"


def draw(source: PlotSubject) -> Drawing:
    response = planes(source.subject, PlanesRequest(columns=[]))
    tiles = Tiles.within(ROOM, response.x, response.y, hexagonal=response.topology == "hexagonal")
    layers = [layer(tiles.mark, color=_shades()), *_marks(response, tiles)]
    positions: Specification = tiles.view["encoding"]
    view = {"data": data(_rows(response)), "layer": layers, "resolve": {"scale": {"color": "independent"}}}
    return Drawing(
        tiles.view | view | {"encoding": positions | {"tooltip": _seen(response)}}, _subtitle(response, tiles)
    )


def _seen(response: Planes) -> list[Specification]:
    named = {"name": _title(response)} if _called(response) else {}
    shares = {} if response.given_names or not response.names else {"share": "its share"}
    return tooltips(place="cell", value=DISTANCE, count="training rows", **named, **shares)


def _called(response: Planes) -> Sequence[str | None]:
    """Name of each cell; empty where there are none."""
    return response.given_names or response.names or []


def _title(response: Planes) -> str:
    return "name" if response.given_names else "most frequent class"


def _subtitle(response: Planes, tiles: Tiles) -> tuple[str, str]:
    cells = f"{sum(response.hits)} training rows in {response.grid_height} × {response.grid_width} cells"
    name = "; name: their most frequent class" if _written(response, tiles) and not response.given_names else ""
    rows = f"Area of a disc: training rows of the cell, at most {max(response.hits)}{name}"
    shown = rows if tiles.side >= COUNTED else f"At most {max(response.hits)} training rows in a cell"
    return f"{cells}; topographic error {response.topographic_error:.3g}", shown


def _written(response: Planes, tiles: Tiles) -> bool:
    """True where names are texts: there are more than colours, and cells are large enough."""
    return len(_names(response)) > CATEGORIES and tiles.side >= WRITTEN


def _rows(response: Planes) -> Iterator[dict[str, JSON]]:
    shares = None if response.given_names else response.name_shares
    cells = zip(response.x, response.y, response.u_matrix, response.hits, strict=True)
    named = zip(cells, _called(response) or repeat(None), shares or repeat(None), strict=False)
    for place, ((x, y, value, hits), name, share) in enumerate(named):
        row: dict[str, JSON] = {"place": place, "x": x, "y": y, "value": value, "count": hits}
        yield row if name is None else row | {"name": printable(name)} | ({} if share is None else {"share": share})


def _shades() -> Specification:
    """In greys, below discs in colours."""
    legend = {"gradientLength": 140, "gradientThickness": 10, "titleLimit": 220}
    scale = {"range": "heatmap", "zero": True}
    return {"field": "value", "type": "quantitative", "title": DISTANCE, "scale": scale, "legend": legend}


def _marks(response: Planes, tiles: Tiles) -> list[Specification]:
    """Discs of the rows, coloured by name where there are few names, and texts of many names."""
    names = _names(response)
    if tiles.side < COUNTED:
        return []
    if not _written(response, tiles):
        coloured = 0 < len(names) <= CATEGORIES
        shade = {"color": colour("name", names, _title(response))} if coloured else {}
        return [_discs(response, tiles, DISC, **shade)]
    small = _discs(response, tiles, SMALL_DISC, yOffset={"value": -0.15 * tiles.side})
    limit = STRONG * max((value for value in response.u_matrix if value is not None), default=0.0)
    styles = {"on_weak": f"datum.value <= {limit}", "on_strong": f"datum.value > {limit}"}
    return [small, *(_texts(tiles, *style) for style in styles.items())]


def _names(response: Planes) -> list[str]:
    """Names of cells, each once, in the order of the alphabet."""
    return sorted({printable(name) for name in _called(response) if name is not None})


def _discs(response: Planes, tiles: Tiles, largest: float, **encoding: JSON) -> Specification:
    """largest: diameter of the disc of most rows, where adjacent cells are 1 apart."""
    scale = {"domain": [0, max(response.hits)], "range": [0, (largest * tiles.side) ** 2]}
    size = {"field": "count", "type": "quantitative", "scale": scale, "legend": None}
    return {
        "transform": [{"filter": "datum.count > 0"}],
        **layer(
            {"type": "point", "style": "disc", "strokeWidth": min(1.0, OUTLINE * tiles.side)}, size=size, **encoding
        ),
    }


def _texts(tiles: Tiles, style: str, condition: str) -> Specification:
    mark = {"type": "text", "style": style, "fontSize": 9.5, "dy": 0.24 * tiles.side, "limit": 0.9 * tiles.side}
    where = [{"filter": f"isValid(datum.name) && {condition}"}]
    return {"transform": where, **layer(mark, text={"field": "name", "type": "nominal"})}


PLOT = Plot(title="U-matrix", applies=lambda source: QUERY.offered(source.subject.model), draw=draw)
