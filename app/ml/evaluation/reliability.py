"""Reliability of probabilities: observed shares of classes beside predicted ones, bin by bin, with error bars."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.labels import Class
from app.ml.evaluation.metrics import losses
from app.ml.evaluation.reliability_curve import ClassReliability, ReliabilityBin
from app.ml.statistics.calibration_error import Gaps, calibration_error
from app.ml.statistics.intervals import CONFIDENCE
from app.ml.statistics.metric_value import Metric
from app.ml.statistics.resampling import Rows

MOST_CLASSES = 10
"""Classes of which a report has curves: those with the most rows."""
Strategy: TypeAlias = Literal["uniform", "quantile"]


class Reliability(Wire):
    """Quality of predicted probabilities on rows."""

    metrics: list[Metric] = Field(
        description="Expected calibration error, log loss and Brier score. Of two classes the error is that of the "
        "second, of more the mean over the classes."
    )
    curves: list[ClassReliability] = Field(
        description="Reliability curve of the second of two classes, or of each of more."
    )


class Bins(NamedTuple):
    """Division of probabilities into bins, and the confidence level of the shares in them."""

    n_bins: int = 10
    strategy: Strategy = "uniform"
    confidence: float = CONFIDENCE

    def edges(self, p: Vector) -> Vector:
        """(b + 1,) ascending."""
        even = np.linspace(0, 1, self.n_bins + 1)
        return even if self.strategy == "uniform" else np.unique(np.quantile(p, even))


def reliability(
    truth: Labels,
    probabilities: Matrix,
    classes: Sequence[Class],
    counted: Rows,
    bins: Bins,
) -> Reliability:
    """Reliability of probabilities (n, k) of rows whose classes have the codes `truth` (n,). counted: how much each
    counts.
    """
    curves, gaps = [], []
    for code in _measured(len(classes)):
        curve, class_gaps = _curve(truth == code, probabilities[:, code], classes[code], counted, bins)
        curves.append(curve)
        gaps.append(class_gaps)
    error = calibration_error(gaps, truth.size, confidence=bins.confidence)
    others = losses(truth, probabilities, counted.draws, counted.weights, confidence=bins.confidence)
    return Reliability(metrics=[error, *others], curves=curves)


def class_reliability(
    truth: Labels, probabilities: Matrix, classes: Sequence[Class], counted: Rows, bins: Bins
) -> list[ClassReliability]:
    """Curves of each class against the rest; of many classes those of the most frequent, in their order."""
    counts = np.bincount(truth, minlength=len(classes))
    codes = sorted(_measured(len(classes)), key=lambda code: -counts[code])[:MOST_CLASSES]
    return [
        _curve(truth == code, probabilities[:, code], classes[code], counted, bins)[0]
        for code in sorted(codes)
        if counts[code]
    ]


def _measured(classes: int) -> range:
    """Class codes with a curve: the second of two, for the first is its mirror image."""
    return range(1, 2) if classes == 2 else range(classes)


def _curve(
    inside: NDArray[np.bool_], p: Vector, label: Class, counted: Rows, bins: Bins
) -> tuple[ClassReliability, Gaps]:
    edges = bins.edges(p)
    count = max(1, edges.size - 1)
    codes = np.searchsorted(edges[1:-1], p)
    gaps = Gaps.of(inside - p, codes, count, counted)
    part, whole = counted.tally(np.where(inside, codes, -1), count), counted.tally(codes, count)
    sums = np.bincount(codes, p if counted.weights is None else counted.weights * p, count)
    curve = ClassReliability(
        label=label,
        expected_calibration_error=calibration_error([gaps], p.size, str(label), bins.confidence),
        bins=[
            ReliabilityBin(
                lower_edge=float(edges[b]),
                upper_edge=float(edges[min(b + 1, edges.size - 1)]),
                rows=int(whole.rows[b]),
                mean_probability=float(sums[b] / whole.total[b]),
                observed_share=counted.share("observed_share", part, whole, b, str(label), confidence=bins.confidence),
            )
            for b in np.flatnonzero(whole.rows).tolist()
        ],
    )
    return curve, gaps
