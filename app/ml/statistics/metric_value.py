"""A measured metric as it is reported: value, error bar, and the digits that the error bar lets stand."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Vector
from app.ml.contract.response_metric import MetricName
from app.ml.contract.task import PredictionKind
from app.ml.statistics.intervals import (
    CONFIDENCE,
    RESAMPLES,
    Bounds,
    accelerated,
    clopper_pearson,
    logit_student_t,
    percentile,
    student_t,
)


class Metric(Wire):
    """One measured number with its error bar."""

    name: str = Field(description="Name of the metric.")
    average: Literal["macro"] | None = Field(
        None,
        description="Average of the metric over several classes: `macro` is the unweighted mean over the classes "
        "for which it is defined. Null: the metric is of one class, or of all rows at once.",
    )
    value: float | None = Field(
        description="Value of the metric; null where it is undefined (0/0), or where `note` gives another reason."
    )
    lower: float | None = Field(None, description="Lower end of the interval; null where there is none.")
    upper: float | None = Field(None, description="Upper end of the interval; null where there is none.")
    confidence: float = Field(0.95, description="Confidence level of the interval, from 0 to 1.")
    interval: str | None = Field(
        None,
        description="Method of the bounds: clopper-pearson (exact: covers at least its confidence), "
        "clopper-pearson (of effective rows), bootstrap (studentised), bootstrap (accelerated), bootstrap "
        "(approximate), bootstrap (of signed gaps), student-t (approximate), student-t (of the logit), student-t (of "
        "the inverse hyperbolic tangent) or score (of shares).",
    )
    n: int = Field(description="Number of rows (or folds) the metric rests on.")
    display: str = Field(description="Rounded to the error bar, for people.")
    label: str | None = Field(None, description="Class of the metric; null: it is of all classes or of none.")
    note: str | None = Field(
        None,
        description="Definition of the metric, limit of its interval, or reason why there is none. Null: none is "
        "needed.",
    )


class Measure(NamedTuple):
    """Definition of a metric."""

    better: int = -1
    """-1: lower is better. +1: higher."""
    lowest: float = 0.0
    highest: float = math.inf
    of: PredictionKind | None = None
    """Predictions that it is a metric of; None: of several kinds."""


HEAVY_ROWS = 100
"""Fewer rows than this do not show heavy tails."""
FEW_ROWS = (
    f"Fewer than {HEAVY_ROWS} rows do not show how rare large values are: a 95 % interval then covers 95 to 99 times "
    "in 100 for nearly normal errors, 91 to 98 times for heavy-tailed or skewed ones."
)
FEW_CASES = 5
"""Fewer rows of a class than this are too few for metrics that rest on each class."""
FEW_OF_A_CLASS = (
    f"A class has fewer than {FEW_CASES} rows: a 95 % interval then covers 80 to 97 times in 100, and a class without "
    "rows counts for nothing."
)
_NUMBER, _CLASSES, _LABEL, _COORDINATES, _DENSITY = PredictionKind
_SCORE = Measure(better=1, highest=1.0, of=_CLASSES)
_CORRELATION = Measure(better=1, lowest=-1.0, highest=1.0)
_KEPT = Measure(better=1, highest=1.0, of=_COORDINATES)
MEASURES = {
    "rmse": Measure(of=_NUMBER),
    "mae": Measure(of=_NUMBER),
    "r2": Measure(better=1, lowest=-math.inf, highest=1.0, of=_NUMBER),
    "r2_uncentred": Measure(better=1, lowest=-math.inf, highest=1.0, of=_NUMBER),
    **dict.fromkeys(get_args(MetricName), Measure(of=_NUMBER)),
    "accuracy": _SCORE,
    "log_loss": Measure(of=_CLASSES),
    "expected_calibration_error": Measure(highest=1.0, of=_CLASSES),
    "brier": Measure(highest=2.0, of=_CLASSES),
    "roc_auc": _SCORE,
    "pr_auc": _SCORE,
    "balanced_accuracy": _SCORE,
    "mcc": _CORRELATION._replace(of=_CLASSES),
    "precision": _SCORE,
    "recall": _SCORE,
    "f1": _SCORE,
    "silhouette": _CORRELATION._replace(of=_LABEL),
    "davies_bouldin": Measure(of=_LABEL),
    "mean_inertia": Measure(of=_LABEL),
    "cophenetic_correlation": _CORRELATION._replace(of=_LABEL),
    "stability": _CORRELATION._replace(of=_LABEL),
    "adjusted_rand": _CORRELATION._replace(of=_LABEL),
    "normalized_mutual_information": _SCORE._replace(of=_LABEL),
    "adjusted_mutual_information": _CORRELATION._replace(of=_LABEL),
    "purity": _SCORE._replace(of=_LABEL),
    "reconstruction_error": Measure(of=_COORDINATES),
    "explained_variance": Measure(better=1, lowest=-math.inf, highest=1.0, of=_COORDINATES),
    "separation": _KEPT,
    "trustworthiness": _KEPT,
    "continuity": _KEPT,
    "stress": Measure(highest=1.0, of=_COORDINATES),
    "log_density": Measure(better=1, lowest=-math.inf, of=_DENSITY),
    "cost": Measure(lowest=-math.inf, of=_CLASSES),
}
"""Metrics that mean the same for any number of rows: train and test can stand side by side."""
LOPSIDED = 1.5
"""Times half of its width that an error bar reaches to one side, from which its ends are shown."""
WRITTEN_IN_FULL = range(-3, 7)
"""Decimal places of numbers that are not shown with an exponent."""
MACRO = {"precision", "recall", "f1"}
"""Means over classes, where they are of no class."""


def proportion(
    name: str, successes: int, trials: int, label: str | None = None, *, confidence: float = CONFIDENCE
) -> Metric:
    """The share of successes with its exact interval; undefined without trials."""
    value, bounds = successes / trials if trials else math.nan, clopper_pearson(successes, trials, confidence)
    return metric(name, value, bounds, "clopper-pearson", n=trials, label=label, confidence=confidence)


def counted(name: str, successes: int, trials: int, label: str | None = None) -> Metric:
    """Count among a sample, with the interval of the share scaled to the sample."""
    share = clopper_pearson(successes, trials)
    bounds = Bounds(trials * share.lower, trials * share.upper) if share else None
    return metric(name, successes, bounds, "clopper-pearson", n=trials, label=label)


def bootstrapped(
    name: str,
    value: ArrayLike,
    replicates: ArrayLike,
    n: int,
    label: str | None = None,
    *,
    trials: int = 0,
    confidence: float = CONFIDENCE,
) -> Metric:
    """A metric of n rows with its bootstrap interval; one row alone has no error bar.

    replicates: the metric of every draw of `Resamples`: of rows drawn at random, then without each in turn.
    Rows that are all alike give replicates without spread, which is no proof of certainty. A score of 0 or 1 then
    counts as that of `trials` independent cases, the fewest it can rest on; anything else has no error bar.
    """
    result, every = float(np.asarray(value)), np.asarray(replicates, np.float64)
    bounds = accelerated(result, every[:RESAMPLES], every[RESAMPLES:], confidence) if n > 1 else None
    if bounds is None or bounds.lower < bounds.upper:
        return metric(name, result, bounds, "bootstrap (accelerated)", n=n, label=label, confidence=confidence)
    exact = clopper_pearson(round(result * trials), trials, confidence) if result in {0.0, 1.0} else None
    return metric(name, result, exact, "clopper-pearson", n=n, label=label, confidence=confidence)


def by_student_t(
    name: str,
    value: float,
    error: float,
    n: int,
    label: str | None = None,
    *,
    trials: int,
    freedom: float,
    bounds_of: Callable[[float, float, float], Bounds | None] = logit_student_t,
) -> Metric:
    """A score with its standard error, by Student's t of its logit; 0 or 1 is that of `trials` cases.

    trials: the fewest independent rows it rests on. error: NaN for no error bar, with its degrees of freedom.
    bounds_of: from value, error and degrees of freedom, on another scale than the logit.
    """
    if value in {0.0, 1.0} and error == 0:
        return metric(name, value, clopper_pearson(value * trials, trials), "clopper-pearson", n=n, label=label)
    scale = "of the logit" if bounds_of is logit_student_t else "of the inverse hyperbolic tangent"
    return metric(name, value, bounds_of(value, error, freedom), f"student-t ({scale})", n=n, label=label)


def of_log_ratio(
    name: str,
    value: float,
    bounds: Bounds | None,
    n: int,
    *,
    worth: float,
    definition: str | None = None,
    confidence: float = CONFIDENCE,
) -> Metric:
    """A metric with bounds from those of a ratio of sums by the studentised bootstrap.

    worth: the effective number of its n rows, few of which are noted.
    """
    result = metric(name, value, bounds, "bootstrap (studentised)", n=n, label=None, confidence=confidence)
    return with_note(with_note(result, definition), FEW_ROWS if bounds is not None and worth < HEAVY_ROWS else None)


def like(metric_value: Metric, other: Metric) -> Metric:
    """The first, with the average and the note of the other."""
    return (macro(metric_value) if other.average else metric_value).model_copy(update={"note": other.note})


def with_note(result: Metric, note: str | None) -> Metric:
    """With a further note; None: as it is."""
    return result if note is None else result.model_copy(update={"note": " ".join(filter(None, (result.note, note)))})


def macro(result: Metric) -> Metric:
    """A mean over classes, which its name does not state."""
    if result.average:
        return result
    display = result.display if result.value is None else f"{result.display}, macro"
    return result.model_copy(update={"average": "macro", "display": display})


def fold_mean(name: str, values: Vector, label: str | None = None) -> Metric:
    """The mean over folds. Their training rows overlap, so the interval is only approximate (LION 5.2.3)."""
    bounds = student_t(values)
    mean = metric(name, float(values.mean()), bounds, "student-t (approximate)", n=values.size, label=label)
    return macro(mean) if name in MACRO and label is None else mean


def resample_mean(name: str, values: Vector, label: str | None = None) -> Metric:
    """The mean over resamples. Each is evaluated on a third of the rows: one varies more than their mean."""
    bounds = percentile(values, fewest=10)
    return metric(name, float(values.mean()), bounds, "bootstrap (approximate)", n=values.size, label=label)


def shifted(result: Metric, by: float) -> Metric:
    """The metric and its bounds, moved."""
    value = math.nan if result.value is None else result.value + by
    bounds = None if result.lower is None or result.upper is None else Bounds(result.lower + by, result.upper + by)
    return like(metric(result.name, value, bounds, result.interval or "", n=result.n, label=result.label), result)


def metric(
    name: str,
    value: float,
    bounds: Bounds | None,
    how: str,
    *,
    n: int,
    label: str | None,
    confidence: float = CONFIDENCE,
) -> Metric:
    """Nothing that is not a finite number is ever reported; bounds end where the measure's range ends."""
    measure = MEASURES.get(name, Measure(lowest=-math.inf))
    if not math.isfinite(value):
        return Metric(name=name, value=None, n=n, display="undefined", label=label)
    if bounds is None or not all(map(math.isfinite, bounds)):
        return Metric(name=name, value=value, n=n, display=f"{value:.4g}", label=label)
    lower, upper = max(min(bounds.lower, value), measure.lowest), min(max(bounds.upper, value), measure.highest)
    return Metric(
        name=name,
        value=value,
        lower=lower,
        upper=upper,
        confidence=confidence,
        interval=how,
        n=n,
        display=rounded(value, lower, upper),
        label=label,
    )


