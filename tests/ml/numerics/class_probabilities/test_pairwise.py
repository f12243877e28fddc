"""Pairwise coupling: consistent pairs give their probabilities back, and the sum is minimal."""

import numpy as np
import pytest
from scipy.optimize import minimize

from app.ml.numerics.class_probabilities.pairwise import coupled

PAIRS = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])


def test_consistent_pairs_give_their_probabilities_back():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    later = p[:, PAIRS[:, 1]] / (p[:, PAIRS[:, 0]] + p[:, PAIRS[:, 1]])
    np.testing.assert_allclose(coupled(later, PAIRS, 4), p, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_sum_of_squares_is_minimal(seed):
    later = np.random.default_rng(seed).uniform(0.05, 0.95, (1, 6))

    def loss(p):
        terms = ((1 - r) * p[j] - r * p[i] for r, (i, j) in zip(later[0], PAIRS, strict=True))
        return 2 * sum(term**2 for term in terms)

    bounds = {"type": "eq", "fun": lambda p: p.sum() - 1}
    best = minimize(loss, np.full(4, 0.25), bounds=[(0, 1)] * 4, constraints=bounds, tol=1e-14)
    np.testing.assert_allclose(coupled(later, PAIRS, 4)[0], best.x, atol=1e-5)


def test_certain_pairs_have_a_defined_result():
    found = coupled(np.array([[0.0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]), PAIRS, 4)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found.argmax(axis=1).tolist() == [0, 3]
