"""Calibration of confidence: the accuracy of test rows by the probability of their predicted class.

On the diagonal a probability is the share of correct predictions; below it the model is too sure of itself.

Reference: Guo, Pleiss, Sun & Weinberger (2017), ICML: 1321.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from app.ml.charts.channels import SHARE, data, number, tooltips
from app.ml.charts.layers import layer, segment, whiskers
from app.ml.contract.algorithm import JSON
from app.ml.evaluation.report import RejectionCurve
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.statistics.intervals import clopper_pearson

BINS = 10
WHOLE = 1e-6
"""Distance from a whole number up to which a count is one: weighted rows have others, and no binomial interval."""
X, Y = "Probability of the predicted class", "Accuracy"


class _Accepted(NamedTuple):
    """Rows that reach a threshold, and those of them that are predicted correctly."""

    threshold: float
    rows: float
    hits: float


def draw(source: PlotSubject) -> Drawing:
    bins = list(_bins(source))
    low = source.report.rejection.thresholds[0] if source.report.rejection else 0.0
    x, y = number("x", X, domain=(low, 1), axis=SHARE), number("y", Y, domain=(0, 1), axis=SHARE)
    seen = tooltips(left="from", right="to", rows="rows", y=Y, lower="accuracy from", upper="accuracy to")
    points = layer({"type": "point", "opacity": 1}, y=y, tooltip=seen, size=_size(bins))
    layers = [segment((low, low), (1, 1)), whiskers("y", y), points]
    note = "Points: rows of one range of probabilities. Bars: exact 95 % intervals."
    view = {"width": 340, "height": 320, "data": data(bins), "encoding": {"x": x}, "layer": layers}
    return Drawing(view, (f"{source.report.rows_test} test rows", note))


def _size(bins: list[dict[str, JSON]]) -> dict[str, JSON]:
    most = max((row["rows"] for row in bins), default=1)
    scale = {"domain": [0, most], "range": [20, 220]}
    legend = {"values": sorted({1, math.ceil(most / 2), most})}
    return {"field": "rows", "type": "quantitative", "scale": scale, "title": "rows", "legend": legend}


def _bins(source: PlotSubject) -> Iterator[dict[str, JSON]]:
    curve = source.report.rejection
    if curve is None:
        return
    steps = _accepted(curve, source.report.rows_test)
    edges = [step for place, step in enumerate(steps) if place % max(1, len(steps) // BINS) == 0]
    for left, right in pairwise([*edges, _Accepted(1.0, 0.0, 0.0)]):
        rows, hits = left.rows - right.rows, left.hits - right.hits
        if rows >= 0.5:
            yield _bin(left.threshold, right.threshold, rows, hits)


def _bin(left: float, right: float, rows: float, hits: float) -> dict[str, JSON]:
    share = min(1.0, max(0.0, hits / rows))
    fields: dict[str, JSON] = {"x": (left + right) / 2, "y": share, "left": left, "right": right, "rows": round(rows)}
    if max(abs(rows - round(rows)), abs(hits - round(hits))) > WHOLE * rows + WHOLE:
        return fields
    bounds = clopper_pearson(round(hits), round(rows))
    return fields | ({"lower": bounds.lower, "upper": bounds.upper} if bounds else {})


def _accepted(curve: RejectionCurve, rows: int) -> list[_Accepted]:
    """Counts by threshold, from the shares of the curve."""
    parts = zip(curve.thresholds, curve.rejected, curve.accuracy, strict=True)
    return [
        _Accepted(threshold, rows * (1 - gone), rows * (1 - gone) * (share or 0.0)) for threshold, gone, share in parts
    ]


PLOT = Plot(
    title="Calibration of confidence",
    applies=lambda source: source.report.rejection is not None and source.report.rows_test > 0,
    draw=draw,
)