def shown(value: float, bounds: Bounds) -> str:
    """For people: with an error bar where there is one."""
    if not math.isfinite(value):
        return "undefined"
    return rounded(value, *bounds) if all(map(math.isfinite, bounds)) else f"{value:.4g}"


def rounded(value: float, lower: float, upper: float) -> str:
    """Digits by the error bar (LION 5.3); the bounds themselves where the bar is lopsided.

    >>> rounded(182.326548435054, 182.2265, 182.4265)
    '182.3 ± 0.1'
    >>> rounded(0.9667, 0.8278, 0.9992)
    '0.97 (0.83 to 1.00)'
    >>> rounded(0.918, 0.477, 562.6)
    '0.9 (0.5 to 600)'
    """
    reach = (upper - lower) / 2
    if reach <= 0:
        return f"{value:.4g}"
    digits = _decimals(reach)
    if max(upper - value, value - lower) > LOPSIDED * reach:
        shown = [_number(each, max(digits, _decimals(each))) for each in (value, lower, upper)]
        return f"{shown[0]} ({shown[1]} to {shown[2]})"
    if digits in WRITTEN_IN_FULL:
        return f"{_number(value, digits)} ± {_number(reach, digits)}"
    return f"{_number(value, digits, scale=max(abs(value), reach))} ± {reach:.0e}"


def _decimals(value: float) -> int:
    """Decimal places of the first significant digit; -300 of 0, which has none."""
    return -math.floor(math.log10(float(f"{abs(value):.0e}"))) if value else -300


def _number(value: float, decimals: int, *, scale: float | None = None) -> str:
    """Rounded to so many decimal places. scale: a number as large as the first digit, where that is not the value's."""
    if decimals in WRITTEN_IN_FULL or (scale is None and not value):
        return f"{round(value, decimals) + 0.0:.{max(decimals, 0)}f}"  # a rounded -0.04 is 0
    size = abs(value) if scale is None else scale
    return f"{value:.{max(0, math.floor(math.log10(size)) + decimals)}e}"
