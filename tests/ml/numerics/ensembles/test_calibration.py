"""Probabilities from votes: the maximum of the likelihood, beside a peer's; what must not change, and what must."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from app.ml.numerics.ensembles.calibration import learned, probabilities

VOTERS = 40


def polled(n, k, sharper, seed=0):
    """Votes (n, k), and classes whose log odds are so many times those of the votes."""
    rng = np.random.default_rng(seed)
    chance = rng.dirichlet(np.ones(k), n)
    votes = np.array([rng.multinomial(VOTERS, p) for p in chance], np.float64)
    truth = chance**sharper
    truth /= truth.sum(axis=1, keepdims=True)
    return votes, np.eye(k)[[rng.choice(k, p=p) for p in truth]]


def learn(votes, targets, weights=None):
    return learned(votes, np.full(len(votes), VOTERS), targets, np.ones(len(votes)) if weights is None else weights)


def loss(powers, votes, targets, weights=None):
    n, k = votes.shape
    truth = (n * targets + 1 / k) / (n + 1)
    logs = np.log(probabilities(votes, VOTERS, np.asarray(powers)))
    return -np.average((truth * logs).sum(axis=1), weights=weights)


@pytest.mark.parametrize(("k", "sharper"), [(2, 1.0), (2, 3.0), (5, 0.5), (5, 2.0)])
def test_nothing_near_is_likelier(k, sharper):
    votes, targets = polled(600, k, sharper)
    weights = np.random.default_rng(1).uniform(0.1, 3, len(votes))
    powers = learn(votes, targets, weights)
    assert (powers >= 0).all()
    for step in 1e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [1, -1]]):
        near = np.maximum(powers + step, 0)
        assert loss(near, votes, targets, weights) >= loss(powers, votes, targets, weights) - 1e-12


def test_of_two_classes_it_is_the_peers_logistic_regression():
    votes, _ = polled(800, 2, 1.0)
    n = len(votes)
    half = (votes + 0.5) / (VOTERS + 1)
    odds = np.column_stack([(votes[:, 1] - votes[:, 0]) / VOTERS, np.log(half[:, 1] / half[:, 0])])
    targets = np.eye(2)[(np.random.default_rng(1).logistic(size=n) < odds @ [2, 1]) * 1]
    parts = ((n * targets + 0.5) / (n + 1)).T.ravel()
    peer = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000)
    peer.fit(np.vstack([odds, odds]), np.repeat([0, 1], n), sample_weight=parts)
    assert (peer.coef_ > 0).all()
    np.testing.assert_allclose(learn(votes, targets), peer.coef_[0], rtol=1e-3)


@pytest.mark.parametrize("sharper", [0.3, 1.0, 4.0])
def test_what_votes_meant_for_some_rows_they_mean_for_others(sharper):
    votes, targets = polled(4000, 3, sharper)
    powers = learn(votes[:2000], targets[:2000])
    result = probabilities(votes[2000:], VOTERS, powers)
    sure = result.max(axis=1)
    right = targets[2000:][np.arange(2000), result.argmax(axis=1)]
    assert abs((sure - right).mean()) < 3 * np.sqrt((sure * (1 - sure)).mean() / 2000)
    np.testing.assert_array_equal(result.argmax(axis=1), votes[2000:].argmax(axis=1))


def test_powers_of_0_and_1_leave_the_shares_as_they_are_but_for_half_a_vote():
    votes = np.array([[300.0, 700, 0], [1000, 0, 0]])
    result = probabilities(votes, 1000, np.array([0.0, 1.0]))
    np.testing.assert_allclose(result, (votes + 0.5) / 1001.5, rtol=1e-12)


def test_rows_without_an_error_make_nothing_certain():
    votes = np.array([[VOTERS, 0.0], [0.0, VOTERS]] * 10)
    sure = probabilities(votes, VOTERS, learn(votes, np.eye(2)[[0, 1] * 10])).max()
    assert sure == pytest.approx(1 - 0.5 / 21, rel=1e-6)  # 20 rows, and one of any class


def test_votes_that_mean_nothing_are_not_believed():
    votes, _ = polled(2000, 4, 1.0)
    powers = learn(votes, np.eye(4)[np.arange(2000) % 4])
    assert np.ptp(probabilities(votes, VOTERS, powers)) < 0.3 < np.ptp(votes / VOTERS)


def test_a_single_class_is_certain():
    votes = np.full((5, 1), VOTERS * 1.0)
    assert probabilities(votes, VOTERS, learn(votes, np.ones((5, 1)))).tolist() == [[1.0]] * 5


def test_rows_without_a_voter_teach_nothing():
    votes, targets = polled(50, 3, 1.0)
    more = np.vstack([votes, np.zeros((20, 3))]), np.append(np.full(50, VOTERS), np.zeros(20))
    result = learned(*more, np.vstack([targets, targets[:20]]), np.ones(70))
    np.testing.assert_array_equal(result, learn(votes, targets))
    assert learned(*(part[50:] for part in more), targets[:20], np.ones(20)).size == 0
