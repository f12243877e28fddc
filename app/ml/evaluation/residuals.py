"""Residuals of a regression: spread, outliers, normality (LION 5.2.2, 5).

A residual is √w·(y − prediction) for a row of weight w, so that rows measured with different care can be compared.
Residuals that are not normal hint at a missing input, a model too simple, or one too powerful; and the errors that a
linear model reports of its coefficients assume them normal.
"""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Labels, Vector
from app.ml.evaluation.splits import evenly
from app.ml.numerics.scaling import spread
from app.ml.statistics.normality import Normality, anderson_darling, dagostino, kolmogorov_smirnov

Part: TypeAlias = Literal["train", "test", "evaluation"]
ALPHA = 0.05
"""Normality is called rejected below this probability."""
TESTED = 100_000
"""Largest number of residuals that are tested whole, else an even sample: the tests sort."""
LISTED = 100
"""Outliers listed by their row number."""
TESTS: Mapping[str, Callable[[Vector], Normality | None]] = {
    "anderson-darling": anderson_darling,
    "dagostino-k2": dagostino,
    "kolmogorov-smirnov-lilliefors": kolmogorov_smirnov,
}


class NormalityTest(Wire):
    """Test of normality."""

    name: str = Field(description="anderson-darling, dagostino-k2 or kolmogorov-smirnov-lilliefors.")
    statistic: float | None = Field(description="A², K² or D; null for too few values or values all alike.")
    p_value: float | None = Field(description="Probability that normal residuals look no better than these.")


class Residuals(Wire):
    """Residuals of the training rows, of the rows held out, or of the evaluated rows."""

    part: Part = Field(description="Rows of the residuals: training rows, test rows, or the rows of an evaluation.")
    rows: int = Field(description="Number of rows.")
    mean: float | None = Field(description="Arithmetic mean.")
    standard_deviation: float | None = Field(
        description="Standard deviation, with n - 1 in the denominator; null for one row."
    )
    five_numbers: list[float] = Field(description="Minimum, first quartile, median, third quartile, maximum.")
    normality: list[NormalityTest] = Field(description="Tests of normality.")
    normality_without_outliers: list[NormalityTest] | None = Field(
        None, description="Tests of normality without the outliers; null where there are no outliers."
    )
    outliers: int = Field(description="Residuals more than 1.5 interquartile ranges outside of the quartiles.")
    outlier_rows: list[int] = Field(
        description="Their rows in the dataset, from 0, largest residual first; at most 100."
    )
    reading: str = Field(description="Result of the tests in one sentence.")


def residuals(part: Part, rows: Labels, values: Vector) -> Residuals | None:
    """Report on residuals (n,) of these rows of the dataset; None without rows, or where they are not finite."""
    if not values.size or not np.isfinite(values).all():
        return None
    five = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    reach = 1.5 * (five[3] - five[1])
    beyond = np.maximum(five[1] - reach - values, values - five[3] - reach)
    outliers = np.flatnonzero(beyond > 0)
    largest = outliers[np.argsort(-np.abs(values[outliers]), kind="stable")]
    moments, n = spread(values), values.size
    tests = _tests(values)
    return Residuals(
        part=part,
        rows=n,
        mean=moments.mean,
        standard_deviation=float(moments.deviation * np.sqrt(n / (n - 1))) if n > 1 else None,
        five_numbers=five.tolist(),
        normality=tests,
        normality_without_outliers=_tests(np.delete(values, outliers)) if outliers.size else None,
        outliers=outliers.size,
        outlier_rows=rows[largest[:LISTED]].tolist(),
        reading=_reading(tests),
    )


def _tests(values: Vector) -> list[NormalityTest]:
    sample = values[evenly(values.size, TESTED)]
    results = {name: test(sample) for name, test in TESTS.items()}
    return [
        NormalityTest(name=name, statistic=result and result.statistic, p_value=result and result.p)
        for name, result in results.items()
    ]


def _reading(tests: list[NormalityTest]) -> str:
    p = tests[0].p_value
    if p is None:
        return "Too few residuals, or all alike: nothing is known of their distribution."
    if p >= ALPHA:
        return f"No evidence against normal residuals (Anderson-Darling, p = {p:.2g})."
    return (
        f"The residuals are not normal (Anderson-Darling, p = {p:.1g}): an input may be missing, or the model too "
        "simple or too powerful; errors and intervals that assume normal noise are only rough."
    )
