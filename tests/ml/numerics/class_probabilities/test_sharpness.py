"""The factor of scores below the softmax."""

import numpy as np
import pytest
import scipy

from app.ml.numerics.class_probabilities.sharpness import sharpness


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_likelihood_is_the_largest(k):
    """Beside scipy's minimum of the cross-entropy to Platt's targets."""
    rng = np.random.default_rng(k)
    scores = 40 * rng.normal(size=(300, k))
    targets = np.eye(k)[(scores / 20 + rng.gumbel(size=(300, k))).argmax(axis=1)]
    weights = rng.uniform(0.5, 2, 300)
    shares = weights / weights.sum()
    counts = (targets * (300 * shares @ targets)).sum(axis=1, keepdims=True)
    wanted = (1 + targets * counts) / (counts + k)

    def loss(factor):
        return -shares @ (wanted * scipy.special.log_softmax(factor * scores, axis=1)).sum(axis=1)

    expected = scipy.optimize.minimize_scalar(loss, bounds=(0, 1), options={"xatol": 1e-12}).x
    assert sharpness(scores, targets, weights) == pytest.approx(expected, rel=1e-5)


def test_classes_that_the_scores_part_have_a_finite_factor():
    scores = np.array([[1.0, -1.0], [-1.0, 1.0]])
    factor = sharpness(scores, np.eye(2), np.ones(2))
    assert scipy.special.expit(2 * factor) == pytest.approx(2 / 3)


def test_scores_that_mislead_keep_their_order():
    scores = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert 0 < sharpness(scores, np.eye(2)[::-1], np.ones(2)) < 1e-5
    assert sharpness(np.zeros((4, 2)), np.eye(2)[[0, 1, 0, 1]], np.ones(4)) == 1
