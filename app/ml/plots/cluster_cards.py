"""Profiles of clusters as parallel coordinates: means and quartiles of standardised columns, most distinguishing first.

A value is the distance from the mean of all training rows in standard deviations. Columns stand in the order of their
correlation ratio, the share of their variance that lies between the clusters.
"""

from collections.abc import Iterator

from app.ml.charts.channels import category, colour, data, distinct, number, tooltips
from app.ml.charts.cluster_labels import cluster_label
from app.ml.charts.layers import band, layer
from app.ml.charts.numbers import counted, short
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.algorithm import JSON
from app.ml.evaluation.cluster_profiles import ClusterProfiles, ProfileColumn
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MOST_COLUMNS = 10
STEP = 84
"""Pixels from one axis to the next."""
MAX_WIDTH = 640
"""Width of the axes together in pixels."""


def draw(source: PlotSubject) -> Drawing:
    profiles = source.report.cluster_profiles or ClusterProfiles(clusters=[], sizes=[], columns=[])
    columns = profiles.columns[:MOST_COLUMNS]
    names = distinct([column.name for column in columns])
    called = [cluster_label(cluster, source.subject.names) for cluster in profiles.clusters]
    drawn = {place: f"{called[place]} ({profiles.sizes[place]})" for place in _largest(profiles)}
    rows = [row for name, column in zip(names, columns, strict=True) for row in _rows(name, column, drawn)]
    x = category("name", None, names, labelAngle=-25, grid=True, labelLimit=130, labelOverlap=False)
    y = number("y", "Standard deviations from the mean", axis={"tickCount": 6})
    series = colour("series", list(drawn.values()), "cluster (rows)")
    seen = tooltips(series="cluster (rows)", name="column", value="mean", left="first quartile", right="third quartile")
    mark = {"type": "line", "point": {"size": 40, "opacity": 1}}
    layers = [band(y, color=series | {"legend": None}), layer(mark, y=y, color=series, tooltip=seen)]
    shared = {"resolve": {"legend": {"color": "independent"}}}
    width = {"step": min(STEP, MAX_WIDTH / len(names))}
    view = {"width": width, "data": data(rows), "encoding": {"x": x}, "layer": layers, **shared}
    shown = counted(len(drawn), max(len(profiles.clusters), _every(source)), "cluster")
    note = "Lines: means. Bands: the middle half of the rows of a cluster. Columns that distinguish clusters most first"
    return Drawing(view, (f"{shown}; {len(names)} numeric columns", note))


def _every(source: PlotSubject) -> int:
    return len([metric for metric in source.report.train if metric.name == "size" and metric.value])


def _largest(profiles: ClusterProfiles) -> list[int]:
    """Places of the largest clusters, as many as colours distinguish, in their order."""
    places = sorted(range(len(profiles.sizes)), key=lambda place: -profiles.sizes[place])
    return sorted(places[:CATEGORIES])


def _rows(name: str, column: ProfileColumn, drawn: dict[int, str]) -> Iterator[dict[str, JSON]]:
    parts = list(zip(column.means, column.lower_quartiles, column.upper_quartiles, strict=True))
    for place, series in drawn.items():
        mean, low, high = parts[place]
        if mean is not None and low is not None and high is not None:
            y, lower, upper = ((value - column.mean) / column.standard_deviation for value in (mean, low, high))
            units = {"value": short(mean), "left": short(low), "right": short(high)}
            yield {"name": name, "series": series, "y": y, "lower": lower, "upper": upper, **units}


def _applies(source: PlotSubject) -> bool:
    return source.report.cluster_profiles is not None and len(source.report.cluster_profiles.columns) > 1


PLOT = Plot(title="Cluster profiles", applies=_applies, draw=draw)
