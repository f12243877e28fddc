"""Effects of columns in an additive model: what each value of a column adds to the mean of the target."""

from typing import Any

from app.ml.charts.channels import data, distinct, number, tooltips
from app.ml.charts.numbers import counted
from app.ml.charts.summaries import entries
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MOST = 9
PANEL = 150
"""Width and height of a panel in pixels."""


def draw(of: PlotSubject) -> Drawing:
    found = _curves(of)
    largest = sorted(found, key=lambda one: min(one["contributions"]) - max(one["contributions"]))[:MOST]
    names = distinct([str(one["column"]) for one in largest])
    low, high = (end(end(one["contributions"]) for one in largest) for end in (min, max))
    panels = [_panel(name, one, [low, high]) for name, one in zip(names, largest, strict=True)]
    shown = counted(len(panels), len(found), "column")
    view = {"concat": panels, "columns": 3, "spacing": 24}
    return Drawing(view, (f"Contribution to {of.output}, in its unit; {shown}",))


def _panel(name: str, one: dict[str, Any], domain: list[float]) -> dict[str, Any]:
    rows = [{"x": x, "y": y} for x, y in zip(one["values"], one["contributions"], strict=True)]
    x, y = number("x", name, axis={"tickCount": 4}), number("y", None, domain=domain, nice=True, axis={"tickCount": 5})
    mark = {"type": "line", "point": {"size": 40} if len(rows) < 5 else False}
    encoding = {"x": x, "y": y, "tooltip": tooltips(x=name, y="contribution")}
    return {"width": PANEL, "height": PANEL, "data": data(rows), "mark": mark, "encoding": encoding}


def _curves(of: PlotSubject) -> list[dict[str, Any]]:
    summary = of.report.unscaled.summary if of.report.unscaled else None
    return [one for one in entries(summary, "curves") if one.get("values") and one.get("contributions")]


PLOT = Plot(title="Column effects", applies=lambda of: bool(_curves(of)), draw=draw)
