"""Confusion matrix: counts of test rows by true and predicted class, coloured by the share of the true class."""

from collections.abc import Iterator

from app.ml.charts.channels import category, data, distinct, tooltips
from app.ml.charts.layers import labels, layer
from app.ml.contract.algorithm import JSON
from app.ml.evaluation.confusion_matrix import ConfusionMatrix
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MOST_CLASSES = 20
"""Classes drawn: of more, the most frequent ones."""
CELL, MAX_SIDE = 30, 320
"""Side of a cell of many classes, and of the square that few classes fill, in pixels."""


def draw(source: PlotSubject) -> Drawing:
    matrix = _matrix(source)
    shown_codes, called = _kept(matrix), distinct([str(label) for label in matrix.classes])
    names = [called[code] for code in shown_codes]
    base = {
        "x": category("assigned", f"Predicted {source.output}", names, labelAngle=-35 if _long(names) else 0),
        "y": category("truth", f"True {source.output}", names),
    }
    share = {"field": "share", "type": "quantitative", "scale": {"domain": [0, 1], "range": "ramp"}, "legend": None}
    seen = tooltips(truth="true", assigned="predicted", count="rows", share="share of the true class")
    cells = layer("rect", color=share, tooltip=seen)
    counts = [labels("count", "on_weak", "datum.share <= 0.5"), labels("count", "on_strong", "datum.share > 0.5")]
    side = max(MAX_SIDE, CELL * len(shown_codes)) if len(shown_codes) > 4 else 56 * max(3, len(shown_codes))
    view = {
        "width": side,
        "height": side,
        "data": data(_rows(matrix, shown_codes, called)),
        "encoding": base,
        "layer": [cells, *counts],
    }
    shown = (
        "" if len(shown_codes) == len(called) else f"; the {len(shown_codes)} most frequent of {len(called)} classes"
    )
    return Drawing(view, (f"{source.report.rows_test} test rows{shown}", "Colour: share of the rows of the true class"))


def _matrix(source: PlotSubject) -> ConfusionMatrix:
    matrix = source.report.confusion_matrix
    if matrix is None:
        raise ValueError("The report has no confusion matrix.")
    return matrix


def _kept(matrix: ConfusionMatrix) -> list[int]:
    totals = [sum(row) for row in matrix.counts]
    return sorted(sorted(range(len(totals)), key=lambda code: -totals[code])[:MOST_CLASSES])


def _long(names: list[str]) -> bool:
    return max(map(len, names), default=0) * 7 > max(CELL, MAX_SIDE / max(1, len(names)))


def _rows(matrix: ConfusionMatrix, shown_codes: list[int], names: list[str]) -> Iterator[dict[str, JSON]]:
    for truth in shown_codes:
        total = sum(matrix.counts[truth])
        for assigned in shown_codes:
            count = matrix.counts[truth][assigned]
            share = count / total if total else 0.0
            yield {"truth": names[truth], "assigned": names[assigned], "count": count, "share": share}


PLOT = Plot(
    title="Confusion matrix",
    applies=lambda source: source.report.confusion_matrix is not None and source.report.rows_test > 0,
    draw=draw,
)
