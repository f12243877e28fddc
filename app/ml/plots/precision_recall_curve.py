"""Precision-recall curve: the precision over the recall of each class against the rest, on the test rows."""

from app.ml.charts.channels import SHARE, colour, data, number, tooltips
from app.ml.charts.class_curves import APART, ClassCurve, class_curves, lines, points, positive, shown
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

X, Y = "Recall", "Precision"
SIDE = 320
"""Width and height in pixels."""


def draw(source: PlotSubject) -> Drawing:
    curves = class_curves(source.report, "precision_recall")
    x, y = number("x", X, domain=(0, 1), axis=SHARE), number("y", Y, domain=(0, 1), axis=SHARE)
    series = colour("series", [curve.label for curve in curves], source.output)
    layers = lines(x, y, series, tooltips(series=source.output, x=X, y=Y, lower="from", upper="to"))
    view = {"width": SIDE, "height": SIDE, "data": data(points(curves, _trials)), "layer": layers, "resolve": APART}
    bands = f"{positive(curves)}Bands: exact 95 % intervals of the precision."
    return Drawing(view, (f"{source.report.rows_test} test rows{shown(source.report, curves)}", bands))


def _trials(curve: ClassCurve, x: float, y: float) -> tuple[float, float]:
    """True positives, and rows that are predicted to be of the class."""
    hits = x * curve.positives
    return hits, hits / y if y else 0.0


PLOT = Plot(
    title="Precision-recall curve",
    applies=lambda source: bool(class_curves(source.report, "precision_recall")),
    draw=draw,
)
