"""Ellipses of clusters, or of components of a Gaussian mixture: mean and one standard deviation in two columns.

Of more than two columns those are drawn that part them most.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from app.ml.charts.channels import colour, data, number, tooltips
from app.ml.charts.cluster_labels import cluster_label
from app.ml.charts.layers import layer
from app.ml.charts.numbers import counted, short
from app.ml.charts.specification import Specification
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.algorithm import JSON
from app.ml.contract.columns import ColumnKind
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.numerics.density.parting_columns import parting_columns
from app.ml.queries.ellipsoids import QUERY, Ellipsoid, EllipsoidsRequest, EllipsoidsResponse, ellipsoids

if TYPE_CHECKING:
    from app.ml.numerics.density.normal_ellipsoids import Normals

POINTS = 72
"""Points of an ellipse."""
SIDE = 380
"""Width and height in pixels."""
WITHIN = 1 - np.exp(-0.5)
"""Probability of a row within one standard deviation of two columns."""


def draw(source: PlotSubject) -> Drawing:
    response = _response(source)
    thing, shares = _thing(source), {component.component: component.share for component in response.components}
    largest = sorted(response.components, key=lambda component: -component.share)[:CATEGORIES]
    called = {component.component: cluster_label(component.component, source.subject.names) for component in largest}
    legend = {place: f"{name} ({short(round(100 * shares[place], 1))} %)" for place, name in called.items()}
    drawn = [
        (legend[component.component], component) for component in response.components if component.component in legend
    ]
    shade = colour("series", [name for name, _ in drawn], f"{thing} (share)")
    x, y = (_position(axis, name) for axis, name in zip("xy", response.columns, strict=True))
    lines = [row for name, component in drawn for row in _outline(name, component)]
    means = [_mean(name, str(component.component), component) for name, component in drawn]
    layers = [_whole(response), _ellipses(lines, shade), *_means(means, shade, response.columns, thing)]
    view = {"width": SIDE, "height": SIDE, "encoding": {"x": x, "y": y}, "layer": layers[len(drawn) < 2 :]}
    return Drawing(view, _subtitle(response, len(drawn), thing))


def _thing(source: PlotSubject) -> str:
    return "cluster" if source.subject.model.task.labels else "component"


def _subtitle(response: EllipsoidsResponse, drawn: int, thing: str) -> tuple[str, str]:
    shown = counted(drawn, len(response.components), thing)
    whole = f"; dashed ellipse: all {thing}s together" if drawn > 1 else ""
    within = f"{100 * WITHIN:.0f} % of the rows of a {thing} lie within, in these columns"
    return f"{shown}{whole}", f"Ellipse: one standard deviation; {within}"


def _position(axis: str, name: str) -> Specification:
    scale = {"zero": False, "nice": True, "padding": 6}
    return number(axis, name, axis={"tickCount": 6}) | {"scale": scale}


def _response(source: PlotSubject) -> EllipsoidsResponse:
    model = source.subject.model
    normals: Normals = model.algorithm.queries["ellipsoids"](model.params, model.state)
    columns = [model.preparation.layout.names[place] for place in parting_columns(normals, np.array(_places(source)))]
    return ellipsoids(source.subject, EllipsoidsRequest(columns=columns))


def _places(source: PlotSubject) -> list[int]:
    """Prepared columns that are numbers of the table; all of them, where these are fewer than two."""
    model = source.subject.model
    names = model.preparation.layout.names
    numeric = {column.name for column in model.inputs if column.kind == ColumnKind.NUMERIC}
    places = [place for place, name in enumerate(names) if names.index(name) == place]
    numeric_places = [place for place in places if names[place] in numeric]
    return numeric_places if len(numeric_places) > 1 else places


def _outline(name: str, ellipsoid: Ellipsoid) -> Iterator[dict[str, JSON]]:
    angles = np.linspace(0, 2 * np.pi, POINTS + 1)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for place, (x, y) in enumerate((circle @ np.array(ellipsoid.axes) + ellipsoid.centre).tolist()):
        yield {"series": name, "place": place, "x": x, "y": y}


def _mean(name: str, label: str, ellipsoid: Ellipsoid) -> dict[str, JSON]:
    x, y = ellipsoid.centre
    return {"series": name, "label": label, "x": x, "y": y}


def _whole(response: EllipsoidsResponse) -> Specification:
    line = layer({"type": "line", "style": "reference"}, order={"field": "place", "type": "quantitative"})
    return {"data": data(_outline("", response.whole)), **line}


def _ellipses(rows: list[dict[str, JSON]], shade: Specification) -> Specification:
    mark = {"type": "line", "fillOpacity": 0.12, "strokeJoin": "round"}
    order = {"field": "place", "type": "quantitative"}
    return {"data": data(rows), **layer(mark, color=shade, fill=shade, order=order)}


def _means(rows: list[dict[str, JSON]], shade: Specification, columns: list[str], thing: str) -> list[Specification]:
    seen = tooltips(series=f"{thing} (share)", x=columns[0], y=columns[1])
    points = layer({"type": "point", "size": 50, "opacity": 1}, color=shade, tooltip=seen)
    mark = {"type": "text", "align": "left", "dx": 7, "dy": -7, "fontWeight": "bold"}
    texts = layer(mark, text={"field": "label", "type": "nominal"}, tooltip=seen)
    return [{"data": data(rows), **points}, {"data": data(rows), **texts}]


def _applies(source: PlotSubject) -> bool:
    return QUERY.offered(source.subject.model) and len(_places(source)) > 1


PLOT = Plot(title="Ellipses of clusters or components", applies=_applies, draw=draw)
