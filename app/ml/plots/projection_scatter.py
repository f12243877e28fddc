"""Scatter of training rows on two coordinates of a projection, or on two principal components of a clustering.

Ellipses hold 95 % of a normal distribution with the mean and covariance of a class or cluster.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from app.ml.charts.channels import category, colour, data, number, tooltips
from app.ml.charts.layers import layer, whiskers
from app.ml.charts.normal_ellipse import LEVEL, normal_ellipse
from app.ml.charts.numbers import short
from app.ml.charts.row_groups import NONE, OTHERS, drawn_rows, order_of, row_groups
from app.ml.charts.specification import Specification, printable
from app.ml.charts.summaries import component_shares, entries
from app.ml.contract.algorithm import JSON, Matrix, Vector
from app.ml.evaluation.row_sample import RowSample
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

WIDTH = 420
HEIGHTS = 200, 460
"""Range of heights in pixels, within which both axes have one scale."""
ROOM = 0.04
"""Space around the points, as a share of their range."""
NORMAL = 1.959964
"""Standard deviations that hold 95 % of a normal distribution to both sides."""
ALONE = "", NONE, OTHERS
"""Groups without an ellipse: rows without a class, or of several."""
MAX_FLOAT = float(np.finfo(float).max)
MOST_ITEMS = 40
"""Rows up to which their names are written."""
STRIP = 34
"""Height of the rows of a class in pixels, where there is one coordinate."""


def draw(source: PlotSubject) -> Drawing:
    sample = _sample(source)
    groups, titles = row_groups(sample, source.subject.names) or [""] * len(sample.rows), _titles(source)
    points = list(_points(sample, groups))
    order = order_of(groups, sample)
    view = (
        _plane(points, order, titles, _group_title(source))
        if len(titles) > 1
        else _strip(points, order, titles[0], source)
    )
    grouped = order != [""]
    shape = "Ellipses" if len(titles) > 1 else "Lines"
    within = f"{shape}: {LEVEL:.0%} of a normal distribution with the mean and covariance of a {_kind(source)}"
    return Drawing(view, (drawn_rows(len(points), sample), *([within.replace("95%", "95 %")] if grouped else [])))


def _plane(points: list[dict[str, JSON]], order: list[str], titles: list[str], legend: str) -> Specification:
    places = np.array([[row["x"], row["y"]] for row in points])
    names = np.array([row["series"] for row in points])
    outlines = [row for name in order if name not in ALONE for row in _outline(name, places[names == name])]
    ends = [np.array([row[axis] for row in (*points, *outlines)]) for axis in ("x", "y")]
    domains = [_domain(values) for values in ends]
    x, y = (
        number(axis, title, domain=domain, axis={"tickCount": 6})
        for axis, title, domain in zip("xy", titles, domains, strict=True)
    )
    shade = colour("series", order, legend)
    named = bool(points) and "item" in points[0]
    seen = tooltips(row="row", **({"item": "item"} if named else {}), series=legend, x=titles[0], y=titles[1])
    marks = layer({"type": "point"}, color=shade, tooltip=seen) if order != [""] else layer("point", tooltip=seen)
    line = {"type": "line", "strokeWidth": 1.6, "fillOpacity": 0.06}
    lines = layer(line, color=shade, fill=shade, order={"field": "place", "type": "quantitative"})
    layers = [{"data": data(outlines), **lines}] if outlines else []
    encoding = {"x": x, "y": y}
    size = {"width": WIDTH, "height": _height(*domains)}
    return {**size, "encoding": encoding, "layer": [*layers, {"data": data(points), **marks}, *_items(points)]}


def _items(points: list[dict[str, JSON]]) -> list[Specification]:
    """Names of the rows beside their points, where there are few."""
    if not 0 < len(points) <= MOST_ITEMS or "item" not in points[0]:
        return []
    mark = {"type": "text", "align": "left", "dx": 6, "dy": -5, "limit": 110}
    return [{"data": data(points), **layer(mark, text={"field": "item", "type": "nominal"})}]


def _strip(points: list[dict[str, JSON]], order: list[str], title: str, source: PlotSubject) -> Specification:
    """Rows of one coordinate, a line for each group."""
    y = category("series", _group_title(source) if order != [""] else None, order, labels=order != [""])
    ticks = layer({"type": "tick", "thickness": 1, "opacity": 0.6}, tooltip=tooltips(row="row", x=title))
    groups = {name: np.array([row["x"] for row in points if row["series"] == name]) for name in order}
    spans = [span for name, values in groups.items() if name not in ALONE for span in _span(name, values)]
    ends = [span[end] for span in spans for end in ("lower", "upper")]
    x = number("x", title, domain=_domain(np.array([*(row["x"] for row in points), *ends])), axis={"tickCount": 6})
    middle = layer({"type": "point", "style": "error", "opacity": 1, "size": 50}, x=x | {"field": "value"})
    means = [{"data": data(spans), **mark} for mark in (whiskers("x", x, style="error"), middle)] if spans else []
    return {
        "width": WIDTH, "height": {"step": STRIP}, "data": data(points), "encoding": {"x": x, "y": y},
        "layer": [ticks, *means],
    }  # fmt: skip


def _span(name: str, values: Vector) -> Iterator[dict[str, JSON]]:
    if values.size > 1:
        mean, reach = float(values.mean()), NORMAL * float(values.std(ddof=1))
        yield {"series": name, "value": mean, "lower": mean - reach, "upper": mean + reach}


def _points(sample: RowSample, groups: list[str]) -> Iterator[dict[str, JSON]]:
    """A row for each of those that have finite coordinates."""
    columns = [axis.values for axis in sample.axes]
    labels = sample.classes or [None] * len(sample.rows)
    items: Sequence[str | None] = sample.items or [None] * len(sample.rows)
    for row, group, label, item, *values in zip(sample.rows, groups, labels, items, *columns, strict=True):
        if all(value is not None for value in values):
            named = {} if label is None else {"label": str(label)}
            named |= {} if item is None else {"item": printable(item)}
            yield {"row": row, "series": group, **dict(zip("xy", values, strict=False)), **named}


def _outline(name: str, rows: Matrix) -> Iterator[dict[str, JSON]]:
    for place, (x, y) in enumerate(normal_ellipse(rows).tolist()):
        yield {"series": name, "place": place, "x": x, "y": y}


def _domain(values: Vector) -> list[float]:
    low, high = float(values.min()), float(values.max())
    room = 2 * ROOM * (high / 2 - low / 2) if high > low else max(1.0, abs(low) / 2)
    return [max(low - room, -MAX_FLOAT), min(high + room, MAX_FLOAT)]


def _height(x: list[float], y: list[float]) -> float:
    """Height in pixels with which a unit is as long in y as in x, within limits."""
    low, high = HEIGHTS
    return float(np.clip(WIDTH * (y[1] / 2 - y[0] / 2) / (x[1] / 2 - x[0] / 2), low, high))


def _titles(source: PlotSubject) -> list[str]:
    """Titles of the axes, with what share of the variance or separation lies along each."""
    axes, chosen = _sample(source).axes, entries(source.report.summary, "selected_columns")
    if _sample(source).clusters is not None:
        kind, shares = "variance", [axis.variance_share or 0.0 for axis in axes]
        names = [f"Principal {axis.name}" for axis in axes]
    else:
        kind, shares = component_shares(source.report)
        names = [str(column["column"]) for column in chosen] or [axis.name.capitalize() for axis in axes]
    return [f"{name}{_of(kind, index, shares)}" for index, name in enumerate(names[: len(axes)])]


def _of(kind: str, place: int, shares: list[float]) -> str:
    return f" ({short(round(100 * shares[place], 1))} % of the {kind})" if place < len(shares) else ""


def _sample(source: PlotSubject) -> RowSample:
    return source.report.row_sample or RowSample(rows=[], rows_train=0)


def _kind(source: PlotSubject) -> str:
    return "cluster" if _sample(source).clusters is not None else "class"


def _group_title(source: PlotSubject) -> str:
    return "cluster" if _sample(source).clusters is not None else source.output


def _applies(source: PlotSubject) -> bool:
    columns = [axis.values for axis in _sample(source).axes]
    return any(None not in values for values in zip(*columns, strict=True))


PLOT = Plot(title="Map of the rows", applies=_applies, draw=draw)
