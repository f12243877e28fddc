"""ROC curve: the true positive rate over the false positive rate of each class against the rest, on the test rows."""

from app.ml.charts.channels import SHARE, colour, data, number, tooltips
from app.ml.charts.class_curves import APART, ClassCurve, class_curves, lines, points, positive, shown
from app.ml.charts.layers import segment
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

X, Y = "False positive rate", "True positive rate"
SIDE = 320
"""Width and height in pixels."""


def draw(source: PlotSubject) -> Drawing:
    curves = class_curves(source.report, "roc")
    x, y = number("x", X, domain=(0, 1), axis=SHARE), number("y", Y, domain=(0, 1), axis=SHARE)
    series = colour("series", [curve.label for curve in curves], source.output)
    seen = tooltips(series=source.output, x=X, y=Y, lower="from", upper="to")
    layers = [segment((0, 0), (1, 1)), *lines(x, y, series, seen)]
    view = {"width": SIDE, "height": SIDE, "data": data(points(curves, _trials)), "layer": layers, "resolve": APART}
    bands = f"{positive(curves)}Bands: exact 95 % intervals of the true positive rate."
    return Drawing(view, (f"{source.report.rows_test} test rows{_area(source)}{shown(source.report, curves)}", bands))


def _trials(curve: ClassCurve, _x: float, y: float) -> tuple[float, float]:
    return y * curve.positives, curve.positives


def _area(source: PlotSubject) -> str:
    area = next((metric for metric in source.report.test if metric.name == "roc_auc"), None)
    return "" if area is None else f"; area {area.display}"


PLOT = Plot(title="ROC curve", applies=lambda source: bool(class_curves(source.report, "roc")), draw=draw)
