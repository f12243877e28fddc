"""Training curves: what the fit monitored at each iteration, such as its loss on training and on held-out rows."""

from collections.abc import Sequence

from app.ml.charts.channels import colour, data, number, tooltips
from app.ml.charts.numbers import counted
from app.ml.charts.report_curves import monitored
from app.ml.charts.themes import CATEGORIES
from app.ml.evaluation.report import Report, ReportCurve
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MOST_TICKS = 10
STEEP = 100
"""Ratio of the largest to the smallest value from which the axis is logarithmic."""


def draw(source: PlotSubject) -> Drawing:
    curves = _drawn(source.report)[:CATEGORIES]
    names = [curve.name.replace("_", " ") for curve in curves]
    rows = [
        {"series": name, "x": x, "y": y}
        for name, curve in zip(names, curves, strict=True)
        for x, y in zip(curve.x or range(1, len(curve.y) + 1), curve.y, strict=True)
    ]
    encoding = {
        "x": number("x", "Iteration", axis=_ticks(curves)),
        "y": _logarithmic(curves, number("y", names[0].capitalize() if len(names) == 1 else "Value")),
        "color": colour("series", names),
        "tooltip": tooltips(series="curve", x="iteration", y="value"),
    }
    mark = {"type": "line", "point": {"size": 16} if len(rows) <= 40 else False}
    ended = "converged" if source.report.converged else "stopped before it converged"
    return Drawing(
        {"data": data(rows), "mark": mark, "encoding": encoding},
        (f"{counted(source.report.iterations, source.report.iterations, 'iteration')}; the fit {ended}",),
    )


def _ticks(curves: Sequence[ReportCurve]) -> dict[str, object]:
    """Whole numbers: of few iterations each."""
    last = max(int((curve.x or [len(curve.y)])[-1]) for curve in curves)
    return {"format": "d"} | ({"values": list(range(1, last + 1))} if last <= MOST_TICKS else {})


def _logarithmic(curves: Sequence[ReportCurve], y: dict[str, object]) -> dict[str, object]:
    low, high = min(min(curve.y) for curve in curves), max(max(curve.y) for curve in curves)
    return y | {"scale": {"type": "log"}} if low > 0 and high > STEEP * low else y


def _drawn(report: Report) -> list[ReportCurve]:
    return [curve for curve in monitored(report) if len(curve.y) > 1]


PLOT = Plot(title="Training curve", applies=lambda source: bool(_drawn(source.report)), draw=draw)
