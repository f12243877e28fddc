"""Weights of goals from preferences: scikit-learn's logistic regression, Bradley–Terry by hand, exact posteriors."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import entr, expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from app.ml.numerics.acquisition.pair_information import first_preferred, pair_information
from app.ml.numerics.linear_models.preference_weights import preference_weights

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("penalty", [1e-6, 0.1, 100.0])
def test_weights_are_those_of_logistic_regression_without_a_constant(penalty):
    differences = RNG.normal(size=(80, 4))
    share = (RNG.random(80) < expit(differences @ [2.0, -1.0, 0.5, 0.0])).astype(float)
    found = preference_weights(differences, share, penalty)
    peer = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(differences, share)
    assert found.mean == pytest.approx(peer.coef_[0], rel=1e-5, abs=1e-6)


def test_the_strengths_of_bradley_and_terry():
    """Two players, of whom one wins 3 of 4 games: log odds ln 3, and the error √(1/3 + 1) of a logarithm of odds."""
    found = preference_weights(np.ones((4, 1)), np.array([1.0, 1, 1, 0]), 1e-6)
    assert found.mean == pytest.approx([np.log(3.0)], abs=1e-5)
    assert found.errors() == pytest.approx([np.sqrt(1 / 3 + 1)], abs=1e-5)
    as_ties = preference_weights(np.ones((2, 1)), np.array([1.0, 0.5]), 1e-6)
    assert as_ties.mean == pytest.approx(found.mean, abs=1e-5)


def test_without_preferences_there_is_the_prior():
    found = preference_weights(np.zeros((0, 3)), np.zeros(0), 0.25)
    assert (found.mean.tolist(), found.errors().tolist()) == ([0.0] * 3, [2.0] * 3)


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_preferences_without_contradiction_have_finite_weights(size):
    differences = np.abs(RNG.normal(size=(200, 2))) * size
    found = preference_weights(differences, np.ones(200), 1e-6)
    slope = differences.T @ (expit(differences @ found.mean) - 1) + 1e-6 * found.mean
    assert np.abs(slope).max() < 1e-8
    assert np.isfinite(found.errors()).all()


def test_spreads_and_draws_have_the_covariance_of_the_posterior():
    differences = RNG.normal(size=(30, 3))
    found = preference_weights(differences, (RNG.random(30) < 0.5).astype(float), 0.5)
    covariance = np.linalg.inv(found.factor @ found.factor.T)
    assert found.spreads(differences) ** 2 == pytest.approx(
        np.einsum("ij,jk,ik->i", differences, covariance, differences)
    )
    turned = found.draws(np.eye(3)) - found.mean[:, None]
    assert turned @ turned.T == pytest.approx(covariance)


@pytest.mark.parametrize(
    ("mean", "deviation"), [(0.0, 0.0), (0.3, 1.0), (-4.0, 0.5), (2.0, 8.0), (0.0, 30.0), (1.0, 1e3)]
)
def test_information_is_that_of_numerical_integration(mean, deviation):
    def over_normal(function):
        if not deviation:
            return function(expit(mean))
        knots = np.linspace(-9, 9, 60)
        parts = [quad(lambda t: function(expit(mean + deviation * t)) * norm.pdf(t), a, b, epsabs=1e-13)[0]
                 for a, b in pairwise(knots)]  # fmt: skip
        return sum(parts)

    def bits(p):
        return (entr(p) + entr(1 - p)) / np.log(2)

    expected = over_normal(lambda p: p)
    means, deviations = np.array([mean]), np.array([deviation])
    assert first_preferred(means, deviations) == pytest.approx([expected], abs=1e-9)
    assert pair_information(means, deviations) == pytest.approx([bits(expected) - over_normal(bits)], abs=1e-8)
    assert pair_information(means, np.zeros(1)) == pytest.approx([0.0], abs=1e-12)
