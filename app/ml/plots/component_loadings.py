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


def draw(source: PlotSubject) -> Drawing:
    loadings, names = _loadings(source)[:MOST_COMPONENTS], distinct(source.report.columns)
    largest = sorted(range(len(names)), key=lambda index: -max(abs(row[index]) for row in loadings))[:MOST_COLUMNS]
    shown_columns = sorted(largest)
    rows = [
        {"name": names[index], "component": str(i), "value": row[index], "label": short(round(row[index], 2))}
        for i, row in enumerate(loadings, 1)
        for index in shown_columns
    ]
    most = max(abs(row[index]) for row in loadings for index in shown_columns) or 1.0
    encoding = {
        "x": category("component", "Component", [str(i + 1) for i in range(len(loadings))], labelAngle=0),
        "y": category("name", None, [names[index] for index in shown_columns]),
    }
    seen = tooltips(name="column", component="component", value="loading")
    limit = f"abs(datum.value) {{}} {STRONG * most}"
    texts = [labels("label", "on_weak", limit.format("<=")), labels("label", "on_strong", limit.format(">"))]
    layers = [layer("rect", color=_colour(most), tooltip=seen), *texts]
    view = {"width": {"step": CELL}, "height": {"step": 22}, "data": data(rows), "encoding": encoding, "layer": layers}
    return Drawing(view, (f"Weights of the scaled columns; {counted(len(shown_columns), len(names), 'column')}",))


def _colour(most: float) -> Specification:
    scale = {"domain": [-most, most], "range": "diverging"}
    return {"field": "value", "type": "quantitative", "title": "loading", "scale": scale}


def _loadings(source: PlotSubject) -> list[list[float]]:
    return rows_of(source.report.summary, "loadings", len(source.report.columns))


PLOT = Plot(title="Loadings", applies=lambda source: bool(_loadings(source)), draw=draw)
