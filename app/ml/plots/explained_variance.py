"""Scree plot: the share of the variance of each component of a projection, and their sum so far.

Of a discriminant analysis it is the share of the separation of the classes.
"""

from itertools import accumulate

from app.ml.charts.channels import SHARE, category, data, number, tooltips
from app.ml.charts.layers import layer
from app.ml.charts.summaries import part
from app.ml.plot import Drawing, Plot, PlotSubject

KINDS = {"explained_variance_ratio": "variance", "separation_ratio": "separation"}
MOST = 50
WIDTH = 420
"""Width of the bars together in pixels, of many components."""


def draw(of: PlotSubject) -> Drawing:
    kind, shares = _shares(of)
    columns = zip(shares[:MOST], accumulate(shares[:MOST]), strict=True)
    rows = [{"name": str(i), "y": share, "sum": total} for i, (share, total) in enumerate(columns, 1)]
    names = [row["name"] for row in rows]
    x = category("name", "Component", [str(name) for name in names], labelAngle=0)
    y = number("y", f"Share of the {kind}", domain=(0, 1), axis=SHARE)
    seen = tooltips(name="component", y="share", sum="sum so far")
    total = layer({"type": "line", "point": {"size": 30, "opacity": 1}, "style": "sum"}, y=y | {"field": "sum"})
    layers = [layer("bar", y=y, tooltip=seen), total]
    width = {"step": max(14, min(60, WIDTH // len(rows)))}
    view = {"width": width, "data": data(rows), "encoding": {"x": x}, "layer": layers}
    return Drawing(view, ("Bars: each component. Line: the sum so far.",))


def _shares(of: PlotSubject) -> tuple[str, list[float]]:
    for key, kind in KINDS.items():
        found = part(of.report.summary, key)
        if isinstance(found, list) and found and all(isinstance(one, float | int) for one in found):
            return kind, found
    return "", []


PLOT = Plot(title="Explained variance", applies=lambda of: bool(_shares(of)[1]), draw=draw)
