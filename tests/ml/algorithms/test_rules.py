"""Rules read off a tree: their order, their conflicts, and the last word."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_wine

from app.base.errors import InvalidData, InvalidRequest
from app.ml.algorithms import rules
from app.ml.algorithms.decision_tree import DecisionTree
from app.ml.algorithms.decision_tree import fit as fit_tree
from app.ml.algorithms.decision_tree import predict as predict_tree
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.columns import TableColumn
from app.ml.numerics.rules.conditions import together
from app.ml.numerics.trees.growth import Grown
from app.ml.numerics.trees.one_tree import branches_of
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec


def of(load):
    x, y = load(return_X_y=True)
    return Data.of(Task.CLASSIFICATION, x, y)


def fitted(data, **params):
    requested = rules.RuleSet(**params)
    return requested, rules.fit(requested, data, Context.of(0)).state


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_the_first_rule_that_fires_predicts(load):
    data = of(load)
    params, state = fitted(data)
    predicted = rules.predict(params, state, data.x)
    for row, (x, prediction) in enumerate(zip(data.x, predicted, strict=True)):
        fired = [rule for rule in state.rules if rule.fires(x[None])[0]]
        np.testing.assert_array_equal(prediction, fired[0].shares if fired else state.otherwise, err_msg=str(row))
    assert (predicted.argmax(axis=1) == data.codes).mean() > 0.93


def test_a_rule_counts_the_rows_on_which_it_fires_and_has_the_shares_of_those_it_predicts():
    data = of(load_breast_cancer)
    _, state = fitted(data)
    left = np.ones(len(data.x), bool)
    for rule in state.rules:
        fires = rule.fires(data.x)
        assert rule.rows == fires.sum() > 0
        np.testing.assert_allclose(rule.shares, data.targets[left & fires].mean(axis=0))
        left &= ~fires
        assert rule.errors == (data.codes[fires] != rule.shares.argmax()).sum()


def test_rules_are_shorter_than_the_ways_of_the_tree_and_no_worse():
    data = of(load_breast_cancer)
    _, state = fitted(data, max_depth=6)
    assert np.mean([len(rule.tests) for rule in state.rules]) < 3
    limits = [rules._pessimistic(rule) for rule in state.rules]
    assert limits == sorted(limits)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_probabilities_have_the_frequencies_of_the_classes_as_their_mean(load, weighted):
    x, y = load(return_X_y=True)
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    data = Data.of(Task.CLASSIFICATION, x, y, weights=weights)
    params, state = fitted(data)
    means = np.average(rules.predict(params, state, data.x), axis=0, weights=data.weights)
    np.testing.assert_allclose(means, np.average(data.targets, axis=0, weights=data.weights), atol=1e-12)


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
    explanation = rules.explain(params, state, data.x)
    predictions = rules.predict(params, state, data.x)
    for one, predicted in zip(explanation, predictions, strict=True):
        if one["rule"] is None:
            np.testing.assert_array_equal(one["otherwise"], predicted)
        else:
            assert one["then"] == predicted.argmax()
            assert all(i > one["rule"] for i in one["contradicted_by"])
    contradicted = sum(bool(one["contradicted_by"]) for one in explanation)
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
    result = rules.predict(params, state, data.x).argmax(axis=1)
    known = ~np.isnan(age)
    assert (result[known] == y[known]).mean() > 0.97
    written = rules.summary(params, state)["rules"]
    assert any(test.get("categories") for rule in written for test in rule["if"])
    unseen = np.array([[np.nan, np.nan]])
    assert np.isfinite(rules.predict(params, state, unseen)).all()


def test_unshortened_rules_are_the_ways_of_the_tree():
    """B6.1: each way is one rule; they contradict nobody, and one fires on any row."""
    data = of(load_wine)
    params, state = fitted(data, shorten=False)
    assert (np.sum([rule.fires(data.x) for rule in state.rules], axis=0) == 1).all()
    assert len(state.conflicts) == 0
    requested = DecisionTree(max_depth=6, max_leaf_nodes=32, min_samples_leaf=3, prior_weight=0)
    tree = fit_tree(requested, data, Context.of(0)).state
    np.testing.assert_allclose(rules.predict(params, state, data.x), predict_tree(requested, tree, data.x))


@pytest.mark.parametrize("side", [0, 1, 2])
def test_a_row_with_a_missing_value_meets_one_path(side):
    """Missing values go to the left, to the right, or to a third node: every row ends where the tree sends it."""
    nodes, nothing = 4, np.zeros(4)
    tree = Grown(
        column=np.array([0, -1, -1, -1], np.int32),
        threshold=np.array([2.5, 0, 0, 0]),
        left=np.array([1, -1, -1, -1], np.int32),
        missing=np.array([side, -1, -1, -1], np.int8),
        share=np.ones(nodes),
        value=np.arange(4.0)[:, None],
        weight=nothing,
        impurity=nothing,
        gain=nothing,
        members=np.zeros(0, bool),
    )
    branches = branches_of(tree)
    assert [int(branches[name][0]) for name in ("left", "right", "missing")] == [1, 2, 1 + side]
    assert [int(branches[name][1]) for name in branches] == [-1, -1, -1]
    x = np.array([[1.0], [2.5], [3.0], [np.nan]])
    paths = list(rules._read_off(tree, np.zeros(1, np.intp)))
    assert len(paths) == 3
    np.testing.assert_array_equal(np.sum([together(tests, x) for tests in paths], axis=0), 1)


WAYS = ["walk", "bus", "car"]


def travellers():
    """Miles, wealth, continent and weather, and how each travelled."""
    miles, wealthy, europe, sunny = (
        part.ravel() for part in np.meshgrid([0.5, 1.0, 2.5, 4.0], [0, 1], [0, 1], [0, 1], indexing="ij")
    )
    x = np.column_stack([miles, wealthy, europe, sunny]).astype(float)
    x[3, 0] = np.nan
    y = np.where((europe == 0) & (wealthy == 1), 2, np.where(miles < 2, 0, 1))
    words = ((), (), ("America", "Europe"), ("rain", "sun"))
    return Data.of(
        *(Task.CLASSIFICATION, x, y),
        levels=[0, 0, 2, 2],
        missing=True,
        names=["miles", "wealthy", "continent", "weather"],
        words=words,
        labels=WAYS,
    )


def rule(then, *tests):
    names = "column", "op", "value"
    result = [dict(zip(names, test, strict=False)) for test in tests]
    for one in result:
        if isinstance(one.get("value"), list):
            one["values"] = one.pop("value")
    return {"tests": result, "then": then}


def given(data, *result, **params):
    params = rules.RuleSet(given=list(result), **params)
    return params, rules.fit(params, data, Context.of(0))


def named(params, fit, x):
    return [WAYS[code] for code in rules.predict(params, fit.state, np.array(x, float)).argmax(axis=1)]


def test_given_rules_are_tried_in_their_order_and_else_comes_last():
    """B6.1: less than 3 km and no car: walk, else the bus; less than 2 miles and sunny: walk."""
    data = travellers()
    walk = rule("walk", ("miles", "<", 3), ("wealthy", "==", False))
    params, fit = given(data, walk, otherwise="bus")
    assert named(params, fit, [[2.9, 0, 0, 0], [3.0, 0, 0, 0], [1, 1, 0, 0], [np.nan, 0, 0, 0]]) == [
        *("walk", "bus", "bus", "bus")
    ]
    sunny = rule("walk", ("miles", "<", 2), ("weather", "==", "sun"))
    params, fit = given(data, sunny, otherwise="bus")
    assert named(params, fit, [[1, 0, 0, 1], [1, 0, 0, 0], [2, 0, 0, 1]]) == ["walk", "bus", "bus"]
    assert set(np.unique(rules.predict(params, fit.state, data.x))) == {0.0, 1.0}


def test_a_given_rule_may_be_less_than_sure():
    """B6.1: then a distribution, the rest of which the other classes share as the training rows have them."""
    data = travellers()
    walk = {**rule("walk", ("miles", "<", 2)), "sure": 0.7}
    params, fit = given(data, walk, otherwise="bus")
    near = rules.predict(params, fit.state, np.array([[1.0, 0, 0, 0]]))[0]
    bus, car = (data.codes == 1).sum(), (data.codes == 2).sum()
    np.testing.assert_allclose(near, [0.7, 0.3 * bus / (bus + car), 0.3 * car / (bus + car)], rtol=1e-12)
    (result,) = rules.summary(params, fit.state)["rules"]
    fires = data.x[:, 0] < 2
    assert (result["then"], result["errors"]) == (0, (data.codes[fires] != 0).sum())
    with pytest.raises(ValueError, match=r"greater than 0\.5"):
        given(data, {**walk, "sure": 0.5})
    alone = Data.of(Task.CLASSIFICATION, [[1.0], [2.0]], [0, 0], names=["miles"])
    params, fit = given(alone, {**rule(0, ("miles", "<", 3)), "sure": 0.7})
    assert rules.predict(params, fit.state, alone.x).tolist() == [[1.0], [1.0]]


def test_who_is_hotter_than_37_degrees_is_ill():
    data = Data.of(Task.CLASSIFICATION, [[36.0], [37.0], [38.5], [39.0]], [0, 0, 1, 0], names=["celsius"])
    params, fit = given(data, rule(1, ("celsius", ">", 37)), otherwise=0)
    assert rules.predict(params, fit.state, data.x).argmax(axis=1).tolist() == [0, 0, 1, 1]
    (result,) = rules.summary(params, fit.state)["rules"]
    assert (result["then"], result["rows"], result["errors"]) == (1, 2, 1)


def test_the_wealthy_european_is_a_conflict_that_the_order_decides():
    """B6.1, Fig. 6.1: a mile away, one rule says walk, the other car."""
    data = travellers()
    walk = rule("walk", ("continent", "in", ["Europe"]), ("miles", "<", 2))
    car = rule("car", ("wealthy", "==", 1))
    wealthy_european = [[1.0, 1, 1, 0]]
    for order, predicted in (((walk, car), "walk"), ((car, walk), "car")):
        params, fit = given(data, *order)
        assert named(params, fit, wealthy_european) == [predicted]
        (conflict,) = rules.summary(params, fit.state)["conflicts"]
        assert conflict == {"rules": [0, 1], "rows": 4.0}
        (explanation,) = rules.explain(params, fit.state, np.array(wealthy_european))
        assert (explanation["rule"], explanation["contradicted_by"]) == (0, [1])
        left = ~np.any([one.fires(data.x) for one in fit.state.rules], axis=0)
        np.testing.assert_allclose(fit.state.otherwise, data.targets[left].mean(axis=0))


@pytest.mark.parametrize(
    ("test", "holds"),
    [
        (("miles", "<", 2.5), [1, 0, 0, 0]),
        (("miles", "<=", 2.5), [1, 1, 0, 0]),
        (("miles", ">", 2.5), [0, 0, 1, 0]),
        (("miles", ">=", 2.5), [0, 1, 1, 0]),
        (("miles", "==", 2.5), [0, 1, 0, 0]),
        (("miles", "!=", 2.5), [1, 0, 1, 0]),
        (("miles", "known"), [1, 1, 1, 0]),
        (("miles", "missing"), [0, 0, 0, 1]),
        (("weather", "==", "sun"), [0, 1, 0, 0]),
        (("weather", "!=", "sun"), [1, 0, 1, 0]),
        (("weather", "in", ["sun", "rain"]), [1, 1, 1, 0]),
        (("weather", "not in", ["sun"]), [1, 0, 1, 0]),
    ],
)
def test_every_test_means_what_it_says(test, holds):
    """Of a missing value nothing holds but that it is missing."""
    params, fit = given(travellers(), rule("walk", test), otherwise="bus")
    rows = [[1, 0, 0, 0], [2.5, 0, 0, 1], [3, 0, 0, 0], [np.nan, 0, 0, np.nan]]
    assert named(params, fit, rows) == ["walk" if one else "bus" for one in holds]


def test_what_no_row_has_is_refused_or_reported():
    data = travellers()
    with pytest.raises(InvalidData) as refused:
        given(data, rule("walk"), rule("fly", ("gone", "known")))
    assert {fault.pointer for fault in refused.value.faults} == {
        *("/algorithm/given/1/then", "/algorithm/given/1/tests/0/column")
    }
    with pytest.raises(InvalidData) as refused:
        given(data, rule("walk"), otherwise="fly")
    assert [fault.pointer for fault in refused.value.faults] == ["/algorithm/otherwise"]
    _, fit = given(data, rule("walk", ("weather", "in", ["sun", "snow"])))
    assert "Test 0 of given rule 0" in fit.warnings[0]
    assert "snow" not in fit.warnings[0]


def test_a_plan_points_at_every_test_that_cannot_be():
    kinds = {"miles": "numeric", "wealthy": "boolean", "weather": "categorical", "way": "categorical"}
    columns = [TableColumn(name, kind, 0, 3) for name, kind in kinds.items()]
    wrong = {
        "0/column": ("way", "known"),
        "1/op": ("miles", "in", ["a"]),
        "2/value": ("miles", "<", "a"),
        "3/op": ("weather", "<=", "sun"),
        "4/value": ("weather", "==", 1),
        "5/value": ("wealthy", "=="),
        "6/values": ("weather", "not in"),
        "7/value": ("miles", "missing", 1),
    }
    algorithm = {"name": "rules", "given": [rule("walk", *wrong.values(), ("wealthy", "!=", True))]}
    with pytest.raises(InvalidRequest) as refused:
        plan(TrainSpec(target="way", algorithm=algorithm), columns, 50)
    assert [fault.pointer for fault in refused.value.faults] == [f"/algorithm/given/0/tests/{place}" for place in wrong]
