"""Accuracy-rejection curve: the accuracy of the accepted test rows over the share of rows that is rejected."""

from collections.abc import Iterator

from app.ml.charts.channels import SHARE, data, number, tooltips
from app.ml.charts.layers import band, layer
from app.ml.contract.algorithm import JSON
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

X, Y = "Rejected rows", "Accuracy of the accepted rows"


def draw(source: PlotSubject) -> Drawing:
    rows = list(_rows(source))
    x = number("x", X, axis={**SHARE, "tickCount": 7}, domain=(0, max((row["x"] for row in rows), default=1.0) or 1.0))
    y = number("y", Y, axis={"format": "~%"})
    seen = tooltips(threshold="smallest accepted probability", x=X, y=Y, lower="from", upper="to")
    order = {"field": "threshold", "type": "quantitative"}
    line = layer({"type": "line", "point": {"size": 14, "opacity": 1}}, y=y, tooltip=seen, order=order)
    view = {"data": data(rows), "encoding": {"x": x}, "layer": [band(y), line]}
    note = "Rows are rejected below a smallest probability. Band: 95 % intervals at each threshold."
    return Drawing(view, (f"{source.report.rows_test} test rows", note))


def _rows(source: PlotSubject) -> Iterator[dict[str, JSON]]:
    curve = source.report.rejection
    if curve is None:
        return
    names = "threshold", "x", "y", "lower", "upper"
    columns = zip(curve.thresholds, curve.rejected, curve.accuracy, curve.lower, curve.upper, strict=True)
    yield from (dict(zip(names, row, strict=True)) for row in columns if row[2] is not None)


def _applies(source: PlotSubject) -> bool:
    return source.report.rejection is not None and any(value is not None for value in source.report.rejection.accuracy)


PLOT = Plot(title="Accuracy and rejection", applies=_applies, draw=draw)
