"""Population stability index (PSI) of binned values, with a p-value that holds in windows of any size.

PSI = Σ (pᵢ − qᵢ) ln(pᵢ/qᵢ) of the shares p of n rows and q of m reference rows, with ½ added to each count. Of the same
distribution, PSI/(1/n + 1/m) is close to χ² with B − 1 degrees of freedom. The null hypothesis here is that the true
PSI is at most a tolerance, below which a shift does not matter: the statistic is then noncentral χ², with the
noncentrality tolerance·nm/(n + m). Below `MIN_APPROXIMATED_ROWS` the approximation fails, and draws take its place.

References: Yurdakul (2018), Statistical properties of population stability index; Potgieter et al. (2023),
arXiv:2307.11878; Besag & Clifford (1991), Biometrika 78:301, on draws that stop.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Vector

MIN_APPROXIMATED_ROWS = 500
"""Rows below which the p-value is by draws."""
MIN_EXPECTED_ROWS = 5.0
"""Rows that each bin has in expectation, where the p-value is by the approximation; smaller ones are merged."""
DRAWS = 99_999
FIRST_DRAWS, MAX_BLOCK_DRAWS, ENOUGH_EXCEEDED = 60, 20_000, 20
TOLERANCE = 0.02
BISECTIONS = 40


class Stability(NamedTuple):
    """A PSI and the evidence against its null hypothesis."""

    psi: float
    p: float
    """P-value of a true PSI of at most the tolerance, uniform or larger where that holds."""
    method: str
    """`draws` or `noncentral-chi-squared`."""


def psi(counts: NDArray[Any], reference: NDArray[Any]) -> Vector:
    """PSI (k,) of counts (k, B), or of counts (B,) a number, to the counts (B,) of the reference.

    >>> round(float(psi(np.array([30.0, 70.0]), np.array([50.0, 50.0]))), 4)
    0.1663
    """
    p, q = _shares(counts), _shares(reference)
    result: Vector = ((p - q) * np.log(p / q)).sum(axis=-1)
    return result


def compare_shares(
    counts: Vector,
    reference: Vector,
    rng: np.random.Generator,
    *,
    tolerance: float = TOLERANCE,
    draws: int = DRAWS,
    design_effect: float = 1.0,
) -> Stability:
    """The PSI of the counts (B,), and its p-value.

    design_effect: by which dependence between rows enlarges the variance of the shares; n and counts are divided by it.
    """
    index = float(psi(counts, reference))
    scaled = counts / max(design_effect, 1.0)
    n, m = float(scaled.sum()), float(reference.sum())
    if counts.size < 2 or n < 1 or m < 1:
        return Stability(index, 1.0, "draws")
    if n < MIN_APPROXIMATED_ROWS:
        return Stability(index, _drawn(scaled, reference, rng, tolerance, draws), "draws")
    merged, base = merge_sparse(scaled, reference)
    if merged.size < 2:
        return Stability(index, 1.0, "noncentral-chi-squared")
    return Stability(index, _approximated(merged, base, tolerance), "noncentral-chi-squared")


def merge_sparse(counts: Vector, reference: Vector) -> tuple[Vector, Vector]:
    """The same counts with one bin for all that expect fewer than `MIN_EXPECTED_ROWS` rows, in either sample."""
    share = (counts + reference) / (counts.sum() + reference.sum())
    sparse = share * min(counts.sum(), reference.sum()) < MIN_EXPECTED_ROWS
    if not sparse.any():
        return counts, reference
    return (np.append(counts[~sparse], counts[sparse].sum()), np.append(reference[~sparse], reference[sparse].sum()))


def _approximated(counts: Vector, reference: Vector, tolerance: float) -> float:
    from scipy.special import chndtr, gammaincc

    n, m = counts.sum(), reference.sum()
    statistic, freedom = float(psi(counts, reference)) * n * m / (n + m), counts.size - 1
    noncentrality = tolerance * n * m / (n + m)
    if noncentrality == 0:
        return float(gammaincc(freedom / 2, statistic / 2))
    below = float(chndtr(statistic, freedom, noncentrality))
    if below < 1 - 1e-9:  # its complement keeps digits
        return 1 - below
    return _noncentral_tail(statistic, freedom, noncentrality)


def _noncentral_tail(statistic: float, freedom: int, noncentrality: float) -> float:
    """P(χ² > statistic) as a Poisson mixture of central tails, where 1 − F has no digits left."""
    from scipy.special import gammaincc, gammaln

    half = noncentrality / 2
    width = 12 * np.sqrt(half) + 60
    terms = np.arange(max(0.0, np.floor(half - width)), np.ceil(half + width + statistic / 2))
    weights = np.exp(terms * np.log(half) - half - gammaln(terms + 1))
    return float(min(1.0, weights @ gammaincc(freedom / 2 + terms, statistic / 2)))


def _drawn(counts: Vector, reference: Vector, rng: np.random.Generator, tolerance: float, draws: int) -> float:
    """The share of draws with a PSI at least as large, of rows from the nearest distribution that the null allows.

    The reference is an estimate from m rows: each draw has a truth of its own, Dirichlet about that distribution. After
    `ENOUGH_EXCEEDED` such draws there are no more: where little is unusual the p-value needs few digits.
    """
    n, m = round(float(counts.sum())), float(reference.sum())
    nearest = _shares(reference) + _tilt(counts, reference, tolerance) * (_shares(counts) - _shares(reference))
    observed, exceeded, done, size = float(psi(counts, reference)) * (1 - 1e-12), 0, 0, FIRST_DRAWS
    while done < draws:
        size = min(size, draws - done)
        gammas = rng.standard_gamma(nearest * m + 0.5, (size, counts.size))
        drawn = rng.multinomial(n, gammas / gammas.sum(axis=1, keepdims=True))
        larger = np.flatnonzero(psi(drawn, reference) >= observed)
        if exceeded + larger.size >= ENOUGH_EXCEEDED:
            return ENOUGH_EXCEEDED / float(done + larger[ENOUGH_EXCEEDED - exceeded - 1] + 1)
        exceeded, done, size = exceeded + larger.size, done + size, min(4 * size, MAX_BLOCK_DRAWS)
    return (1 + exceeded) / (1 + draws)


def _tilt(counts: Vector, reference: Vector, tolerance: float) -> float:
    """Step from the reference towards the counts, from 0 to 1, at which the PSI is the tolerance."""
    p, q = _shares(counts), _shares(reference)

    def distance(step: float) -> float:
        between = q + step * (p - q)
        return float(((between - q) * np.log(between / q)).sum())

    if distance(1.0) <= tolerance:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if distance(middle) <= tolerance else (low, middle)
    return low


def _shares(counts: NDArray[Any]) -> NDArray[Any]:
    """Counts with ½ added to each, divided by their sum along the last axis."""
    padded = counts + 0.5
    shares: NDArray[Any] = padded / padded.sum(axis=-1, keepdims=True)
    return shares
