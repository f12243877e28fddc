"""The population stability index, and its p-value in windows of any size."""

import numpy as np
import pytest
from scipy import optimize, stats

from app.ml.statistics.population_stability import DRAWS, _noncentral_tail, compare_shares, merge_sparse, psi

LEVELS = np.array([0.2, 0.05, 0.01])


def p_values(n, m, bins, repeats, *, tolerance=0.0, shift=None, draws=DRAWS):
    rng = np.random.default_rng(0)
    shares = np.full(bins, 1 / bins)
    now = shares if shift is None else shares * shift
    result = []
    for _ in range(repeats):
        reference, current = rng.multinomial(m, shares).astype(float), rng.multinomial(n, now).astype(float)
        result.append(compare_shares(current, reference, rng, tolerance=tolerance, draws=draws).p)
    return np.array(result)


def shifted(index, bins):
    """Factors of the shares with this PSI: half of them up, half down."""
    step = optimize.brentq(lambda step: step * np.arctanh(step) - index, 0, 0.999)
    return np.repeat([1 + step, 1 - step], bins // 2)


def test_index_is_that_of_the_published_formula():
    reference, current = np.array([100.0, 200.0, 700.0]), np.array([150.0, 250.0, 600.0])
    p, q = (current + 0.5) / 1001.5, (reference + 0.5) / 1001.5
    expected = stats.entropy(p, q) + stats.entropy(q, p)  # the two Kullback-Leibler divergences
    assert psi(current, reference) == pytest.approx(expected, rel=1e-12)
    assert psi(np.stack([current, reference]), reference) == pytest.approx([expected, 0.0])


@pytest.mark.parametrize(
    ("n", "m", "bins", "repeats"), [(50, 1000, 5, 800), (200, 10_000, 20, 400), (1000, 10_000, 20, 2000)]
)
def test_share_of_false_alarms_is_the_level(n, m, bins, repeats):
    found = (p_values(n, m, bins, repeats)[:, None] <= LEVELS).mean(axis=0)
    assert (np.abs(found - LEVELS) <= 4 * np.sqrt(LEVELS * (1 - LEVELS) / repeats) + 0.1 * LEVELS).all(), found


def test_shift_below_the_tolerance_raises_nothing_however_many_rows():
    factors = shifted(0.015, 20)
    assert psi(factors * 5e4, np.full(20, 5e4)) == pytest.approx(0.015, rel=1e-3)
    assert (p_values(100_000, 100_000, 20, 100, tolerance=0.02, shift=factors) > 0.05).all()
    assert (p_values(100_000, 100_000, 20, 100, tolerance=0.005, shift=factors) < 1e-6).all()


def test_small_windows_find_large_shifts():
    factors = shifted(0.5, 20)
    assert (p_values(200, 10_000, 20, 100, tolerance=0.02, shift=factors, draws=2999) <= 0.001).mean() > 0.9


def test_noncentral_tail_is_that_of_scipy_where_its_complement_has_no_digits():
    for statistic, freedom, noncentrality in [(200, 19, 10), (400, 19, 50), (5000, 19, 2000)]:
        expected = stats.ncx2.sf(statistic, freedom, noncentrality)
        assert _noncentral_tail(statistic, freedom, noncentrality) == pytest.approx(expected, rel=1e-8)
        assert expected < 1e-9


def test_sparse_bins_become_one():
    counts, reference = merge_sparse(np.array([900.0, 2.0, 1.0, 97.0]), np.array([9000.0, 10.0, 20.0, 970.0]))
    assert (counts.tolist(), reference.tolist()) == ([900.0, 97.0, 3.0], [9000.0, 970.0, 30.0])


def test_dependent_rows_count_for_fewer():
    rng, reference, counts = np.random.default_rng(0), np.full(10, 1000.0), np.repeat([120.0, 80.0], 5)
    alone = compare_shares(counts, reference, rng, tolerance=0)
    together = compare_shares(counts, reference, rng, tolerance=0, design_effect=10)
    assert alone.p < 0.01
    assert together.p > 0.2
    assert alone.psi == together.psi
