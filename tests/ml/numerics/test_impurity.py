"""Impurities by their definitions, at their ends, and never below zero."""

import numpy as np
import pytest
from scipy import stats

from app.ml.numerics.impurity import entropy, gini, variance


@pytest.mark.parametrize("k", [1, 2, 5])
def test_even_and_pure(k):
    even, pure = np.full(k, 3.0), np.eye(k)[0] * 3
    assert entropy(even) / even.sum() == pytest.approx(np.log2(k))
    assert gini(even) / even.sum() == pytest.approx(1 - 1 / k)
    assert entropy(pure) == gini(pure) == 0


def test_by_definition_for_many_nodes_at_once():
    counts = np.random.default_rng(0).uniform(0.1, 5, (4, 30))
    shares, weight = counts / counts.sum(axis=0), counts.sum(axis=0)
    np.testing.assert_allclose(entropy(counts) / weight, stats.entropy(shares, base=2))
    np.testing.assert_allclose(gini(counts) / weight, 1 - (shares**2).sum(axis=0))
    w, y = np.random.default_rng(1).uniform(0.5, 2, (2, 9))
    assert variance(np.array([w.sum(), w @ y, w @ y**2])) == pytest.approx(w @ (y - np.average(y, weights=w)) ** 2)


@pytest.mark.parametrize("impurity", [entropy, gini, variance])
def test_roundings_below_zero_and_empty_sides_have_no_impurity(impurity):
    assert impurity(np.zeros(3)) == 0
    assert impurity(np.array([0.0, -1e-17, 0.0])) == 0
    assert impurity(np.array([4.0, 8.0, 16.0 - 1e-14])) >= 0


def test_even_halves_of_two_classes():
    assert gini(np.array([1.0, 1.0])) / 2 == 0.5
