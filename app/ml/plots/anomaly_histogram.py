"""Histogram of the log density of training rows, with the threshold below which a row is an anomaly."""

import math

import numpy as np

from app.ml.charts.channels import colour, data, number, tooltips
from app.ml.charts.layers import layer, upright
from app.ml.charts.numbers import short
from app.ml.charts.row_groups import drawn_rows
from app.ml.charts.summaries import part
from app.ml.contract.algorithm import JSON, Vector
from app.ml.evaluation.row_sample import RowSample, written
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

BINS = 30
"""Bins between the ends of the picture."""
REACH = 6.0
"""Interquartile ranges below the first quartile at which the picture ends: rows beyond are in the first bin."""
ANOMALIES, OTHERS = "below the threshold", "other rows"
X = "Log density"


def draw(source: PlotSubject) -> Drawing:
    sample, values, threshold = _sample(source), _values(source), _threshold(source)
    edges, beyond = _edges(values, threshold)
    bars = _bars(np.maximum(values, edges[0]), edges, threshold)
    x = number("x", X, domain=(float(edges[0]), float(edges[-1])))
    y = number("y", "Training rows") | {"scale": {"zero": True}}
    seen = tooltips(x="from", x2="to", y="rows", series="side of the threshold")
    kinds = [OTHERS, ANOMALIES] if threshold is not None else [OTHERS]
    mark = {"type": "bar", "binSpacing": 1}
    shade = colour("series", kinds)
    bar = layer(mark, x=x | {"bin": {"binned": True}}, x2={"field": "x2"}, y=y, color=shade, tooltip=seen)
    layers = [{"data": data(bars), **bar}]
    layers += [] if threshold is None else [upright(x, threshold)]
    below = _below(values, threshold)
    first = f"First bin: all {beyond} rows of a lower density" if beyond else ""
    return Drawing({"layer": layers}, tuple(filter(None, (f"{drawn_rows(values.size, sample)}{below}", first))))


def _below(values: Vector, threshold: float | None) -> str:
    if threshold is None:
        return "; the model has no threshold"
    return f"; {int((values < threshold).sum())} below the threshold of {short(threshold)}"


def _edges(values: Vector, threshold: float | None) -> tuple[Vector, int]:
    """Edges of the bins, one of them the threshold, and the number of rows in the first that lie below it."""
    first, third = np.quantile(values, [0.25, 0.75])
    lowest, high = float(values.min()), float(values.max())
    low = max(lowest, float(first - REACH * (third - first)))
    middle = low if threshold is None else threshold
    low, high = min(low, middle), max(high, middle)
    width = (high - low) / BINS or max(1.0, abs(low)) / BINS
    left, right = math.ceil((middle - low) / width), math.floor((high - middle) / width) + 1
    edges = np.asarray(middle + width * np.arange(-left, right + 1), np.float64)
    return edges, int((values < edges[0]).sum())


def _bars(values: Vector, edges: Vector, threshold: float | None) -> list[dict[str, JSON]]:
    counts = np.histogram(values, edges)[0].tolist()
    lows, highs = edges[:-1].tolist(), edges[1:].tolist()
    below = 0 if threshold is None else int(np.count_nonzero(edges[1:] <= threshold))
    sides = [ANOMALIES] * below + [OTHERS] * (len(counts) - below)
    return [
        {"x": low, "x2": high, "y": rows, "series": side}
        for low, high, rows, side in zip(lows, highs, counts, sides, strict=True)
    ]


def _sample(source: PlotSubject) -> RowSample:
    return source.report.row_sample or RowSample(rows=[], rows_train=0)


def _values(source: PlotSubject) -> Vector:
    return np.array([value for value in _sample(source).log_densities or [] if value is not None], np.float64)


def _threshold(source: PlotSubject) -> float | None:
    """Threshold in the digits of the values, so that the row that set it is not below it."""
    threshold = part(source.report.summary, "threshold")
    return written(np.array([threshold]))[0] if isinstance(threshold, float | int) else None


PLOT = Plot(title="Log density and anomalies", applies=lambda source: _values(source).size > 0, draw=draw)
