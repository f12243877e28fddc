"""Change detection by e-values: evidence of many windows accumulates, at a chosen rate of false alarms.

A p-value p becomes the e-value ½ p^(−½), whose expectation is at most 1 while nothing has changed. Per stream
M ← max(M, 1) · e, and an alarm is raised when M reaches a threshold: the expected number of windows until a false alarm
is then at least the threshold, for windows of any size, and a small shift is found by many small windows together.

References: Shin, Ramdas & Rinaldo (2024), E-detectors, New England J. Statist. Data Sci. 2:229; Vovk & Wang (2021),
Ann. Statist. 49:1736.
"""

import math

MIN_P = 1e-6
"""P-values below it are not trusted: those of an approximation, far in its tail."""
YEAR_SECONDS = 365.25 * 86_400


def e_value(p: float) -> float:
    """The e-value of a p-value.

    >>> e_value(0.25), e_value(0.0)
    (1.0, 500.0)
    """
    return 0.5 / math.sqrt(max(p, MIN_P))


def accumulate(evidence: float, p: float) -> float:
    """The evidence M after one more window; that before the first is 1."""
    return max(evidence, 1.0) * e_value(p)


def threshold(streams: int, window_seconds: float, false_alarms_per_year: float) -> float:
    """Evidence at which a stream raises an alarm, so that all streams together raise so many false ones a year.

    >>> round(threshold(30, 3600, 1))
    262980
    """
    return max(1.0, streams * YEAR_SECONDS / window_seconds / false_alarms_per_year)
