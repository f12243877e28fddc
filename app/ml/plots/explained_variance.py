"""Scree plot: the share of the variance of each component of a projection, and their sum so far.

Of a discriminant analysis it is the share of the separation of the classes.
"""

from itertools import accumulate

from app.ml.charts.channels import SHARE, category, data, number, tooltips
from app.ml.charts.layers import layer
from app.ml.charts.summaries import component_shares, part
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MAX_COMPONENTS = 50
WIDTH = 420
"""Width of the bars together in pixels, of many components."""


def draw(source: PlotSubject) -> Drawing:
    kind, kept_shares = component_shares(source.report)
    shares: list[float] = part(source.report.summary, "variance_ratios") or kept_shares
    columns = zip(shares[:MAX_COMPONENTS], accumulate(shares[:MAX_COMPONENTS]), strict=True)
    rows = [{"name": str(i), "place": i, "y": share, "sum": total} for i, (share, total) in enumerate(columns, 1)]
    names = [row["name"] for row in rows]
    x = category("name", "Component", [str(name) for name in names], labelAngle=0)
    y = number("y", f"Share of the {kind}", domain=(0, 1), axis=SHARE)
    seen = tooltips(name="component", y="share", sum="sum so far")
    total = layer({"type": "line", "point": {"size": 30, "opacity": 1}, "style": "sum"}, y=y | {"field": "sum"})
    faded = {"condition": {"test": f"datum.place <= {len(kept_shares)}", "value": 1}, "value": 0.35}
    layers = [layer("bar", y=y, tooltip=seen, opacity=faded), total]
    width = {"step": max(14, min(60, WIDTH // len(rows)))}
    view = {"width": width, "data": data(rows), "encoding": {"x": x}, "layer": layers}
    dropped = (
        f" The first {len(kept_shares)} are kept; pale bars are left out." if len(kept_shares) < len(shares) else ""
    )
    return Drawing(view, (f"Bars: each component. Line: the sum so far.{dropped}",))


PLOT = Plot(title="Explained variance", applies=lambda source: bool(component_shares(source.report)[1]), draw=draw)
