"""Fitted curve of a regression on one input: its predictions over the training range, and observed rows."""

from app.ml.charts.channels import data, number, tooltips
from app.ml.charts.layers import layer
from app.ml.charts.report_curves import curve_rows
from app.ml.kinds.plot import Drawing, Plot, PlotSubject


def draw(source: PlotSubject) -> Drawing:
    column = source.subject.model.inputs[0].name
    encoding = {
        "x": number("x", column),
        "y": number("y", source.output),
        "tooltip": tooltips(x=column, y=source.output),
    }
    marks = {"observed": "point", "fit": "line"}
    parts = [{"data": data(curve_rows(source.report, name)), **layer(mark, **encoding)} for name, mark in marks.items()]
    report = source.report
    every, kind = (report.rows_test, "test") if report.rows_test else (report.rows_train, "training")
    some = len(curve_rows(report, "observed"))
    return Drawing({"layer": parts}, (f"Line: predictions. Points: {some} of {every} {kind} rows.",))


PLOT = Plot(title="Fitted curve", applies=lambda source: bool(curve_rows(source.report, "fit")), draw=draw)
