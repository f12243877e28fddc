"""Calibration curve of each class against the rest: the observed share of test rows over the predicted probability.

On the diagonal probabilities are right; below it they are too high.

Reference: Niculescu-Mizil & Caruana (2005), ICML: 625.
"""

from collections.abc import Iterator

from app.ml.charts.channels import SHARE, colour, data, distinct, number, tooltips
from app.ml.charts.class_curves import APART, lines
from app.ml.charts.layers import segment, whiskers
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.algorithm import JSON
from app.ml.evaluation.reliability_curve import ClassReliability
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

X, Y = "Mean predicted probability", "Observed share of the class"
SIDE = 340
"""Width and height in pixels."""


def draw(source: PlotSubject) -> Drawing:
    curves = _curves(source)
    names = distinct([str(curve.label) for curve in curves])
    rows = [row for name, curve in zip(names, curves, strict=True) for row in _points(name, curve)]
    x, y = number("x", X, domain=(0, 1), axis=SHARE), number("y", Y, domain=(0, 1), axis=SHARE)
    series = colour("series", names, source.output)
    seen = tooltips(
        series=source.output, left="from", right="to", rows="rows", x=X, y=Y, lower="share from", upper="share to"
    )
    drawn = lines(x, y, series, seen)
    if len(names) > 1:  # bands of several classes would hide each other
        drawn = [whiskers("y", y, x=x, color=series | {"legend": None}), drawn[1]]
    layers = [segment((0, 0), (1, 1)), *drawn]
    view = {"width": SIDE, "height": SIDE, "data": data(rows), "layer": layers, "resolve": APART}
    shape = "Bands" if len(names) == 1 else "Lines"
    single_class = f"Class {names[0]} against the rest. " if len(names) == 1 else ""
    return Drawing(
        view, (f"{source.report.rows_test} test rows", f"{single_class}{shape}: 95 % intervals of the observed share.")
    )


def _points(name: str, curve: ClassReliability) -> Iterator[dict[str, JSON]]:
    for place, bin_ in enumerate(curve.bins):
        share = bin_.observed_share
        ends = {} if share.lower is None else {"lower": share.lower, "upper": share.upper}
        edges = {"left": bin_.lower_edge, "right": bin_.upper_edge, "rows": bin_.rows}
        yield {"series": name, "place": place, "x": bin_.mean_probability, "y": share.value, **edges, **ends}


def _curves(source: PlotSubject) -> list[ClassReliability]:
    """Curves of as many classes as colours distinguish: those with the most rows of higher probability."""
    all_curves = source.report.reliability or []
    rows = {
        id(curve): sum(bin_.rows * (bin_.observed_share.value or 0.0) for bin_ in curve.bins) for curve in all_curves
    }
    shown_curves = sorted(all_curves, key=lambda curve: -rows[id(curve)])[:CATEGORIES]
    return [curve for curve in all_curves if curve in shown_curves]


PLOT = Plot(title="Calibration curve", applies=lambda source: bool(_curves(source)), draw=draw)
