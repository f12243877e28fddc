"""Loadings of a projection: the weight of each column in each component, negative and positive in two colours."""

from app.ml.charts.channels import category, data, distinct, tooltips
from app.ml.charts.layers import labels, layer
from app.ml.charts.numbers import counted, short
from app.ml.charts.specification import Specification
from app.ml.charts.summaries import rows_of
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MOST_COLUMNS, MOST_COMPONENTS = 30, 8
STRONG = 0.7
"""Share of the largest loading from which a cell is dark, and its text light."""
CELL = 56
"""Width of a cell in pixels."""


def draw(of: PlotSubject) -> Drawing:
    found, names = _loadings(of)[:MOST_COMPONENTS], distinct(of.report.columns)
    largest = sorted(range(len(names)), key=lambda at: -max(abs(row[at]) for row in found))[:MOST_COLUMNS]
    kept = sorted(largest)
    rows = [
        {"name": names[at], "component": str(i), "value": row[at], "label": short(round(row[at], 2))}
        for i, row in enumerate(found, 1)
        for at in kept
    ]
    most = max(abs(row[at]) for row in found for at in kept) or 1.0
    encoding = {
        "x": category("component", "Component", [str(i + 1) for i in range(len(found))], labelAngle=0),
        "y": category("name", None, [names[at] for at in kept]),
    }
    seen = tooltips(name="column", component="component", value="loading")
    limit = f"abs(datum.value) {{}} {STRONG * most}"
    texts = [labels("label", "on_weak", limit.format("<=")), labels("label", "on_strong", limit.format(">"))]
    layers = [layer("rect", color=_colour(most), tooltip=seen), *texts]
    view = {"width": {"step": CELL}, "height": {"step": 22}, "data": data(rows), "encoding": encoding, "layer": layers}
    return Drawing(view, (f"Weights of the scaled columns; {counted(len(kept), len(names), 'column')}",))


def _colour(most: float) -> Specification:
    scale = {"domain": [-most, most], "range": "diverging"}
    return {"field": "value", "type": "quantitative", "title": "loading", "scale": scale}


def _loadings(of: PlotSubject) -> list[list[float]]:
    return rows_of(of.report.summary, "loadings", len(of.report.columns))


PLOT = Plot(title="Loadings", applies=lambda of: bool(_loadings(of)), draw=draw)
