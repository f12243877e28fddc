"""Layers of Vega-Lite views: marks with their encodings, for intervals, reference lines and labels."""

from collections.abc import Mapping

from app.ml.charts.channels import data
from app.ml.charts.specification import Specification
from app.ml.contract.algorithm import JSON


def layer(mark: str | Mapping[str, JSON], **encoding: JSON) -> Specification:
    return {"mark": mark if isinstance(mark, str) else dict(mark), "encoding": encoding}


def band(y: Specification, **encoding: JSON) -> Specification:
    """The area between the fields lower and upper."""
    return layer({"type": "area", "style": "band"}, y=y | {"field": "lower"}, y2={"field": "upper"}, **encoding)


def whiskers(axis: str, position: Specification, *, style: str | None = None, **encoding: JSON) -> Specification:
    """Lines from the field lower to the field upper along an axis, `x` or `y`."""
    mark = {"type": "rule", "strokeWidth": 1.6} if style is None else {"type": "rule", "style": style}
    ends = {axis: position | {"field": "lower"}, f"{axis}2": {"field": "upper"}}
    return layer(mark, **ends, **encoding)


def segment(start: tuple[float, float], stop: tuple[float, float]) -> Specification:
    """A straight reference line between two points of numeric axes."""
    rows = [{"x": x, "y": y} for x, y in (start, stop)]
    axes = {axis: {"field": axis, "type": "quantitative"} for axis in ("x", "y")}
    return {"data": data(rows), **layer({"type": "line", "style": "reference"}, **axes)}


def upright(x: Specification, position: float, **encoding: JSON) -> Specification:
    """A vertical reference line across the view."""
    return {
        "data": data([{"x": position}]),
        **layer({"type": "rule", "style": "reference"}, x=x | {"field": "x"}, **encoding),
    }


def labels(field: str, style: str, condition: str) -> Specification:
    """Texts of the rows that meet a condition."""
    shown = {"field": field, "type": "nominal"}
    return {"transform": [{"filter": condition}], **layer({"type": "text", "style": style}, text=shown)}
