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
from app.ml.statistics.intervals import ratio
from app.ml.statistics.metric_value import Metric, bootstrapped, by_logit, macro, metric
from app.ml.statistics.resampling import Rows

MANY_CLASSES = 50
"""Beyond, areas are null: each class costs a sort of all rows."""
FEW_CLASSES = 10
"""Beyond, curves are not drawn."""


class _Against(NamedTuple):
    """One class against the rest, both of which have rows."""

    code: int
    area: float
    drawn: Vector
    """(draws,) the area in each draw."""
    precision: float
    error: float
    """Standard error of the average precision."""
    fewest: int
    """Rows of the class or of the rest, whichever are fewer; of weighted rows, as many of equal weight."""


def areas(truth: Labels, probabilities: Matrix, classes: Sequence[Class], rows: Rows) -> list[Metric]:
    """`roc_auc` and `pr_auc`: of two classes of the second, else means over classes; then `pr_auc` of each class."""
    n, k = probabilities.shape
    found, slopes = list[_Against](), np.zeros(n)
    for code in range(k if 2 <= k <= MANY_CLASSES else 0):
        positive = truth == code
        if rows.total(positive * 1.0) > 0 and rows.total(~positive * 1.0) > 0:
            one, own = _against(code, steps(probabilities[:, code], positive, rows.weights), rows)
            found.append(one)
            slopes += own
    each = [by_logit("pr_auc", one.precision, one.error, n, str(classes[one.code]), trials=one.fewest) for one in found]
    if not found:
        nothing = [metric(name, np.nan, None, "", n=n, label=None) for name in ("roc_auc", "pr_auc")]
        return nothing if k == 2 else [*map(macro, nothing)]
    if k == 2:
        note = {"label": None, "note": f"The positive class is {classes[1]}."}
        return [_roc_auc(found[1:], n), each[1].model_copy(update=note), *each]
    value, error = float(np.mean([one.precision for one in found])), rows.standard_error(slopes / len(found))
    mean = by_logit("pr_auc", value, error, n, trials=min(one.fewest for one in found))
    return [macro(_roc_auc(found, n)), macro(mean), *each]


def curves(
    truth: Labels, probabilities: Matrix, classes: Sequence[Class], weights: Vector | None = None
) -> list[ReportCurve]:
    """ROC and precision-recall curve of the second of two classes, or of each of a few classes against the rest."""
    k, drawn = probabilities.shape[1], list[ReportCurve]()
    for code in range(k == 2, k if 2 <= k <= FEW_CLASSES else 0):
        ranked, of = steps(probabilities[:, code], truth == code, weights), "" if k == 2 else f" {classes[code]}"
        for name, (x, y) in {"roc": roc.curve(ranked), "precision_recall": precision_recall.curve(ranked)}.items():
            drawn += [ReportCurve(name=name + of, x=x.tolist(), y=y.tolist())] if x.size else []
    return drawn


def _against(code: int, ranked: Steps, rows: Rows) -> tuple[_Against, Vector]:
    """With the derivatives (n,) of its average precision with respect to the weights of rows.

    The area under the ROC curve is exact. Its replicates are first-order terms of the resampled area (the mean
    placement of positives plus that of negatives minus the area), which are sums over rows like everything else.
    """
    place, kinds = placements(ranked), [side.astype(np.float64) for side in (ranked.positive, ~ranked.positive)]
    area = float(ratio(rows.total(place * kinds[0]), rows.total(kinds[0])))
    sides = [ratio(rows.sums(place * kind), rows.sums(kind)) for kind in kinds]
    precision, fewest = average_precision(ranked), min(rows.worth(kind > 0) for kind in kinds)
    error = rows.standard_error(precision.slopes)
    return _Against(code, area, sides[0] + sides[1] - area, precision.value, error, fewest), precision.slopes


def _roc_auc(found: Sequence[_Against], n: int) -> Metric:
    drawn = np.stack([one.drawn for one in found], axis=-1)
    defined = np.isfinite(drawn).sum(axis=-1)
    means = ratio(np.nansum(drawn, axis=-1), defined)
    area, fewest = float(np.mean([one.area for one in found])), min(one.fewest for one in found)
    return bootstrapped("roc_auc", area, means, n, trials=fewest)
