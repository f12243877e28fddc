"""Regularisation path of a lasso: each coefficient over the strength of the penalty, strongest first."""

from typing import Any

from app.ml.charts.channels import colour, data, distinct, number, tooltips
from app.ml.charts.layers import layer, upright
from app.ml.charts.specification import Specification
from app.ml.charts.summaries import part, rows_of
from app.ml.charts.themes import CATEGORIES
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MAX_COLUMNS = 60
"""Columns drawn, largest first."""


def draw(source: PlotSubject) -> Drawing:
    path, names = _path(source), distinct(source.report.columns)
    largest = sorted(range(len(names)), key=lambda index: -max(abs(row[index]) for row in path["coefficients"]))[
        :MAX_COLUMNS
    ]
    rows = [
        {"series": names[index], "x": penalty, "y": row[index]}
        for index in largest
        for penalty, row in zip(path["penalties"], path["coefficients"], strict=True)
        if penalty > 0
    ]
    x = number("x", "Penalty l1 (logarithmic)", axis={"grid": False}) | {"scale": {"type": "log", "reverse": True}}
    coloured = [names[index] for index in largest[:CATEGORIES]]
    layers = [*_chosen(source, x), *_lines(coloured, x, number("y", "Coefficient (per scaled column)"))]
    first = f"Coloured: the {len(coloured)} columns with the largest coefficients, of {len(names)}"
    return Drawing({"data": data(rows), "layer": layers}, (first, "Vertical line: the chosen penalty"))


def _lines(coloured: list[str], x: Specification, y: Specification) -> list[Specification]:
    """Columns in colours, and the others behind them."""
    encoding = {"x": x, "y": y, "tooltip": tooltips(series="column", x="l1", y="coefficient")}
    others = layer({"type": "line", "style": "faint"}, detail={"field": "series"}, **encoding)
    lines = layer("line", color=colour("series", coloured, "column"), **encoding)
    within = {"field": "series", "oneOf": coloured}
    return [{"transform": [{"filter": {"not": within}}], **others}, {"transform": [{"filter": within}], **lines}]


def _chosen(source: PlotSubject, x: Specification) -> list[Specification]:
    l1 = part(source.report.summary, "l1")
    return [upright(x, l1)] if isinstance(l1, float) and l1 > 0 else []


def _path(source: PlotSubject) -> dict[str, Any]:
    """Empty where there is no path of two strengths."""
    path = part(source.report.summary, "path")
    rows = rows_of(path, "coefficients", len(source.report.columns))
    return path if len(rows) == len(part(path, "penalties") or []) > 1 else {}


PLOT = Plot(title="Regularisation path", applies=lambda source: bool(_path(source)), draw=draw)
