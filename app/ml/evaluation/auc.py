"""AUC: areas under ROC and precision-recall curves with their intervals, each class against the rest."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.labels import Class
from app.ml.evaluation import precision_recall, roc
from app.ml.evaluation.precision_recall import average_precision
from app.ml.evaluation.report import ReportCurve
from app.ml.evaluation.roc import Steps, placements, steps
from app.ml.statistics.metric_value import Metric, by_student_t, macro, metric
from app.ml.statistics.resampling import Rows, StandardError

MANY_CLASSES = 50
"""Beyond, areas are null: each class costs a sort of all rows."""
FEW_CLASSES = 10
"""Beyond, curves are not drawn."""


class Area(NamedTuple):
    value: float
    error: StandardError


class _Against(NamedTuple):
    """One class against the rest, both of which have rows."""

    code: int
    roc: Area
    precision: Area
    fewest: int
    """Rows of the class or of the rest, whichever are fewer; of weighted rows, as many of equal weight."""


def areas(truth: Labels, probabilities: Matrix, classes: Sequence[Class], rows: Rows) -> list[Metric]:
    """`roc_auc` and `pr_auc`: of two classes of the second, else means over classes; then `pr_auc` of each class."""
    n, k = probabilities.shape
    against, slopes = list[_Against](), np.zeros((2, n))
    for code in range(k if 2 <= k <= MANY_CLASSES else 0):
        positive = truth == code
        if rows.total(positive * 1.0) > 0 and rows.total(~positive * 1.0) > 0:
            result, pulls = _against(code, steps(probabilities[:, code], positive, rows.weights), rows)
            against.append(result)
            slopes += pulls
    if not against:
        nothing = [metric(name, np.nan, None, "", n=n, label=None) for name in ("roc_auc", "pr_auc")]
        return nothing if k == 2 else [*map(macro, nothing)]
    each = [_metric("pr_auc", area.precision, area, n, str(classes[area.code])) for area in against]
    if k == 2:
        note = {"label": None, "note": f"The positive class is {classes[1]}."}
        return [_metric("roc_auc", against[1].roc, against[1], n), each[1].model_copy(update=note), *each]
    mean = _Against(
        code=-1,
        roc=Area(float(np.mean([area.roc.value for area in against])), rows.standard_error(slopes[0] / len(against))),
        precision=Area(
            float(np.mean([area.precision.value for area in against])), rows.standard_error(slopes[1] / len(against))
        ),
        fewest=min(area.fewest for area in against),
    )
    return [macro(_metric("roc_auc", mean.roc, mean, n)), macro(_metric("pr_auc", mean.precision, mean, n)), *each]


def _metric(name: str, area: Area, against: _Against, n: int, label: str | None = None) -> Metric:
    error, freedom = area.error
    freedom = max(freedom, against.fewest - 1)
    return by_student_t(name, area.value, error, n, label, trials=against.fewest, freedom=freedom)


def curves(
    truth: Labels, probabilities: Matrix, classes: Sequence[Class], weights: Vector | None = None
) -> list[ReportCurve]:
    """ROC and precision-recall curve of the second of two classes, or of each of a few classes against the rest."""
    k, drawn = probabilities.shape[1], list[ReportCurve]()
    for code in range(k == 2, k if 2 <= k <= FEW_CLASSES else 0):
        ranked, suffix = steps(probabilities[:, code], truth == code, weights), "" if k == 2 else f" {classes[code]}"
        for name, (x, y) in {"roc": roc.curve(ranked), "precision_recall": precision_recall.curve(ranked)}.items():
            drawn += [ReportCurve(name=name + suffix, x=x.tolist(), y=y.tolist())] if x.size else []
    return drawn


def _against(code: int, ranked: Steps, rows: Rows) -> tuple[_Against, Matrix]:
    """With the derivatives (2, n) of its areas, ROC and average precision, with respect to the weights of rows.

    The area under the ROC curve is the mean placement of the positives, and that of the negatives (DeLong 1988).
    """
    place, kinds = placements(ranked), (ranked.positive, ~ranked.positive)
    ones = [side.astype(np.float64) for side in kinds]
    sizes = [rows.total(each) for each in ones]
    roc = rows.total(place * ones[0]) / sizes[0]
    precision, fewest = average_precision(ranked), min(map(rows.worth, kinds))
    slopes = np.stack([(place - roc) / np.where(ranked.positive, *sizes), precision.slopes])
    errors = [rows.standard_error(each) for each in slopes]
    return _Against(code, Area(roc, errors[0]), Area(precision.value, errors[1]), fewest), slopes
