"""Bounds of the risk: published forms, limits, and exact failure rates."""

import math

import numpy as np
import pytest
from scipy import stats

from app.ml.statistics.risk_bounds import binomial_upper, compression_upper, kl_upper, vote_upper, weights_upper


@pytest.mark.parametrize("rows", [1, 7, 60])
def test_the_binomial_bound_is_the_quantile_of_a_beta(rows):
    for mistakes in range(rows):
        peer = stats.beta.ppf(0.95, mistakes + 1, rows - mistakes)
        assert binomial_upper(mistakes, rows, 0.05) == pytest.approx(peer, rel=1e-10)
    assert binomial_upper(rows, rows, 0.05) == binomial_upper(0, 0, 0.05) == 1


@pytest.mark.parametrize("risk", [0.01, 0.1, 0.37, 0.5, 0.9])
def test_exact_failure_rates(risk):
    """By the distribution of the mistakes of one function on 50 fresh rows."""
    counts = np.arange(51)
    shares = stats.binom.pmf(counts, 50, risk)
    binomial = np.array([binomial_upper(int(k), 50, 0.05) for k in counts])
    divergence = np.array([vote_upper(k / 50, 50, 50, 0.05) / 2 for k in counts])
    assert shares[binomial < risk].sum() <= 0.05
    assert shares[divergence < risk].sum() <= 0.05


def test_a_fit_by_few_rows():
    plain = 1 - (0.05 / (1000 * math.comb(1000, 50))) ** (1 / 950)
    assert compression_upper(50, 0, 1000, 0.05) == pytest.approx(plain, rel=1e-9)
    assert compression_upper(5, 0, 1000, 0.05) < compression_upper(5, 3, 1000, 0.05) < 0.1
    assert compression_upper(1000, 0, 1000, 0.05) == compression_upper(990, 10, 1000, 0.05) == 1
    assert compression_upper(400, 30, 1000, 0.05) <= 1


def test_divergence_of_two_coins():
    for share in (0.0, 0.2, 0.9):
        upper = kl_upper(share, 0.1)
        assert stats.entropy([share, 1 - share], [upper, 1 - upper]) == pytest.approx(0.1, rel=1e-9)
    assert kl_upper(1.0, 0.1) == 1


def test_a_vote_needs_rows():
    assert vote_upper(0.0, 7, 100, 0.05) == 2
    assert vote_upper(0.0, 400, 400, 0.05) < vote_upper(0.05, 400, 400, 0.05) < vote_upper(0.05, 200, 400, 0.05)


def test_weights_have_no_unit():
    """The same decision in other units has the same bound; a wider margin a smaller one."""
    values = np.random.default_rng(0).normal(2.0, 1.0, 5000)
    bound = weights_upper(1.0, 5000.0, values, 0.05)
    assert weights_upper(8.0, 5000.0, 8 * values, 0.05) == pytest.approx(bound, rel=1e-12)
    assert weights_upper(1.0, 5000.0, 2 * values, 0.05) < bound
    assert np.mean(values <= 0) < bound < 1
