"""A test by betting on means: its level and its power in simulated races."""

import numpy as np
import pytest

from app.ml.statistics.betting import is_surely_above_zero, log_wealth


def test_wealth_is_the_product_of_the_bets():
    values = np.random.default_rng(3).normal(size=40)
    scale = np.quantile(np.abs(values[:10]), 0.99)
    scaled, wealth = np.clip(values / scale, -1, 1), 1.0
    for place in range(10, 40):
        before = scaled[:place]
        wealth *= 1 + np.clip(before.sum() / ((before**2).sum() + 0.25), 0, 0.5) * scaled[place]
    assert np.exp(log_wealth(values, 10)[-1]) == pytest.approx(wealth)


def test_nothing_is_known_without_values_to_bet_on():
    assert not is_surely_above_zero(np.ones(5), 5, 0.05)
    assert not is_surely_above_zero(np.zeros(50), 10, 0.05)


def test_races_of_equals_drop_hardly_any_and_worse_ones_are_dropped():
    """30 equal candidates beside the one that looks best on the same rows, at any moment; then one that is worse."""
    alpha, dropped = 0.05 / (30 * 29), 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        losses = rng.normal(0, 0.15, (30, 800)) + rng.normal(0, 0.3, 800)
        leader = losses.mean(axis=1).argmin()
        dropped += any(is_surely_above_zero(loss - losses[leader], 100, alpha) for loss in losses)
    assert dropped <= 10  # 5 % of 200
    worse = [
        is_surely_above_zero(np.random.default_rng(seed).normal(0.05, 0.15, 800), 100, alpha) for seed in range(50)
    ]
    assert sum(worse) >= 48
