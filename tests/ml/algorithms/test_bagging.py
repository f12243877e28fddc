"""Bagging: resamples, averages, and the rows that were left out."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression

from app.ml.algorithms import bagging
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Data, Task
from app.ml.numerics.sampling.content_order import in_content_order

catalogue()  # which says what a learner may be


@pytest.fixture(scope="module")
def diabetes():
    x, y = load_diabetes(return_X_y=True)
    return Data.of(Task.REGRESSION, x, y)


@pytest.fixture(scope="module")
def cancer():
    x, y = load_breast_cancer(return_X_y=True)
    return Data.of(Task.CLASSIFICATION, x, y)


def fitted(data, **spec):
    params = bagging.Bagging.model_validate(spec)
    return params, bagging.fit(params, data, nested.context(0)).state


@pytest.mark.parametrize(("n", "share"), [(10, 0.65132), (100, 0.63397), (5000, 0.63212)])
def test_the_share_of_distinct_rows(n, share):
    held = [np.unique(bagging.draw(seed, n, n)).size / n for seed in range(4000 if n < 1000 else 200)]
    assert np.mean(held) == pytest.approx(share, abs=4 * np.std(held) / np.sqrt(len(held)) + 5e-6)


def test_the_average_is_no_worse_than_the_members_on_average(diabetes):
    """Jensen, for any rows."""
    params, state = fitted(diabetes, n_estimators=10)
    missed = [np.mean((one.predict(diabetes.x) - diabetes.y) ** 2) for one in state.members]
    assert np.mean((bagging.predict(params, state, diabetes.x) - diabetes.y) ** 2) <= np.mean(missed)


def test_the_ambiguity_decomposition(diabetes):
    """Squared error of the average = mean squared error of the members - their variance around it, exactly."""
    params, state = fitted(diabetes, n_estimators=7)
    result = np.array([one.predict(diabetes.x) for one in state.members])
    average = bagging.predict(params, state, diabetes.x)
    left = np.mean((average - diabetes.y) ** 2)
    assert left == pytest.approx(np.mean((result - diabetes.y) ** 2) - np.mean((result - average) ** 2), rel=1e-12)


def test_out_of_bag_error_is_that_of_rows_that_no_voter_saw(diabetes):
    diabetes = in_content_order(diabetes)
    params = bagging.Bagging.model_validate({"n_estimators": 4, "estimator": {"name": "linear"}})
    found = bagging.fit(params, diabetes, nested.context(0))
    state = found.state
    n = len(diabetes.x)
    total, seen = np.zeros(n), np.zeros(n)
    for seed in nested.context(0).rng.integers(2**63, size=4).tolist():
        rows = bagging.draw(seed, n, n)
        model = LinearRegression().fit(diabetes.x[rows], diabetes.y[rows])
        out = np.setdiff1d(np.arange(n), rows)
        total[out] += model.predict(diabetes.x[out])
        seen[out] += 1
    evaluated = seen > 0
    error = np.sqrt(np.mean((total[evaluated] / seen[evaluated] - diabetes.y[evaluated]) ** 2))
    assert state.out_of_bag == pytest.approx(error, rel=1e-9)
    assert state.evaluated_rows == evaluated.sum() < n
    assert found.warnings[0].startswith(f"{n - evaluated.sum()} rows are known to every member")


def test_a_share_of_the_rows_is_drawn(diabetes):
    """Of 442 rows 0.2, which a tree that is grown out knows by heart: and each has as many chances as another."""
    _, state = fitted(
        diabetes, n_estimators=3, max_samples=0.2, estimator={"name": "decision_tree", "min_samples_leaf": 1}
    )
    assert [member.state.weight[0] for member in state.members] == [88] * 3
    result = np.array([member.predict(diabetes.x) == diabetes.y for member in state.members])
    assert result.mean() == pytest.approx(1 - (1 - 1 / 442) ** 88, abs=0.03)


def test_votes_are_shares_of_the_members(cancer):
    params, state = fitted(cancer, n_estimators=9, voting="hard")
    predicted = bagging.predict(params, state, cancer.x)
    votes = sum(np.eye(2)[one.predict(cancer.x).argmax(axis=1)] for one in state.members)
    np.testing.assert_allclose(predicted, votes / 9, rtol=1e-15)


def test_few_draws_leave_the_out_of_bag_error_undefined():
    one = Data.of(Task.REGRESSION, np.zeros((1, 1)), np.zeros(1))
    _, state = fitted(one, n_estimators=3)
    assert np.isnan(state.out_of_bag)
    assert state.evaluated_rows == 0


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_losses_of_members_are_of_rows_that_each_has_not_seen(cancer, voting):
    cancer, params = in_content_order(cancer), bagging.Bagging(n_estimators=4, voting=voting)
    n, context = len(cancer.x), nested.context(0)
    fit = bagging.fit(params, cancer, context)
    seeds = nested.context(0).rng.integers(2**63, size=4).tolist()
    losses, sizes = [], []
    for seed, member in zip(seeds, fit.state.members, strict=True):
        out = np.setdiff1d(np.arange(n), bagging.draw(seed, n, n))
        votes = bagging._votes(params, member, cancer.x[out])
        losses.append(1 - votes[np.arange(out.size), cancer.codes[out]].mean())
        sizes.append(out.size)
    assert fit.gibbs == (pytest.approx(np.mean(losses)), min(sizes), max(sizes))
