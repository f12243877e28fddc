"""Oblique splits and linear leaves: by their definitions, against plain trees, with gaps, stored and back."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LinearRegression, Ridge

from app.base.errors import CorruptModel
from app.ml.algorithms.decision_tree import DecisionTree, State, explain, fit, predict, rules, summary
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.models import state_format
from app.ml.numerics.linear_models.forward_selection import Standard
from app.ml.numerics.trees import oblique
from app.ml.numerics.trees.binning import ranked
from app.ml.numerics.trees.growth import Grower
from app.ml.numerics.trees.linear_forms import MEANS, NONE, Form, joined, predictions, reached

NAN = np.nan
C, R = Task.CLASSIFICATION, Task.REGRESSION


def fitted(data, **params):
    params = DecisionTree(**({"oblique": 10, "prior_weight": 0} | params))
    return params, fit(params, data, Context.of(0)).state


def spending(n=200):
    """B6.5: is the average of what is spent on cars and motorbikes more than 20,000?"""
    x = np.random.default_rng(0).uniform(0, 40_000, (n, 2))
    return Data.of(C, x, x.mean(axis=1) > 20_000)


def test_an_average_above_a_threshold_is_one_split():
    data = spending()
    params, state = fitted(data)
    assert (predict(params, state, data.x).argmax(axis=1) == data.codes).mean() >= 0.97
    (reason,) = explain(params, state, data.x[:1])
    split = reason["path"][0]
    first, second = (term["coef"] for term in split["terms"])
    assert [term["column"] for term in split["terms"]] == [0, 1]
    assert second / first == pytest.approx(1, abs=0.1)
    assert split["threshold"] / (first + second) == pytest.approx(20_000, rel=0.02)
    plain = fitted(data, oblique=None)[1]
    assert len(state.trees.column) < len(plain.trees.column) / 3
    shares = {part["column"]: part["importance"] for part in summary(params, state)["importances"]}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[0] == pytest.approx(shares[1], abs=0.1)
    assert summary(params, state)["oblique"] == (state.trees.column >= 2).sum() > 0


@pytest.mark.parametrize(("load", "better"), [(load_wine, 0.05), (load_breast_cancer, 0.01)])
def test_better_than_one_column_at_a_time_on_rows_held_out(load, better):
    x, y = load(return_X_y=True)
    part = np.random.default_rng(0).permutation(len(x)) % 3
    right = {True: 0, False: 0}
    for fold, oblique_ in itertools.product(range(3), right):
        data = Data.of(C, x[part != fold], y[part != fold])
        params, state = fitted(data, oblique=10 if oblique_ else None)
        right[oblique_] += (predict(params, state, x[part == fold]).argmax(axis=1) == y[part == fold]).sum()
    assert right[True] / len(x) > right[False] / len(x) + better


def test_a_node_weighs_two_rows_for_each_column_of_its_sum():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(120, 12))
    data = Data.of(C, x, x.sum(axis=1) + rng.normal(size=120) > 0, weights=rng.uniform(0.5, 1.5, 120))
    _, state = fitted(data, oblique=12, min_samples_leaf=1)
    forms = np.flatnonzero(state.trees.column >= 12)
    sizes = [state.splits.one(state.trees.column[node] - 12).column.size for node in forms]
    assert max(sizes) > 4
    assert (state.weight[forms] >= 2 * np.array(sizes)).all()


def mixed(task, n=150, seed=0, gaps=0.15):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 5, n), rng.normal(5, 3, n), rng.normal(size=n)])
    slope = x[:, 0] + 0.4 * x[:, 2] - (x[:, 1] == 2) + 0.5 * rng.normal(size=n)
    x[rng.random(x.shape) < gaps] = NAN
    y = slope if task is R else (slope > 1.5) + 1.0 * (slope > 3)
    return Data.of(task, x, y, levels=[0, 5, 0, 0], missing=True)


@pytest.mark.parametrize("task", [C, R])
@pytest.mark.parametrize(
    "limit", [{}, {"max_leaf_nodes": 7}, {"max_depth": 3, "missing": "both"}, {"min_impurity_decrease": 0.05}]
)
def test_without_forms_it_is_the_tree_that_compiled_code_grows(task, limit):
    """With one numeric column there is nothing to combine."""
    data = mixed(task)
    data = Data.of(task, data.x[:, :2], data.y, levels=data.levels[:2], missing=True)
    how = rules(DecisionTree(**limit), data)
    tree, forms = oblique.grow(data, how, 5, exact=True, report=lambda _: None)
    plain = Grower(data, *ranked(data)).grow(data.weights, how)
    assert forms.size == 0
    for name in set(plain._fields) - {"threshold", "members"}:
        np.testing.assert_allclose(getattr(tree, name), getattr(plain, name), rtol=1e-9, atol=1e-12, err_msg=name)
    for node in np.flatnonzero(plain.column == 0):
        assert tree.threshold[node] == plain.threshold[node]
    for node in np.flatnonzero(plain.column == 1):
        one, other = (each.members[int(each.threshold[node]) :][:5].tolist() for each in (tree, plain))
        assert one == other


@pytest.mark.parametrize("task", [C, R])
@pytest.mark.parametrize("seed", range(3))
def test_a_split_gains_no_less_than_any_of_one_column(task, seed):
    data = mixed(task, seed=seed)
    for criterion in ("gini", "entropy"):
        both = [fitted(data, oblique=most, max_depth=1, criterion=criterion)[1] for most in (10, None)]
        assert both[0].gain[0] >= both[1].gain[0] * (1 - 1e-9)
        assert (both[0].trees.column[0] >= 4) == (both[0].gain[0] > both[1].gain[0] * (1 + 1e-9))


def walked(state, row, node=0):
    """What one row hears from a node on, by the definition."""
    trees, forms = state.trees, state.splits
    column, left = trees.column[node], trees.left[node]
    if column < 0:
        if not state.leaves.forms.size:
            return trees.values[left]
        own, low, high = state.leaves
        terms = [
            term["coef"] * (row[term["column"]] - c)
            for term, c in zip(own.terms(left), centres(own, left), strict=True)
        ]
        return np.clip(trees.values[left] + np.nansum(terms), low[left], high[left])
    value = row[column] if column < len(row) else formed(forms, column - len(row), row)
    if np.isnan(value):
        if trees.missing[node] >= 0:
            return walked(state, row, left + trees.missing[node])
        share = trees.share[node]
        return share * walked(state, row, left) + (1 - share) * walked(state, row, left + 1)
    if trees.levels[column] and np.isfinite(trees.threshold[node]):
        return walked(state, row, left + (not trees.members[int(trees.threshold[node] + value)]))
    return walked(state, row, left + (value > trees.threshold[node]))


def centres(forms, place):
    return forms.centre[forms.start[place] : forms.start[place + 1]]


def formed(forms, place, row):
    result = zip(forms.terms(place), centres(forms, place), strict=True)
    return sum(term["coef"] * (row[term["column"]] - centre) for term, centre in result)


@pytest.mark.parametrize("missing", ["branch", "both"])
@pytest.mark.parametrize(("task", "leaf"), [(C, "mean"), (R, "mean"), (R, "linear")])
def test_predictions_are_their_definition(task, leaf, missing):
    params, state = fitted(mixed(task), leaf_model=leaf, missing=missing, min_samples_leaf=8)
    new = mixed(task, n=60, seed=5, gaps=0.3).x
    result = predict(params, state, new).reshape(60, -1)
    np.testing.assert_allclose(result, [walked(state, row) for row in new], rtol=1e-12)
    assert state.splits.size
    assert predict(params, state, new[7:8]).tobytes() == result[7:8].tobytes(), "company changes nothing"


@pytest.mark.parametrize("task", [C, R])
def test_an_explanation_leads_to_the_prediction(task):
    data = mixed(task)
    params, state = fitted(data, leaf_model="linear", min_samples_leaf=8)
    accepted, terms = predict(params, state, data.x), 0
    for row, result, predicted in zip(data.x, explain(params, state, data.x), accepted, strict=True):
        for split in result["path"]:
            if split["op"] in {"<=", ">"} and "terms" in split:
                terms += 1
                value = sum(term["coef"] * row[term["column"]] for term in split["terms"])
                assert (value <= split["threshold"]) == (split["op"] == "<=")
        line = result["leaf"].get("linear")
        if line and not np.isnan(row).any():
            value = line["intercept"] + sum(term["coef"] * row[term["column"]] for term in line["terms"])
            assert predicted == pytest.approx(np.clip(value, line["low"], line["high"]))
    assert terms


def stump(share=0.3):
    """x0 + 2 x1 <= 4, in other words; no way for the missing."""
    form = joined([Form(np.array([0, 1], np.int32), np.array([1.0, 2.0]), np.array([1.0, 1.0]), np.array([0.5, 0.5]))])
    _, state = fitted(Data.of(R, [[0.0, 0.0], [9.0, 9.0]], [10.0, 20.0]), min_samples_leaf=1, oblique=None)
    trees = state.trees._replace(
        column=np.array([2, -1, -1], np.int32),
        threshold=np.array([1.0, 0.0, 0.0]),
        share=np.array([share, 1.0, 1.0]),
        levels=np.zeros(3, np.int64),
    )
    return state._replace(trees=trees, splits=form)


def test_a_missing_part_of_a_sum_sends_a_row_both_ways():
    """B6.7: 30 % of the training rows left to 10, 70 % right to 20: 17."""
    rows = np.array([[2.0, 1.0], [2.1, 1.0], [2.0, NAN], [NAN, 9.0]])
    state = stump()
    assert predict(DecisionTree(), state, rows).tolist() == [10, 20, 17, 17]
    assert reached(state.trees, state.splits, rows).tolist() == [1, 2, -1, -1]
    explanation = explain(DecisionTree(), state, rows)
    assert explanation[2]["path"] == []
    assert [term["column"] for term in explanation[2]["leaf"]["terms"]] == [0, 1]
    assert "both branches" in explanation[2]["leaf"]["stopped"]
    assert explanation[0]["path"][0]["threshold"] == 4


def test_stored_and_back_and_without_the_younger_fields():
    params, state = fitted(mixed(R), leaf_model="linear")
    arrays = {}
    packed = state_format.pack(state, "state", arrays)
    back = state_format.unpack(State, packed, arrays)
    np.testing.assert_array_equal(predict(params, back, mixed(R).x), predict(params, state, mixed(R).x))
    plain = fitted(mixed(R), oblique=None)[1]
    older = state_format.pack(plain, "state", arrays)
    del older["fields"]["splits"], older["fields"]["leaves"]
    read = state_format.unpack(State, older, arrays)
    np.testing.assert_array_equal(predict(params, read, mixed(R).x), predict(params, plain, mixed(R).x))
    del older["fields"]["gain"]
    with pytest.raises(KeyError):
        state_format.unpack(State, older, arrays)


LIES = {
    "a column that is not there": {"column": [0, 2]},
    "one before the first": {"column": [-1, 1]},
    "entries that are not there": {"start": [0, 3]},
    "entries backwards": {"start": [2, 0]},
    "no form": {"start": [0]},
    "too few centres": {"centre": [1.0]},
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_refused_before_compiled_code_follows_them(lie):
    state = stump()
    result = {name: np.array(value, getattr(state.splits, name).dtype) for name, value in LIES[lie].items()}
    with pytest.raises(CorruptModel):
        predictions(state.trees, state.splits._replace(**result), MEANS, np.zeros((1, 2)))


def test_leaves_that_lie_are_refused():
    _, state = fitted(mixed(R), leaf_model="linear", oblique=None)
    for leaves in (state.leaves._replace(low=np.zeros(1)), state.leaves._replace(forms=state.leaves.forms.take([0]))):
        with pytest.raises(CorruptModel):
            predictions(state.trees, NONE, leaves, np.zeros((1, 4)))


def rows_left(x, y, columns):
    design = np.column_stack([np.ones(len(x)), x[:, columns]])
    return float(((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum())


def test_columns_are_chosen_as_by_trying_each():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 6)) * [1, 10, 1, 0.1, 1, 1]
    x[:, 5] = x[:, 0] - x[:, 2]  # says nothing new
    y = x @ [1, 0.05, 1, 3, 0, 0] + rng.normal(size=60)
    standard = Standard.of(Data.of(R, x + 100, y))
    order, squares = standard.chosen(10)
    assert order.size == 5
    assert squares[0] == pytest.approx(((y - y.mean()) ** 2).sum())
    taken = []
    for column, left in zip(order.tolist(), squares[1:], strict=True):
        best = min(set(range(6)) - set(taken), key=lambda j: rows_left(x, y, [*taken, j]))
        taken.append(column)
        assert left == pytest.approx(rows_left(x, y, taken))
        assert left == pytest.approx(rows_left(x, y, [*taken[:-1], best]))


def test_a_direction_is_the_ridge_on_standardised_columns():
    data = mixed(R, gaps=0).columns(np.array([0, 2, 3]))
    standard = Standard.of(data)
    scaled = (data.x - data.x.mean(axis=0)) / data.x.std(axis=0)
    theirs = Ridge(alpha=1.0).fit(scaled[:, [0, 1]], data.y)
    np.testing.assert_allclose(standard.ridge(np.array([0, 1]), 1.0)[:, 0], theirs.coef_, rtol=1e-10)


def test_a_leaf_predicts_by_the_line_of_its_rows():
    """Two lines that meet at 0: two leaves, without error; a tree of means needs one for every step."""
    x = np.linspace(-4, 4, 81)[:, None]
    y = np.where(x[:, 0] <= 0, -3 * x[:, 0], 100 + 2 * x[:, 0])
    data = Data.of(R, np.column_stack([x, np.sin(9 * x)]), y)
    params, state = fitted(data, leaf_model="linear", oblique=None, max_leaf_nodes=2)
    np.testing.assert_allclose(predict(params, state, data.x), y, rtol=1e-6, atol=1e-6)
    assert summary(params, state)["lines"] == 2
    (result,) = explain(params, state, data.x[:1])
    assert result["leaf"]["linear"]["terms"][0] == {"column": 0, "coef": pytest.approx(-3, rel=1e-6)}
    assert result["leaf"]["linear"]["intercept"] == pytest.approx(0, abs=1e-5)
    beyond = np.array([[-100.0, 0.0], [100.0, 0.0], [NAN, NAN]])
    result = predict(params, state, beyond)
    assert result[:2].tolist() == [12, 108], "the ends of what its rows say"


def test_a_leaf_takes_the_columns_that_m5_expects_to_pay():
    data = mixed(R, gaps=0)
    _, state = fitted(data, leaf_model="linear", oblique=None, max_depth=0)
    taken = state.leaves.forms.column.tolist()
    numeric = [0, 2, 3]
    n = len(data.x)

    def expected(columns):
        left = rows_left(data.x, data.y, list(columns))
        return np.sqrt(left / n) * (n + 1 + len(columns)) / (n - 1 - len(columns))

    assert taken == [0, 2]
    assert expected(taken) == min(expected(c) for size in range(4) for c in itertools.combinations(numeric, size))
    theirs = LinearRegression().fit(data.x[:, taken], data.y)
    np.testing.assert_allclose(state.leaves.forms.coef, theirs.coef_, rtol=1e-7)


def test_few_or_equal_rows_have_their_mean():
    flat = Data.of(R, np.arange(6.0)[:, None], [1.0, 1, 1, 5, 5, 5])
    for data, depth in ((flat, None), (Data.of(R, [[1.0], [2.0]], [3.0, 5.0]), 0), (mixed(R).take(np.arange(1)), 0)):
        params, state = fitted(data, leaf_model="linear", oblique=None, max_depth=depth)
        assert state.leaves.forms.column.size == 0
        plain = fitted(data, oblique=None, max_depth=depth)[1]
        assert predict(params, state, data.x).tolist() == predict(params, plain, data.x).tolist()


def test_linear_leaves_are_nearer_to_what_is_smooth():
    rng = np.random.default_rng(2)
    x = rng.uniform(-2, 2, (600, 3))
    y = np.sin(x[:, 0]) * 3 + x[:, 1] * (x[:, 2] > 0) + 0.1 * rng.normal(size=600)
    data, errors = Data.of(R, x[:400], y[:400]), {}
    for leaf in ("mean", "linear"):
        params, state = fitted(data, leaf_model=leaf, oblique=None, min_samples_leaf=15)
        errors[leaf] = float(np.mean((predict(params, state, x[400:]) - y[400:]) ** 2))
    assert errors["linear"] < errors["mean"] / 2


def test_a_row_of_weight_two_is_the_row_twice():
    data = mixed(R, n=80)
    twice = np.random.default_rng(1).integers(1, 3, 80)
    weighted = Data.of(R, data.x, data.y, weights=twice, levels=data.levels, missing=True)
    repeated = data.take(np.repeat(np.arange(80), twice))
    (params, one), (_, other) = (fitted(each, leaf_model="linear", min_samples_leaf=6) for each in (weighted, repeated))
    np.testing.assert_allclose(predict(params, one, data.x), predict(params, other, data.x), rtol=1e-8)


def test_pruning_leaves_no_form_behind():
    data = mixed(C, n=300)
    params, state = fitted(data, ccp_alpha=0.01)
    assert len(state.trees.column) < len(fitted(data)[1].trees.column)
    requested = state.trees.column[state.trees.column >= 4] - 4
    assert sorted(requested) == list(range(state.splits.size))
    predicted = predict(params, state, data.x)
    np.testing.assert_allclose(predicted, [walked(state, row) for row in data.x], rtol=1e-12)


@pytest.mark.parametrize("task", [C, R])
def test_units_of_columns_change_nothing(task):
    data, units = mixed(task), np.array([2.0**500, 1, 2.0**-500, 2.0**30])
    other = Data.of(task, data.x * units, data.y, levels=data.levels, missing=True)
    (params, one), (_, two) = (fitted(each, leaf_model="linear", min_samples_leaf=8) for each in (data, other))
    np.testing.assert_array_equal(predict(params, one, data.x), predict(params, two, other.x))
    assert one.splits.size
