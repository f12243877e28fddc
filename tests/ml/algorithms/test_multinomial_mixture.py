"""Multinomial mixtures beside scipy's multinomial distribution and counts drawn from known topics."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from app.base.errors import InvalidData
from app.ml.algorithms import multinomial_mixture
from app.ml.algorithms.multinomial_mixture import MultinomialMixture
from app.ml.contract.algorithm import Context, Data, Task

TOPICS = np.array([[0.6, 0.2, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.2, 0.6], [0.1, 0.1, 0.6, 0.1, 0.1]])
OWN = np.repeat([0, 1, 2], [150, 90, 60])
COUNTS = np.stack([np.random.default_rng(i).multinomial(20 + i % 30, TOPICS[k]) for i, k in enumerate(OWN)]) * 1.0


def fitted(x, weights=None, **params):
    params = MultinomialMixture(**{"n_components": 3} | params)
    return params, multinomial_mixture.fit(params, Data.of(Task.CLUSTERING, x, weights=weights), Context.of(0))


def test_topics_that_made_the_counts_are_found():
    params, fit = fitted(COUNTS)
    order = [int(np.abs(fit.state.profiles - topic).sum(axis=1).argmin()) for topic in TOPICS]
    np.testing.assert_allclose(fit.state.profiles[order], TOPICS, atol=0.02)
    np.testing.assert_allclose(fit.state.shares[order], [0.5, 0.3, 0.2], atol=0.03)
    labels = multinomial_mixture.predict(params, fit.state, COUNTS)
    assert (labels == np.array(order)[OWN]).mean() > 0.97


def test_log_densities_and_memberships_are_those_of_scipy():
    params, fit = fitted(COUNTS, alpha=0)
    state, totals = fit.state, COUNTS.sum(axis=1)
    joint = np.stack(
        [
            np.log(share) + stats.multinomial(totals, profile[None]).logpmf(COUNTS)
            for share, profile in zip(state.shares, state.profiles, strict=True)
        ],
        axis=1,
    )
    logs = logsumexp(joint, axis=1)
    np.testing.assert_allclose(multinomial_mixture.log_density(params, state, COUNTS), logs, rtol=1e-9)
    found = multinomial_mixture.memberships(params, state, COUNTS)
    np.testing.assert_allclose(found, np.exp(joint - logs[:, None]), atol=1e-9)
    constant = multinomial_mixture.mixture.log_coefficient(COUNTS)
    assert fit.curves["objective"][-1] == pytest.approx((logs - constant).mean(), rel=1e-9)


@pytest.mark.parametrize("alpha", [0, 0.01, 5])
def test_the_objective_never_falls(alpha):
    for x in (COUNTS, np.eye(5)[OWN], np.zeros((6, 3)), np.vstack([COUNTS, 1000 * COUNTS[:3]])):
        _, fit = fitted(x, n_components=5, alpha=alpha, tol=0, max_iter=80)
        assert (np.diff(fit.curves["objective"]) >= 0).all()
        assert np.isfinite(fit.state.profiles).all()


def test_one_component_has_the_shares_of_all_counts():
    weights = np.linspace(1, 2, 300)
    _, fit = fitted(COUNTS, weights, n_components=1, alpha=0)
    np.testing.assert_allclose(fit.state.profiles[0], weights @ COUNTS / (weights @ COUNTS).sum(), rtol=1e-12)
    np.testing.assert_allclose(fit.state.means[0], np.average(COUNTS, axis=0, weights=weights), rtol=1e-12)


def test_no_other_profiles_near_are_likelier():
    params, fit = fitted(COUNTS, alpha=0, tol=0, max_iter=2000)
    best, rng = multinomial_mixture.log_density(params, fit.state, COUNTS).sum(), np.random.default_rng(0)
    for _ in range(20):
        other = fit.state.profiles * np.exp(0.02 * rng.normal(size=(3, 5)))
        other = fit.state._replace(profiles=other / other.sum(axis=1, keepdims=True))
        assert multinomial_mixture.log_density(params, other, COUNTS).sum() < best


def test_composition_matters_and_length_does_not():
    params, fit = fitted(COUNTS)
    few, many = (multinomial_mixture.predict(params, fit.state, np.rint(n * TOPICS)) for n in (20, 2000))
    assert few.tolist() == many.tolist()
    assert sorted(few) == [0, 1, 2]


def test_numbers_below_zero_are_refused_and_fractions_reported():
    x = COUNTS.copy()
    x[3, 1] = -1
    with pytest.raises(InvalidData, match="these columns have others: 1"):
        fitted(x)
    x[3, 1] = 0.5
    assert fitted(x)[1].warnings == ["These columns hold fractions, which are taken for counts: 1."]


def test_rows_of_one_composition_are_one_component():
    _, fit = fitted(np.outer([1.0, 2, 4, 8], [3, 1, 0]))
    assert fit.warnings == ["Only 1 rows differ in the shares of their columns, so there are 1 components."]
    np.testing.assert_allclose(fit.state.profiles, [[0.75, 0.25, 0]], atol=1e-3)
