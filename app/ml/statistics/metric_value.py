"""A measured metric as it is reported: value, error bar, and the digits that the error bar lets stand."""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from app.ml.contract.algorithm import Vector
from app.ml.contract.task import PredictionKind
from app.ml.statistics.intervals import (
    CONFIDENCE,
    HEAVY_ROWS,
    RESAMPLES,
    Bounds,
    accelerated,
    clopper_pearson,
    logit_student_t,
    percentile,
    root_mean_square,
    student_t,
)
from app.wire import Wire


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
        "chi-square (by kurtosis), bootstrap (accelerated), bootstrap (approximate), bootstrap (of signed gaps), "
        "student-t (approximate), student-t (of the logit) or score (of independent shares).",
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


FEW_ERRORS = (
    f"Fewer than {HEAVY_ROWS} errors do not show whether their distribution has heavy tails. A 95 % interval then "
    "covers the RMSE of nearly normal errors 95 times in 100, that of heavy-tailed or very skewed ones 75 to 90 times."
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


def by_logit(name: str, value: float, error: float, n: int, label: str | None = None, *, trials: int) -> Metric:
    """A score in (0, 1) with its standard error: by Student's t of its logit; 0 or 1 is that of `trials` cases.

    trials: the fewest independent rows it rests on. error: NaN for no error bar.
    """
    if not 0 < value < 1:
        exact = clopper_pearson(round(value * trials), trials) if value in {0.0, 1.0} and error == 0 else None
        return metric(name, value, exact, "clopper-pearson", n=n, label=label)
    bounds = logit_student_t(value, error, trials - 1)
    return metric(name, value, bounds, "student-t (of the logit)", n=n, label=label)


def like(one: Metric, other: Metric) -> Metric:
    """The first, with the average and the note of the other."""
    return (macro(one) if other.average else one).model_copy(update={"note": other.note})


def macro(result: Metric) -> Metric:
    """A mean over classes, which its name does not state."""
    if result.average:
        return result
    display = result.display if result.value is None else f"{result.display}, macro"
    return result.model_copy(update={"average": "macro", "display": display})


def root_mean_squared(name: str, errors: Vector) -> Metric:
    """Root mean square of errors (n,), with the interval that their tails allow."""
    size = float(np.abs(errors).max(initial=0.0))
    value = size * math.sqrt(np.mean((errors / size) ** 2)) if 0 < size < math.inf else size
    found = metric(name, value, root_mean_square(errors), "chi-square (by kurtosis)", n=errors.size, label=None)
    return found.model_copy(update={"note": FEW_ERRORS}) if found.interval and errors.size < HEAVY_ROWS else found


def fold_mean(name: str, values: Vector, label: str | None = None) -> Metric:
    """The mean over folds. Their training rows overlap, so the interval is only approximate (LION 5.2.3)."""
    bounds = student_t(values)
    found = metric(name, float(values.mean()), bounds, "student-t (approximate)", n=values.size, label=label)
    return macro(found) if name in MACRO and label is None else found


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
    """
    reach = (upper - lower) / 2
    if reach <= 0:
        return f"{value:.4g}"
    digits = -math.floor(math.log10(float(f"{reach:.0e}")))
    lopsided = max(upper - value, value - lower) > 1.5 * reach
    if not -3 <= digits <= 6:  # beyond what reads well in full
        scale = max(abs(value), reach)
        shown = max(0, math.floor(math.log10(scale)) + digits)
        return f"{value:.{shown}e} ± {reach:.0e}"
    if lopsided:
        return f"{_fixed(value, digits)} ({_fixed(lower, digits)} to {_fixed(upper, digits)})"
    return f"{_fixed(value, digits)} ± {_fixed(reach, digits)}"


def _fixed(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{max(digits, 0)}f}"  # a rounded -0.04 is 0
