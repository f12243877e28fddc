"""Normal quantile (Q-Q) plot of the residuals of the test rows: normal residuals lie near the line.

The i-th smallest of n normal residuals lies within the band with probability 95 %: its quantile is distributed as
Beta(i, n + 1 − i).
"""

from collections.abc import Iterator

import numpy as np
import scipy

from app.ml.charts.channels import data, number, tooltips
from app.ml.charts.layers import band, layer
from app.ml.charts.report_curves import curve_rows
from app.ml.contract.algorithm import JSON, Vector
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

NAME = "residual over predicted"
MIN_RESIDUALS = 5
"""Residuals below which there is nothing to see."""


def draw(source: PlotSubject) -> Drawing:
    values = _residuals(source)
    x, y = number("x", "Quantile of the normal distribution"), number("y", f"Residual of {source.output}")
    line = layer({"type": "line", "style": "reference"}, y=y | {"field": "line"})
    points = layer("point", y=y, tooltip=tooltips(x="normal quantile", y="residual", lower="from", upper="to"))
    layers = [band(y), line, points]
    view = {"width": 340, "height": 300, "data": data(_rows(values)), "encoding": {"x": x}, "layer": layers}
    note = "Line: normal residuals of the same mean and deviation. Band: 95 % interval of each point."
    return Drawing(view, (f"{values.size} of {source.report.rows_test} test rows", note))


def _residuals(source: PlotSubject) -> Vector:
    return np.sort([row["y"] for row in curve_rows(source.report, NAME)])


def _rows(values: Vector) -> Iterator[dict[str, JSON]]:
    n = values.size
    i = np.arange(1, n + 1)
    mean, deviation = values.mean(), values.std(ddof=1)
    quantiles = scipy.special.ndtri((i - 0.375) / (n + 0.25))
    ends = [scipy.special.ndtri(scipy.special.betaincinv(i, n + 1 - i, tail)) for tail in (0.025, 0.975)]
    columns = quantiles, values, mean + deviation * quantiles, *(mean + deviation * end for end in ends)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield dict(zip(("x", "y", "line", "lower", "upper"), row, strict=True))


PLOT = Plot(
    title="Normal quantiles of residuals", applies=lambda source: _residuals(source).size >= MIN_RESIDUALS, draw=draw
)
