"""Statistics of refits for each number: spread, intervals, a rectangle for all at once, ellipses for pairs (LION 5.3).

Intervals are percentiles, so that the median of the refits is inside by construction and a bar may be lopsided.

References: Efron & Tibshirani (1993), An Introduction to the Bootstrap, ch. 13 and 14; Besag et al. (1995),
Statistical Science 10:3, for the rectangle.
"""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Matrix, Vector
from app.ml.statistics.histogram_and_box_plot import Bin, histogram
from app.ml.statistics.intervals import Bounds, accelerated, percentile
from app.ml.statistics.metric_value import rounded

MIN_REFITS = 20
"""Refits in which a number must be defined, to estimate its spread."""
MOST_IN_PAIRS = 10
"""Numbers of which every pair gets an ellipse."""


class Distribution(Wire):
    """One number over all refits."""

    name: str = Field(description="Name of the coefficient, prediction or metric.")
    label: str | None = Field(None, description="The class, for numbers of one class.")
    average: str | None = Field(
        None,
        description="Average of a metric over several classes: `macro` is the unweighted mean over the classes for "
        "which it is defined. Null: the number is of one class, or no metric of classes.",
    )
    row: int | None = Field(None, description="Index of the requested row, from 0.")
    estimate: float | None = Field(description="Value of the fit of all rows. For metrics: the mean over the refits.")
    mean: float | None = Field(None, description="Arithmetic mean.")
    median: float | None = Field(None, description="Median.")
    standard_error: float | None = Field(None, description="Standard deviation over the refits.")
    lower: float | None = Field(None, description="Lower end of the interval.")
    upper: float | None = Field(None, description="Upper end of the interval.")
    interval: str | None = Field(None, description="bootstrap (percentile) or bootstrap (accelerated).")
    defined: int = Field(description="Refits in which the number exists: a category may be absent from a resample.")
    display: str = Field(description="Rounded to the error bar, for people.")
    histogram: list[Bin] = Field([], description="Bins of equal width, in ascending order.")


class Rectangle(Wire):
    """Bounds that hold all numbers at once in the stated share of the refits: wider than each one's own."""

    lower: list[float] = Field(description="Lower ends, one for each coefficient.")
    upper: list[float] = Field(description="Upper ends, one for each coefficient.")
    holds: float = Field(description="Share of the refits inside.")


class Ellipse(Wire):
    """Confidence region of two numbers: (c - centre)ᵀ covariance⁻¹ (c - centre) <= radius²."""

    names: list[str] = Field(description="Names of the two numbers.")
    centre: list[float] = Field(description="Centre: the two estimates.")
    covariance: list[list[float]] = Field(description="Covariance matrix of the two numbers over the refits.")
    radius: float = Field(description="Radius with which the stated share of the refits is inside.")
    normal_radius: float = Field(
        description="Radius that normally distributed refits would have: the root of a χ² quantile."
    )
    semi_axes: list[float] = Field(description="The longer first, for `radius`.")
    angle: float = Field(description="Angle of the longer axis, in degrees from the axis of the first number.")


def distribution(
    estimate: float, draws: Vector, left_out: Vector | None, confidence: float, **labels: str | int | None
) -> Distribution:
    """Distribution of one number: the fit of all rows, of every resample, and, if known, without each row; NaN
    undefined.
    """
    values = draws[np.isfinite(draws)]
    bounds, how = percentile(values, confidence, fewest=MIN_REFITS), "percentile"
    if left_out is not None and np.isfinite(estimate) and values.size >= MIN_REFITS:
        bounds, how = accelerated(estimate, values, left_out, confidence), "accelerated"
    result = float(estimate) if np.isfinite(estimate) else None
    if bounds is None or result is None:
        shown = "undefined" if result is None else f"{result:.4g}"
        return Distribution(estimate=result, defined=values.size, display=shown, **labels)
    return Distribution(
        estimate=result,
        mean=float(values.mean()),
        median=float(np.median(values)),
        standard_error=float(values.std(ddof=1)),
        lower=bounds.lower,
        upper=bounds.upper,
        interval=f"bootstrap ({how})",
        defined=values.size,
        display=rounded(result, *_around(bounds, result)),
        histogram=histogram(values),
        **labels,
    )


def rectangle(draws: Matrix, confidence: float) -> Rectangle | None:
    """Percentiles of numbers (R, m), the same share cut off on either side of each, that hold enough refits whole.

    Refits in which a number is undefined do not count.
    """
    finite_draws = draws[np.isfinite(draws).all(axis=1)]
    n = len(finite_draws)
    if n < MIN_REFITS or not draws.shape[1]:
        return None
    ordered = np.sort(finite_draws, axis=0)
    # How many of a column are as far out or farther, at least over all columns; the value itself does not count.
    columns = list(zip(ordered.T, finite_draws.T, strict=True))
    below = np.stack([np.searchsorted(column, values, "right") for column, values in columns])
    above = np.stack([n - np.searchsorted(column, values, "left") for column, values in columns])
    depth = np.minimum(below, above).min(axis=0) - 1
    cut = int(np.sort(depth)[math.floor((1 - confidence) * n)])
    lower, upper = ordered[cut], ordered[n - 1 - cut]
    inside = ((finite_draws >= lower) & (finite_draws <= upper)).all(axis=1).mean()
    return Rectangle(lower=lower.tolist(), upper=upper.tolist(), holds=float(inside))


def ellipses(names: Sequence[str], draws: Matrix, confidence: float) -> list[Ellipse]:
    """Ellipse of every pair among the first numbers (R, m); none of pairs that do not spread in two directions."""
    few = min(len(names), MOST_IN_PAIRS)
    candidates = (_ellipse([names[i], names[j]], draws[:, [i, j]], confidence) for i, j in combinations(range(few), 2))
    return [ellipse for ellipse in candidates if ellipse is not None]


def _ellipse(names: list[str], draws: Matrix, confidence: float) -> Ellipse | None:
    finite_draws = draws[np.isfinite(draws).all(axis=1)]
    if len(finite_draws) < MIN_REFITS:
        return None
    centre, size = finite_draws.mean(axis=0), finite_draws.std(axis=0)
    if not (size > 0).all():
        return None
    z = (finite_draws - centre) / size
    correlation = float((z[:, 0] * z[:, 1]).mean())
    if 1 - abs(correlation) < 1e-12:
        return None
    # In the sum and the difference of two standard numbers the covariance is diagonal.
    turned = z @ np.array([[1.0, 1.0], [1.0, -1.0]])
    distance = np.sqrt((turned**2 / (2 * np.array([1 + correlation, 1 - correlation]))).sum(axis=1))
    scale = len(finite_draws) / (len(finite_draws) - 1)
    covariance = scale * np.array([[1.0, correlation], [correlation, 1.0]]) * np.outer(size, size)
    values, vectors = np.linalg.eigh(covariance)
    radius = float(np.quantile(distance / np.sqrt(scale), confidence))
    return Ellipse(
        names=names,
        centre=centre.tolist(),
        covariance=covariance.tolist(),
        radius=radius,
        normal_radius=math.sqrt(-2 * math.log1p(-confidence)),
        semi_axes=(radius * np.sqrt(np.maximum(values[::-1], 0.0))).tolist(),
        angle=math.degrees(math.atan2(vectors[1, 1], vectors[0, 1])) % 180,
    )


def _around(bounds: Bounds, value: float) -> Bounds:
    return Bounds(min(bounds.lower, value), max(bounds.upper, value))
