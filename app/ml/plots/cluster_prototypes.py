"""Prototypes of clusters as parallel coordinates: one line for each cluster, one axis for each numeric column.

Each axis runs from the smallest to the largest training value of its column.
"""

from app.ml.charts.channels import category, colour, data, distinct, number, tooltips
from app.ml.charts.cluster_labels import cluster_label
from app.ml.charts.numbers import short
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.algorithm import JSON
from app.ml.contract.columns import InputColumn
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MOST_COLUMNS = 12
STEP = 92
"""Pixels from one axis to the next."""


def draw(source: PlotSubject) -> Drawing:
    columns, prototypes = _columns(source)[:MOST_COLUMNS], (source.report.prototypes or [])[:CATEGORIES]
    names = distinct([column.name for column in columns])
    clusters = [cluster_label(i, source.subject.names) for i in range(len(prototypes))]
    rows = [
        {"cluster": cluster, "name": name, "y": _place(column, value), "value": short(value)}
        for cluster, prototype in zip(clusters, prototypes, strict=True)
        for name, column in zip(names, columns, strict=True)
        if isinstance(value := prototype.values[column.name], float | int)
    ]
    x = category("name", None, names, labelAngle=-25, grid=True, labelLimit=110, labelOverlap=False)
    y = number("y", "Between smallest and largest value", domain=(0, 1), axis={"format": "~%", "grid": False})
    encoding = {
        "x": x,
        "y": y,
        "color": colour("cluster", clusters, "cluster"),
        "tooltip": tooltips(cluster="cluster", name="column", value="value"),
    }
    mark = {"type": "line", "point": {"size": 40, "opacity": 1}}
    view = {"width": {"step": STEP}, "data": data(rows), "mark": mark, "encoding": encoding}
    return Drawing(view, (_parts(source, len(columns), len(prototypes)),))


def _parts(source: PlotSubject, columns: int, clusters: int) -> str:
    inputs, every = len(source.subject.model.inputs), len(source.report.prototypes or [])
    first = f"{columns} of {inputs} columns" if columns < inputs else f"{columns} columns"
    return f"{first}; the first {clusters} of {every} clusters" if clusters < every else f"{first}; {every} clusters"


def _place(column: InputColumn, value: float) -> JSON:
    low, high = column.minimum or 0.0, column.maximum or 0.0
    return (value - low) / (high - low) if high > low else 0.5


def _columns(source: PlotSubject) -> list[InputColumn]:
    """Numeric inputs with a training range, of which prototypes have values."""
    prototypes = source.report.prototypes or []
    inputs = [
        column for column in source.subject.model.inputs if column.minimum is not None and column.maximum is not None
    ]
    return [
        column for column in inputs if any(isinstance(row.values.get(column.name), float | int) for row in prototypes)
    ]


PLOT = Plot(title="Cluster prototypes", applies=lambda source: len(_columns(source)) > 1, draw=draw)
