"""Effects of columns in an additive model: what each value of a column adds to the mean of the target."""

from typing import Any

from app.ml.charts.channels import data, distinct, number, tooltips
from app.ml.charts.numbers import counted
from app.ml.charts.summaries import entries
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MAX_PANELS = 9
PANEL = 150
"""Width and height of a panel in pixels."""


def draw(source: PlotSubject) -> Drawing:
    curves = _curves(source)
    largest = sorted(curves, key=lambda curve: min(curve["contributions"]) - max(curve["contributions"]))[:MAX_PANELS]
    names = distinct([str(curve["column"]) for curve in largest])
    low, high = (end(end(curve["contributions"]) for curve in largest) for end in (min, max))
    panels = [_panel(name, curve, [low, high]) for name, curve in zip(names, largest, strict=True)]
    shown = counted(len(panels), len(curves), "column")
    view = {"concat": panels, "columns": 3, "spacing": 24}
    return Drawing(view, (f"Contribution to {source.output}, in its unit; {shown}",))


def _panel(name: str, curve: dict[str, Any], domain: list[float]) -> dict[str, Any]:
    rows = [{"x": x, "y": y} for x, y in zip(curve["values"], curve["contributions"], strict=True)]
    x, y = number("x", name, axis={"tickCount": 4}), number("y", None, domain=domain, nice=True, axis={"tickCount": 5})
    mark = {"type": "line", "point": {"size": 40} if len(rows) < 5 else False}
    encoding = {"x": x, "y": y, "tooltip": tooltips(x=name, y="contribution")}
    return {"width": PANEL, "height": PANEL, "data": data(rows), "mark": mark, "encoding": encoding}


def _curves(source: PlotSubject) -> list[dict[str, Any]]:
    summary = source.report.unscaled.summary if source.report.unscaled else None
    return [entry for entry in entries(summary, "curves") if entry.get("values") and entry.get("contributions")]


PLOT = Plot(title="Column effects", applies=lambda source: bool(_curves(source)), draw=draw)
