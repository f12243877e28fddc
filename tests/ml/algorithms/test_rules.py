"""Rules read off a tree: their order, their conflicts, and the last word."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_wine

from app.ml.algorithms import rules
from app.ml.contract import Context, Data, Task


def of(load):
    x, y = load(return_X_y=True)
    return Data.of(Task.CLASSIFICATION, x, y)


def fitted(data, **params):
    asked = rules.RuleSet(**params)
    return asked, rules.fit(asked, data, Context.of(0)).state


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_the_first_rule_that_fires_answers(load):
    data = of(load)
    params, state = fitted(data)
    told = rules.predict(params, state, data.x)
    for row, (x, answer) in enumerate(zip(data.x, told, strict=True)):
        fired = [rule for rule in state.rules if rule.fires(x[None])[0]]
        np.testing.assert_array_equal(answer, fired[0].shares if fired else state.otherwise, err_msg=str(row))
    assert (told.argmax(axis=1) == data.codes).mean() > 0.93


def test_a_rule_tells_the_rows_it_was_made_of():
    data = of(load_breast_cancer)
    _, state = fitted(data)
    for rule in state.rules:
        fires = rule.fires(data.x)
        assert rule.rows == fires.sum() > 0
        np.testing.assert_allclose(rule.shares, data.targets[fires].mean(axis=0))
        assert rule.errors == (data.codes[fires] != rule.shares.argmax()).sum()


def test_rules_are_shorter_than_the_ways_of_the_tree_and_no_worse():
    data = of(load_breast_cancer)
    _, state = fitted(data, max_depth=6)
    assert np.mean([len(rule.tests) for rule in state.rules]) < 3
    limits = [rules._pessimistic(rule) for rule in state.rules]
    assert limits == sorted(limits)


def test_conflicts_are_pairs_that_fire_together_and_disagree():
    data = of(load_breast_cancer)
    _, state = fitted(data)
    fires = np.array([rule.fires(data.x) for rule in state.rules])
    named = [rule.shares.argmax() for rule in state.rules]
    by_hand = {
        (i, j): (fires[i] & fires[j]).sum()
        for i in range(len(named))
        for j in range(i + 1, len(named))
        if named[i] != named[j] and (fires[i] & fires[j]).any()
    }
    assert {(int(i), int(j)): rows for i, j, rows in state.conflicts} == by_hand


def test_an_explanation_names_the_rule_and_who_contradicts_it():
    data = of(load_breast_cancer)
    params, state = fitted(data)
    told = rules.explain(params, state, data.x)
    answers = rules.predict(params, state, data.x)
    for one, answer in zip(told, answers, strict=True):
        if one["rule"] is None:
            np.testing.assert_array_equal(one["otherwise"], answer)
        else:
            assert one["then"] == answer.argmax()
            assert all(i > one["rule"] for i in one["contradicted_by"])
    contradicted = sum(bool(one["contradicted_by"]) for one in told)
    assert (contradicted > 0) == (len(state.conflicts) > 0)


def test_the_pessimistic_error_is_the_upper_limit():
    """Quinlan (1993), section 4.2: U25%(0, 6) = 0.206, U25%(0, 9) = 0.143; and by what a limit is."""
    for errors, rows, limit in ((0, 6, 0.206), (0, 9, 0.143), (1, 16, None), (5, 40, None)):
        found = rules._pessimistic(rules.Rule((), np.ones(1), rows, errors))
        assert limit is None or found == pytest.approx(limit, abs=5e-4)
        assert stats.binom.cdf(errors, rows, found) == pytest.approx(0.25)


def test_missing_values_and_categories():
    rng = np.random.default_rng(0)
    plan, age = rng.integers(0, 4, 300).astype(float), rng.normal(40, 10, 300)
    y = np.isin(plan, [1, 3]) & (age > 35)
    age[::10] = np.nan
    data = Data.of(Task.CLASSIFICATION, np.c_[plan, age], y, levels=[4, 0], missing=True)
    params, state = fitted(data)
    told = rules.predict(params, state, data.x).argmax(axis=1)
    known = ~np.isnan(age)
    assert (told[known] == y[known]).mean() > 0.97
    written = rules.summary(params, state)["rules"]
    assert any(test.get("categories") for rule in written for test in rule["if"])
    unseen = np.array([[np.nan, np.nan]])
    assert np.isfinite(rules.predict(params, state, unseen)).all()
