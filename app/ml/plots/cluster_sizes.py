"""Sizes of clusters: training rows of each, with the intervals of the report."""

from app.ml.charts.channels import BAR_STEP, category, data, distinct, number, tooltips
from app.ml.charts.cluster_labels import cluster_label
from app.ml.charts.layers import layer, whiskers
from app.ml.charts.numbers import counted
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.statistics.metric_value import Metric

MAX_CLUSTERS = 30


def draw(source: PlotSubject) -> Drawing:
    sizes = _sizes(source)
    largest = (
        sizes if len(sizes) <= MAX_CLUSTERS else sorted(sizes, key=lambda size: -(size.value or 0.0))[:MAX_CLUSTERS]
    )
    names = distinct([cluster_label(str(size.label), source.subject.names) for size in largest])
    rows = [
        {"name": name, "x": size.value, "lower": size.lower, "upper": size.upper}
        for name, size in zip(names, largest, strict=True)
    ]
    x = number("x", "Training rows") | {"scale": {"zero": True}}
    seen = tooltips(name="cluster", x="rows", lower="from", upper="to")
    layers = [layer("bar", x=x, tooltip=seen), whiskers("x", x, style="error")]
    y = category("name", "Cluster", names)
    view = {"height": {"step": BAR_STEP}, "data": data(rows), "encoding": {"y": y}, "layer": layers}
    shown = counted(len(rows), len(sizes), "cluster")
    return Drawing(view, (shown, "Lines: 95 % intervals of the share of other rows, scaled to these"))


def _sizes(source: PlotSubject) -> list[Metric]:
    return [metric for metric in source.report.train if metric.name == "size" and metric.value is not None]


PLOT = Plot(title="Cluster sizes", applies=lambda source: bool(_sizes(source)), draw=draw)
