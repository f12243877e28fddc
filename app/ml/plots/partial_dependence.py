"""Partial dependence: predictions as one input varies over its training range while a few rows keep the others.

Thin lines are single rows of the dataset, the golden rows of the version; the strong one is their mean.

References: Friedman (2001), Ann. Stat. 29:1189; Goldstein, Kapelner, Bleich & Pitkin (2015), J. Comput. Graph. Stat.
24:44, for the thin lines.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from app.ml.charts.channels import category, colour, data, distinct, number, tooltips
from app.ml.charts.layers import layer
from app.ml.charts.specification import Specification
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.algorithm import JSON, Matrix, Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.models.golden import golden_table
from app.ml.models.raw_rows import outputs

POINTS = 25
MOST_INPUTS, MOST_PANELS, MOST_LEVELS = 40, 9, 12
"""Inputs that are tried, panels of those that matter most, and categories of an axis."""
PANEL = 150
"""Width and height of a panel in pixels."""


class _Panel(NamedTuple):
    column: InputColumn
    values: list[Any]
    """(m,) of the axis."""
    response: Matrix
    """(m, rows, series)"""

    @property
    def reach(self) -> float:
        """Range of the mean over rows."""
        return float(np.ptp(self.response.mean(axis=1), axis=0).max())


def draw(source: PlotSubject) -> Drawing:
    base, columns = _base(source), _columns(source)
    panels = [_panel(source, base, place, column) for place, column in columns[:MOST_INPUTS]]
    largest = sorted(panels, key=lambda panel: -panel.reach)[:MOST_PANELS]
    series, names = _series(source), distinct([panel.column.name for panel in largest])
    drawn = [_drawn(panel, name, series, _domain(largest)) for panel, name in zip(largest, names, strict=True)]
    return Drawing({"concat": drawn, "columns": 3, "spacing": 24}, _subtitle(source, series, len(drawn), len(base)))


def _subtitle(source: PlotSubject, series: list[str], panels: int, rows: int) -> tuple[str, str]:
    model = source.subject.model
    single_class = f" = {series[0]}" if len(series) == 1 else ""
    predicted = f"Probability of {source.output}{single_class}" if model.classes else f"Predicted {source.output}"
    shown = f"{panels} of {len(model.inputs)} columns, largest effect first"
    lines = f"thin lines: {rows} rows, thick line: their mean" if single_class else f"means over {rows} rows"
    return f"{predicted}, as one column varies", f"{shown}; {lines}"


def _base(source: PlotSubject) -> Matrix:
    """(rows, p) raw matrix of the golden rows."""
    model = source.subject.model
    table = golden_table(model, source.golden)
    return table if isinstance(table, np.ndarray) else model.preparation.raw(table)


def _columns(source: PlotSubject) -> list[tuple[int, InputColumn]]:
    """Places of the inputs that have an axis."""
    return [(place, column) for place, column in enumerate(source.subject.model.inputs) if len(_axis(column)[0]) > 1]


def _axis(column: InputColumn) -> tuple[list[Any], Vector]:
    """Values as the table has them, and as the raw matrix has them."""
    if column.levels is not None:
        levels = column.levels[:MOST_LEVELS]
        return list(distinct(levels)), np.arange(len(levels), dtype=np.float64)
    if column.kind == ColumnKind.BOOLEAN:
        return ["false", "true"], np.array([0.0, 1.0])
    if column.kind != ColumnKind.NUMERIC or column.minimum is None or column.maximum is None:
        return [], np.zeros(0)
    values = np.unique(2 * np.linspace(column.minimum / 2, column.maximum / 2, POINTS))
    return values.tolist(), values


def _panel(source: PlotSubject, base: Matrix, place: int, column: InputColumn) -> _Panel:
    values, raw = _axis(column)
    rows = base[np.tile(np.arange(len(base)), raw.size)]
    rows[:, place] = np.repeat(raw, len(base))
    predicted = outputs(source.subject.model, rows).reshape(raw.size, len(base), -1)
    return _Panel(column, values, predicted[:, :, 1:] if _binary(source) else predicted[:, :, :CATEGORIES])


def _binary(source: PlotSubject) -> bool:
    return len(source.subject.model.classes or ()) == 2


def _series(source: PlotSubject) -> list[str]:
    labels = distinct([str(label) for label in source.subject.model.classes or (source.output,)])
    return labels[1:] if _binary(source) else labels[:CATEGORIES]


def _domain(panels: list[_Panel]) -> list[float]:
    every = [panel.response if panel.response.shape[2] == 1 else panel.response.mean(axis=1) for panel in panels]
    return [float(min(values.min() for values in every)), float(max(values.max() for values in every))]


def _drawn(panel: _Panel, name: str, series: list[str], domain: list[float]) -> Specification:
    ordered = isinstance(panel.values[0], float)
    x = (
        number("x", name, axis={"tickCount": 4})
        if ordered
        else category("x", name, panel.values, labelLimit=70, labelAngle=-40)
    )
    y = number("y", None, domain=domain, nice=True, axis={"tickCount": 5})
    seen = tooltips(x=name, y="prediction", series="series")
    mark = {"type": "line", "strokeWidth": 2.5, "point": False if ordered else {"size": 40, "opacity": 1}}
    mean = {"data": data(_means(panel, series)), **layer(mark, y=y, color=colour("series", series), tooltip=seen)}
    thin = {"data": data(_each(panel)), **layer({"type": "line", "style": "faint"}, y=y, detail={"field": "row"})}
    layers = [thin, mean] if len(series) == 1 else [mean]
    return {"width": PANEL, "height": PANEL, "encoding": {"x": x}, "layer": layers}


def _each(panel: _Panel) -> Iterator[dict[str, JSON]]:
    for value, responses in zip(panel.values, panel.response[:, :, 0].tolist(), strict=True):
        yield from ({"x": value, "y": y, "row": row} for row, y in enumerate(responses))


def _means(panel: _Panel, series: list[str]) -> Iterator[dict[str, JSON]]:
    for value, means in zip(panel.values, panel.response.mean(axis=1).tolist(), strict=True):
        yield from ({"x": value, "y": y, "series": name} for name, y in zip(series, means, strict=True))


def _applies(source: PlotSubject) -> bool:
    return source.subject.model.task.supervised and bool(source.golden["data"]) and bool(_columns(source))


PLOT = Plot(title="Partial dependence", applies=_applies, draw=draw)
