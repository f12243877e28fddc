"""Importances of columns, as the algorithm reports them, largest first, with standard errors where it has them."""

from typing import Any

from app.ml.charts.channels import BAR_STEP, category, data, distinct, number, tooltips
from app.ml.charts.layers import layer, whiskers
from app.ml.charts.numbers import counted
from app.ml.charts.summaries import entries
from app.ml.contract.algorithm import JSON
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MOST = 20
TITLES = {
    "importance": "Share of the decrease of impurity or loss",
    "increase": "Increase of the error where the column is permuted",
}


def draw(of: PlotSubject) -> Drawing:
    found = entries(of.report.summary, "importances")
    key = _key(found) or "importance"
    largest = sorted(found, key=lambda one: -one[key])[:MOST]
    names = distinct([str(one["column"]) for one in largest])
    rows = [_row(name, one, key) for name, one in zip(names, largest, strict=True)]
    x, y = number("x", TITLES[key]) | {"scale": {"zero": True}}, category("name", None, names)
    seen = tooltips(name="column", x=key, lower="less one standard error", upper="plus one standard error")
    bars = layer("bar", x=x, tooltip=seen)
    layers = [bars, whiskers("x", x, style="error")] if any("lower" in row for row in rows) else [bars]
    view = {"height": {"step": BAR_STEP}, "data": data(rows), "encoding": {"y": y}, "layer": layers}
    shown = counted(len(rows), len(found), "column")
    return Drawing(view, (shown, *(["Lines: one standard error to each side"] if len(layers) > 1 else [])))


def _key(found: list[dict[str, Any]]) -> str | None:
    return next((key for key in TITLES if found and all(isinstance(one.get(key), float | int) for one in found)), None)


def _row(name: str, one: dict[str, Any], key: str) -> dict[str, JSON]:
    value, error = one[key], one.get("standard_error")
    row: dict[str, JSON] = {"name": name, "x": value}
    return row if error is None else row | {"lower": value - error, "upper": value + error}


PLOT = Plot(
    title="Feature importances",
    applies=lambda of: _key(entries(of.report.summary, "importances")) is not None,
    draw=draw,
)
