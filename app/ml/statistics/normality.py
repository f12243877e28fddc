"""Are residuals normal? Three tests, each calibrated for a mean and a deviation that are estimated (LION 5.2.2).

Every test standardises by the mean and the standard deviation (n − 1) of the values. What is left of them must spread
by more than rounding, and there must be enough values; otherwise the result is None.

References: D'Agostino & Stephens (1986), Goodness-of-Fit Techniques, table 4.9 (A²); D'Agostino & Pearson (1973),
Biometrika 60:613, with D'Agostino (1970) and Anscombe & Glynn (1983) (K²); Lilliefors (1967), J. Am. Stat. Assoc.
62:399, with p by Dallal & Wilkinson (1986), The American Statistician 40:294, and Stephens (1974).
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Vector
from app.ml.numerics.scaling import spread


class Normality(NamedTuple):
    statistic: float
    p: float
    """Probability that normal values give such a statistic or a larger one."""


def standardised(values: Vector) -> Vector | None:
    """Values (n,) less their mean, over their deviation (n − 1), ascending; None where they do not spread."""
    moments = spread(values)
    if values.size < 2 or moments.deviation == 0:
        return None
    z: Vector = np.sort((values - moments.mean) / moments.deviation) * np.sqrt(1 - 1 / values.size)
    return z


def anderson_darling(values: Vector) -> Normality | None:
    """A² = −n − (1/n) Σ (2i−1)[ln Φ(zᵢ) + ln(1 − Φ(zₙ₊₁₋ᵢ))], p that of A²(1 + 0.75/n + 2.25/n²); from 8 values on.

    As often printed, without 1/n and under a square root, it rejects every normal sample. The logarithms are taken
    directly, so that no value is too far out.
    """
    z = standardised(values)
    if z is None or (n := z.size) < 8:
        return None
    statistic = squared_distance(z)
    return Normality(statistic, _anderson_p(statistic * (1 + 0.75 / n + 2.25 / n**2)))


def squared_distance(z: Vector) -> float:
    """A² of ascending standard values (n,)."""
    n = z.size
    return float(
        -n - ((2 * np.arange(n) + 1) * (scipy.special.log_ndtr(z) + scipy.special.log_ndtr(-z[::-1]))).sum() / n
    )


def _anderson_p(a: float) -> float:
    if a < 0.2:
        return float(-np.expm1(-13.436 + 101.14 * a - 223.73 * a * a))
    if a < 0.34:
        return float(-np.expm1(-8.318 + 42.796 * a - 59.938 * a * a))
    if a < 0.6:
        return float(np.exp(0.9177 - 4.279 * a - 1.38 * a * a))
    # The quadratic turns up again, far beyond where it was fitted.
    return float(np.exp(1.2937 - 5.709 * a + 0.0186 * a * a)) if a < 13 else 0.0


def dagostino(values: Vector) -> Normality | None:
    """K², the squares of skewness and kurtosis, each made normal: χ² with 2 degrees of freedom; from 20 values on."""
    z = standardised(values)
    if z is None or (n := z.size) < 20:
        return None
    squares = z * z  # a power of numbers takes twenty times as long as a product
    second, third, fourth = squares.mean(), (squares * z).mean(), (squares * squares).mean()
    statistic = _skewness(float(third / second**1.5), n) ** 2 + _kurtosis(float(fourth / second**2), n) ** 2
    return Normality(statistic, float(scipy.special.chdtrc(2, statistic)))


def _skewness(skew: float, n: int) -> float:
    """Normal, if the values are (D'Agostino 1970)."""
    y = skew * np.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    beta = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    w2 = np.sqrt(2 * (beta - 1)) - 1
    return float(np.arcsinh(y * np.sqrt((w2 - 1) / 2)) / np.sqrt(np.log(w2) / 2))


def _kurtosis(kurtosis: float, n: int) -> float:
    """Normal, if the values are (Anscombe & Glynn 1983)."""
    expected = 3 * (n - 1) / (n + 1)
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    x = (kurtosis - expected) / np.sqrt(variance)
    skew = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * np.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a = 6 + 8 / skew * (2 / skew + np.sqrt(1 + 4 / skew**2))
    ratio = (1 - 2 / a) / (1 + x * np.sqrt(2 / (a - 4)))
    return float((1 - 2 / (9 * a) - np.cbrt(ratio)) / np.sqrt(2 / (9 * a)))


def kolmogorov_smirnov(values: Vector) -> Normality | None:
    """The largest distance D between the shares below and Φ, with p as Lilliefors corrected it; from 5 values on."""
    z = standardised(values)
    if z is None or (n := z.size) < 5:
        return None
    below, steps = scipy.special.ndtr(z), np.arange(n + 1) / n
    distance = float(max((steps[1:] - below).max(), (below - steps[:-1]).max()))
    return Normality(distance, _lilliefors_p(distance, n))


def _lilliefors_p(distance: float, n: int) -> float:
    m = min(n, 100)
    d = distance * (n / m) ** 0.49
    p = np.exp(-7.01256 * d * d * (m + 2.78019) + 2.99587 * d * np.sqrt(m + 2.78019))
    p *= np.exp(-0.122119 + 0.974598 / np.sqrt(m) + 1.67997 / m)
    if p <= 0.1:  # what it was made for
        return float(p)
    k = (np.sqrt(n) - 0.01 + 0.85 / np.sqrt(n)) * distance
    if k <= 0.302:
        return 1.0
    if k <= 0.5:
        return float(np.polyval([81.218052, -138.55152, 80.709644, -19.828315, 2.76773], k))
    if k <= 0.9:
        return float(np.polyval([-32.355711, 94.029866, -97.490286, 40.662806, -4.901232], k))
    return float(np.polyval([2.423045, -12.234627, 23.186922, -19.558097, 6.198765], k)) if k <= 1.31 else 0.0
