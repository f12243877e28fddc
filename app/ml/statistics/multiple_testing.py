"""Correction of p-values for the number of tests.

Holm's p-value bounds the probability of any false discovery among those at or below it, whatever the dependence of the
tests. Benjamini and Hochberg's bounds the expected share of false discoveries, of tests that are independent or
positively dependent.

References: Holm (1979), Scand. J. Statist. 6:65; Benjamini & Hochberg (1995), J. R. Statist. Soc. B 57:289.
"""

from collections.abc import Callable

import numpy as np

from app.ml.contract.algorithm import Vector


def holm(p: Vector) -> Vector:
    """Corrected p-values (m,), by the step-down method; NaN is no test."""
    return _corrected(p, lambda ordered: np.maximum.accumulate(ordered * np.arange(ordered.size, 0, -1)))


def benjamini_hochberg(p: Vector) -> Vector:
    """Corrected p-values (m,), by the step-up method; NaN is no test."""
    return _corrected(
        p,
        lambda ordered: np.minimum.accumulate((ordered * ordered.size / np.arange(1, ordered.size + 1))[::-1])[::-1],
    )


def _corrected(p: Vector, method: Callable[[Vector], Vector]) -> Vector:
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    corrected = np.full(p.size, np.nan)
    corrected[order] = np.minimum(1.0, method(p[order]))
    return corrected
