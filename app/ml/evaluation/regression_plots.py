"""Points that show at a glance whether a regression is any good (LION 5.1)."""

from collections.abc import Callable, Iterator

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.evaluation.report import ReportCurve
from app.ml.evaluation.splits import evenly
from app.ml.preparation.preparation import Preparation

POINTS = 200


def over_predictions(truth: Vector, predicted: Vector) -> list[ReportCurve]:
    """Targets (n,) and residuals over predictions; of many rows, a sample."""
    shown_rows = evenly(truth.size, POINTS)
    x, y = predicted[shown_rows], truth[shown_rows]
    if not np.isfinite(x).all():
        return []
    return [
        ReportCurve(name="observed over predicted", x=x.tolist(), y=y.tolist()),
        ReportCurve(name="residual over predicted", x=x.tolist(), y=(y - x).tolist()),
    ]


def over_input(
    preparation: Preparation, predict: Callable[[Matrix], Vector], values: Vector, truth: Vector
) -> Iterator[ReportCurve]:
    """Curve of a model with one input, a number: its predictions over the training range, and rows.

    values: (n,) of the input, NaN where missing. truth: (n,) their targets.
    """
    (column,) = preparation.inputs
    if column.kind != ColumnKind.NUMERIC or column.minimum is None or column.maximum is None:
        return
    x = 2 * np.linspace(column.minimum / 2, column.maximum / 2, POINTS)  # the range itself may be too large a number
    y = predict(preparation.matrix(x[:, None]))
    if np.isfinite(y).all():
        yield ReportCurve(name="fit", x=x.tolist(), y=y.tolist())
    there = np.flatnonzero(~np.isnan(values))
    shown_rows = there[evenly(there.size, POINTS)]
    yield ReportCurve(name="observed", x=values[shown_rows].tolist(), y=truth[shown_rows].tolist())
