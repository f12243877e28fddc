"""Sizes of clusters: training rows of each, with the intervals of the report."""

from app.ml.charts.channels import BAR_STEP, category, data, distinct, number, tooltips
from app.ml.charts.cluster_labels import cluster_label
from app.ml.charts.layers import layer, whiskers
from app.ml.charts.numbers import counted
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.statistics.metric_value import Metric

MOST = 30


def draw(of: PlotSubject) -> Drawing:
    found = _sizes(of)
    largest = found if len(found) <= MOST else sorted(found, key=lambda one: -(one.value or 0.0))[:MOST]
    names = distinct([cluster_label(str(one.label), of.subject.names) for one in largest])
    rows = [
        {"name": name, "x": one.value, "lower": one.lower, "upper": one.upper}
        for name, one in zip(names, largest, strict=True)
    ]
    x = number("x", "Training rows") | {"scale": {"zero": True}}
    seen = tooltips(name="cluster", x="rows", lower="from", upper="to")
    layers = [layer("bar", x=x, tooltip=seen), whiskers("x", x, style="error")]
    y = category("name", "Cluster", names)
    view = {"height": {"step": BAR_STEP}, "data": data(rows), "encoding": {"y": y}, "layer": layers}
    shown = counted(len(rows), len(found), "cluster")
    return Drawing(view, (shown, "Lines: 95 % intervals of the share of other rows, scaled to these"))


def _sizes(of: PlotSubject) -> list[Metric]:
    return [metric for metric in of.report.train if metric.name == "size" and metric.value is not None]


PLOT = Plot(title="Cluster sizes", applies=lambda of: bool(_sizes(of)), draw=draw)
