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

MOST = 30
"""Clusters in a picture."""
WIDTH, HEIGHT = 420, 400
GAP = 0.012
"""Space between two clusters, as a share of the height."""
LEAST = 0.028
"""Height of a cluster that has room for its name, as a share of the whole."""


def draw(of: PlotSubject) -> Drawing:
    sample = of.report.row_sample or RowSample(rows=[], rows_train=0)
    bars = list(_bars(sample))
    blocks = list(_blocks(bars, sample, of.subject.names))
    lowest = min(0.0, *(row["x"] for row in bars))
    x = number("x", "Silhouette", domain=(lowest - 0.02 if lowest else 0.0, 1), axis={"tickCount": 6})
    y = number("y", None, domain=(0, 1)) | {"axis": None}
    layers = [*_all_rows(of, x), *_layers(bars, blocks, x), *_mean_line(of, x), *_clusters(blocks, x)]
    view = {"width": WIDTH, "height": HEIGHT, "encoding": {"y": y}, "layer": layers}
    return Drawing(view, (_rows(bars, blocks, sample), *_means(of)))


def _rows(bars: list[dict[str, JSON]], blocks: list[dict[str, JSON]], sample: RowSample) -> str:
    shown = counted(len(blocks), len(set(sample.clusters or [])), "cluster")
    return f"{drawn_rows(len(bars), sample)}; {shown}"


def _means(of: PlotSubject) -> tuple[str, ...]:
    mean = _mean(of)
    whole = f"Dashed line: mean of all rows, {mean.display}. " if mean else ""
    return (f"{whole}Lines: mean of each cluster with its 95 % interval",)


def _bars(sample: RowSample) -> Iterator[dict[str, JSON]]:
    """Rows of the largest clusters from above, the largest silhouette first in each."""
    parts = zip(sample.rows, sample.clusters or [], sample.silhouettes or [], strict=True)
    known = [(cluster, -value, row) for row, cluster, value in parts if value is not None]
    sizes = Counter(cluster for cluster, _, _ in known)
    kept = {cluster for cluster, _ in sorted(sizes.items(), key=lambda one: (-one[1], one[0]))[:MOST]}
    shown = sorted(one for one in known if one[0] in kept)
    height = (1 - GAP * (len(kept) - 1)) / len(shown)
    places = {cluster: place for place, cluster in enumerate(sorted(kept))}
    for at, (cluster, negative, row) in zip(count(), shown):
        top = 1 - at * height - GAP * places[cluster]
        yield {"x": -negative, "y": top, "y2": top - height, "cluster": str(cluster), "row": row}


def _blocks(bars: list[dict[str, JSON]], sample: RowSample, called: Mapping[int, str]) -> Iterator[dict[str, JSON]]:
    """Places of the clusters, with their means. called: names of the clusters, by their numbers."""
    means = {metric.label: metric for metric in sample.cluster_silhouettes}
    for cluster in dict.fromkeys(row["cluster"] for row in bars):
        own, mean = [row for row in bars if row["cluster"] == cluster], means[cluster]
        top, bottom = own[0]["y"], own[-1]["y2"]
        ends = {} if mean.lower is None else {"lower": mean.lower, "upper": mean.upper}
        note = f"{short(round(mean.value or 0.0, 3))} ({len(own)})"
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
    named = {"transform": [{"filter": f"datum.y - datum.y2 >= {LEAST}"}]}
    mean = layer({"type": "rule", "style": "error"}, x=x | {"field": "value"}, y2={"field": "y2"})
    ends = {"x": x | {"field": "lower"}, "x2": {"field": "upper"}}
    span = layer({"type": "rule", "style": "error", "clip": True}, y=middle, **ends)
    mark = {"type": "text", "align": "left", "dx": 6, "style": "note"}
    note = layer(mark, y=middle, x={"value": "width"}, text={"field": "note"})
    return [{"data": data(blocks), **one} for one in (mean, span, named | name, named | note)]


def _all_rows(of: PlotSubject, x: Specification) -> list[Specification]:
    """The interval of the mean over the whole height."""
    mean = _mean(of)
    if mean is None or mean.lower is None:
        return []
    ends = {"x": x | {"field": "lower"}, "x2": {"field": "upper"}, "y": {"value": 0}, "y2": {"value": "height"}}
    band = layer({"type": "rect", "style": "band"}, **ends)
    return [{"data": data([{"lower": mean.lower, "upper": mean.upper}]), **band}]


def _mean_line(of: PlotSubject, x: Specification) -> list[Specification]:
    mean = _mean(of)
    return [] if mean is None else [upright(x, mean.value or 0.0, y={"value": 0}, y2={"value": "height"})]


def _mean(of: PlotSubject) -> Metric | None:
    return next((one for one in of.report.train if one.name == "silhouette" and one.value is not None), None)


def _applies(of: PlotSubject) -> bool:
    sample = of.report.row_sample
    return sample is not None and bool(sample.silhouettes)


PLOT = Plot(title="Silhouettes", applies=_applies, draw=draw)
