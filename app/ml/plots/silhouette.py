"""Silhouette plot of a clustering: a bar for each row, sorted within its cluster, with the means of all clusters.

A row with a negative silhouette is nearer to another cluster than to its own.

Reference: Rousseeuw (1987), J. Comput. Appl. Math. 20:53.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count

from app.ml.charts.channels import colour, data, number, tooltips
from app.ml.charts.cluster_labels import cluster_label
from app.ml.charts.layers import layer, upright
from app.ml.charts.numbers import counted, short
from app.ml.charts.row_groups import drawn_rows
from app.ml.charts.specification import Specification
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.algorithm import JSON
from app.ml.evaluation.row_sample import RowSample
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.statistics.metric_value import Metric

MAX_CLUSTERS = 30
"""Clusters in a picture."""
WIDTH, HEIGHT = 420, 400
GAP = 0.012
"""Space between two clusters, as a share of the height."""
MIN_NAMED_HEIGHT = 0.028
"""Height of a cluster that has room for its name, as a share of the whole."""


def draw(source: PlotSubject) -> Drawing:
    sample = source.report.row_sample or RowSample(rows=[], rows_train=0)
    bars = list(_bars(sample))
    blocks = list(_blocks(bars, sample, source.subject.names))
    lowest = min(0.0, *(row["x"] for row in bars))
    x = number("x", "Silhouette", domain=(lowest - 0.02 if lowest else 0.0, 1), axis={"tickCount": 6})
    y = number("y", None, domain=(0, 1)) | {"axis": None}
    layers = [*_all_rows(source, x), *_layers(bars, blocks, x), *_mean_line(source, x), *_clusters(blocks, x)]
    view = {"width": WIDTH, "height": HEIGHT, "encoding": {"y": y}, "layer": layers}
    return Drawing(view, (_rows(bars, blocks, sample), *_means(source)))


def _rows(bars: list[dict[str, JSON]], blocks: list[dict[str, JSON]], sample: RowSample) -> str:
    shown = counted(len(blocks), len(set(sample.clusters or [])), "cluster")
    return f"{drawn_rows(len(bars), sample)}; {shown}"


def _means(source: PlotSubject) -> tuple[str, ...]:
    mean = _mean(source)
    whole = f"Dashed line: mean of all rows, {mean.display}. " if mean else ""
    return (f"{whole}Lines: mean of each cluster with its 95 % interval",)


def _bars(sample: RowSample) -> Iterator[dict[str, JSON]]:
    """Rows of the largest clusters from above, the largest silhouette first in each."""
    parts = zip(sample.rows, sample.clusters or [], sample.silhouettes or [], strict=True)
    measured = [(cluster, -value, row) for row, cluster, value in parts if value is not None]
    sizes = Counter(cluster for cluster, _, _ in measured)
    shown_clusters = {
        cluster for cluster, _ in sorted(sizes.items(), key=lambda size: (-size[1], size[0]))[:MAX_CLUSTERS]
    }
    shown = sorted(bar for bar in measured if bar[0] in shown_clusters)
    height = (1 - GAP * (len(shown_clusters) - 1)) / len(shown)
    places = {cluster: place for place, cluster in enumerate(sorted(shown_clusters))}
    for place, (cluster, negative, row) in zip(count(), shown):
        top = 1 - place * height - GAP * places[cluster]
        yield {"x": -negative, "y": top, "y2": top - height, "cluster": str(cluster), "row": row}


def _blocks(bars: list[dict[str, JSON]], sample: RowSample, called: Mapping[int, str]) -> Iterator[dict[str, JSON]]:
    """Places of the clusters, with their means. called: names of the clusters, by their numbers."""
    means = {metric.label: metric for metric in sample.cluster_silhouettes}
    for cluster in dict.fromkeys(row["cluster"] for row in bars):
        cluster_bars, mean = [row for row in bars if row["cluster"] == cluster], means[cluster]
        top, bottom = cluster_bars[0]["y"], cluster_bars[-1]["y2"]
        ends = {} if mean.lower is None else {"lower": mean.lower, "upper": mean.upper}
        note = f"{short(round(mean.value or 0.0, 3))} ({len(cluster_bars)})"
        shown = {"label": cluster_label(cluster, called), "note": note, "value": mean.value}
        yield {"y": top, "y2": bottom, "place": (top + bottom) / 2, "cluster": cluster, **shown, **ends}


def _layers(bars: list[dict[str, JSON]], blocks: list[dict[str, JSON]], x: Specification) -> list[Specification]:
    names = [block["cluster"] for block in blocks]
    shade = {"color": colour("cluster", names) | {"legend": None}} if len(names) <= CATEGORIES else {}
    seen = tooltips(row="row", cluster="cluster", x="silhouette")
    mark = {"type": "bar", "opacity": 0.75}
    return [{"data": data(bars), **layer(mark, x=x, x2={"datum": 0}, y2={"field": "y2"}, tooltip=seen, **shade)}]


def _clusters(blocks: list[dict[str, JSON]], x: Specification) -> list[Specification]:
    """Names of the clusters on the left, and their means over the bars."""
    middle = {"field": "place", "type": "quantitative"}
    name = layer({"type": "text", "align": "right", "dx": -6}, y=middle, x={"value": 0}, text={"field": "label"})
    named = {"transform": [{"filter": f"datum.y - datum.y2 >= {MIN_NAMED_HEIGHT}"}]}
    mean = layer({"type": "rule", "style": "error"}, x=x | {"field": "value"}, y2={"field": "y2"})
    ends = {"x": x | {"field": "lower"}, "x2": {"field": "upper"}}
    span = layer({"type": "rule", "style": "error", "clip": True}, y=middle, **ends)
    mark = {"type": "text", "align": "left", "dx": 6, "style": "note"}
    note = layer(mark, y=middle, x={"value": "width"}, text={"field": "note"})
    return [{"data": data(blocks), **mark} for mark in (mean, span, named | name, named | note)]


def _all_rows(source: PlotSubject, x: Specification) -> list[Specification]:
    """The interval of the mean over the whole height."""
    mean = _mean(source)
    if mean is None or mean.lower is None:
        return []
    ends = {"x": x | {"field": "lower"}, "x2": {"field": "upper"}, "y": {"value": 0}, "y2": {"value": "height"}}
    band = layer({"type": "rect", "style": "band"}, **ends)
    return [{"data": data([{"lower": mean.lower, "upper": mean.upper}]), **band}]


def _mean_line(source: PlotSubject, x: Specification) -> list[Specification]:
    mean = _mean(source)
    return [] if mean is None else [upright(x, mean.value or 0.0, y={"value": 0}, y2={"value": "height"})]


def _mean(source: PlotSubject) -> Metric | None:
    return next(
        (metric for metric in source.report.train if metric.name == "silhouette" and metric.value is not None), None
    )


def _applies(source: PlotSubject) -> bool:
    sample = source.report.row_sample
    return sample is not None and bool(sample.silhouettes)


PLOT = Plot(title="Silhouettes", applies=_applies, draw=draw)
