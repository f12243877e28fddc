"""Residuals of the test rows over their predictions: a pattern shows what the model has missed."""

from app.ml.charts.channels import data, number, tooltips
from app.ml.charts.layers import layer, segment
from app.ml.charts.report_curves import curve_rows
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

NAME = "residual over predicted"


def draw(source: PlotSubject) -> Drawing:
    rows = curve_rows(source.report, NAME)
    low, high = min(row["x"] for row in rows), max(row["x"] for row in rows)
    x, y = number("x", f"Predicted {source.output}"), number("y", f"Residual of {source.output}")
    points = layer("point", x=x, y=y, tooltip=tooltips(x="predicted", y="residual"))
    view = {"data": data(rows), "layer": [segment((low, 0), (high, 0)), points]}
    note = "Residual: observed minus predicted value."
    return Drawing(view, (f"{len(rows)} of {source.report.rows_test} test rows", note))


PLOT = Plot(title="Residuals over predictions", applies=lambda source: bool(curve_rows(source.report, NAME)), draw=draw)
