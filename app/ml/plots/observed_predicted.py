"""Observed over predicted targets of the test rows: good predictions lie near the diagonal."""

from app.ml.charts.channels import data, number, tooltips
from app.ml.charts.layers import layer, segment
from app.ml.charts.report_curves import curve_rows
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

NAME = "observed over predicted"
METRICS = {"rmse": "RMSE", "r2": "R²"}


def draw(source: PlotSubject) -> Drawing:
    rows = curve_rows(source.report, NAME)
    low, high = min(min(row.values()) for row in rows), max(max(row.values()) for row in rows)
    x, y = number("x", f"Predicted {source.output}"), number("y", f"Observed {source.output}")
    points = layer("point", x=x, y=y, tooltip=tooltips(x="predicted", y="observed"))
    view = {"width": 320, "height": 320, "data": data(rows), "layer": [segment((low, low), (high, high)), points]}
    metrics = [f"{METRICS[metric.name]} {metric.display}" for metric in source.report.test if metric.name in METRICS]
    return Drawing(view, (f"{len(rows)} of {source.report.rows_test} test rows", "; ".join(metrics)))


PLOT = Plot(title="Observed and predicted", applies=lambda source: bool(curve_rows(source.report, NAME)), draw=draw)
