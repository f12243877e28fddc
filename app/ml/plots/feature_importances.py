"""Importances of columns, as the algorithm reports them, largest first, with standard errors where it has them."""

from typing import Any

from app.ml.charts.channels import BAR_STEP, category, data, distinct, number, tooltips
from app.ml.charts.layers import layer, whiskers
from app.ml.charts.numbers import counted
from app.ml.charts.summaries import entries
from app.ml.contract.algorithm import JSON
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MAX_COLUMNS = 20
TITLES = {
    "importance": "Share of the decrease of impurity or loss",
    "increase": "Increase of the error where the column is permuted",
}


def draw(source: PlotSubject) -> Drawing:
    importances = entries(source.report.summary, "importances")
    key = _key(importances) or "importance"
    largest = sorted(importances, key=lambda importance: -importance[key])[:MAX_COLUMNS]
    names = distinct([str(importance["column"]) for importance in largest])
    rows = [_row(name, importance, key) for name, importance in zip(names, largest, strict=True)]
    x, y = number("x", TITLES[key]) | {"scale": {"zero": True}}, category("name", None, names)
    seen = tooltips(name="column", x=key, lower="less one standard error", upper="plus one standard error")
    bars = layer("bar", x=x, tooltip=seen)
    layers = [bars, whiskers("x", x, style="error")] if any("lower" in row for row in rows) else [bars]
    view = {"height": {"step": BAR_STEP}, "data": data(rows), "encoding": {"y": y}, "layer": layers}
    shown = counted(len(rows), len(importances), "column")
    return Drawing(view, (shown, *(["Lines: one standard error to each side"] if len(layers) > 1 else [])))


def _key(importances: list[dict[str, Any]]) -> str | None:
    return next(
        (
            key
            for key in TITLES
            if importances and all(isinstance(importance.get(key), float | int) for importance in importances)
        ),
        None,
    )


def _row(name: str, importance: dict[str, Any], key: str) -> dict[str, JSON]:
    value, error = importance[key], importance.get("standard_error")
    row: dict[str, JSON] = {"name": name, "x": value}
    return row if error is None else row | {"lower": value - error, "upper": value + error}


PLOT = Plot(
    title="Feature importances",
    applies=lambda source: _key(entries(source.report.summary, "importances")) is not None,
    draw=draw,
)
