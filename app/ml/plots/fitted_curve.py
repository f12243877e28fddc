"""Fitted curve of a regression on one input: its predictions over the training range, and observed rows."""

from app.ml.charts.channels import data, number, tooltips
from app.ml.charts.layers import layer
from app.ml.charts.report_curves import curve_rows
from app.ml.plot import Drawing, Plot, PlotSubject


def draw(of: PlotSubject) -> Drawing:
    column = of.subject.model.inputs[0].name
    encoding = {"x": number("x", column), "y": number("y", of.output), "tooltip": tooltips(x=column, y=of.output)}
    marks = {"observed": "point", "fit": "line"}
    parts = [{"data": data(curve_rows(of.report, name)), **layer(mark, **encoding)} for name, mark in marks.items()]
    return Drawing({"layer": parts}, ("Line: predictions. Points: observed rows.",))


PLOT = Plot(title="Fitted curve", applies=lambda of: bool(curve_rows(of.report, "fit")), draw=draw)
