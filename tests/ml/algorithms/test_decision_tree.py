"""Decision tree: the book's numbers, every split against brute force, scikit-learn grown to the same size."""

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import datasets
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from app.ml.algorithms.decision_tree import EXACT, DecisionTree, explain, fit, predict, summary
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.trees.one_tree import branches_of, depth, path

NAN = np.nan
C, R = Task.CLASSIFICATION, Task.REGRESSION


def rng(seed=0):
    return np.random.default_rng(seed)


def of(task, x, y, **more):
    return Data.of(task, x, y, missing=True, **more)


def grown(data, *, exact=True, **params):
    """The state, and its parts by name; leaves have the shares of their rows."""
    splits = "exact" if exact else "binned"
    params = DecisionTree(**{"min_samples_leaf": 1, "prior_weight": 0, "splits": splits, **params})
    state = fit(params, data, Context.of(0)).state
    below = branches_of(state.trees)
    return SimpleNamespace(**(state.trees._asdict() | state._asdict() | below), value=state.trees.values, state=state)


def leaves(tree, x):
    """The node where each row ends."""
    return np.array([path(tree.state.trees, row)[-1] for row in x])


def risk(tree):
    """What the tree has left of the impurity, over all training rows."""
    leaf = tree.column < 0
    return float((tree.weight * tree.impurity)[leaf].sum())


def impurity_of(data, rows, criterion):
    """Impurity × weight from its definition."""
    w = data.weights[rows]
    if not w.size:
        return 0.0
    if data.task is R:
        return float(w @ (data.y[rows] - np.average(data.y[rows], weights=w)) ** 2)
    p = np.bincount(data.codes[rows], w) / w.sum()
    p = p[p > 0]
    return float(w.sum() * (-(p * np.log2(p)).sum() if criterion == "entropy" else (p * (1 - p)).sum()))


def best_gain(data, criterion, least=1):
    """The best split of the root by trying each: all thresholds, all subsets, missing values by themselves."""
    everything = np.ones(len(data.x), bool)
    found = -np.inf
    for j, column in enumerate(data.x.T):
        missing = np.isnan(column)
        branch = missing.any() and data.weights[missing].sum() >= least
        known = np.unique(column[~missing])
        if data.levels[j]:
            sizes = range(len(known) + (1 if branch else 0))
            lefts = [np.isin(column, chosen) for size in sizes for chosen in itertools.combinations(known, size + 1)]
        else:
            lefts = [column <= value for value in known]
        for left in lefts:
            right = ~left & ~missing
            if data.weights[left].sum() < least or (data.weights[right].sum() < least and (right.any() or not branch)):
                continue
            below = [left, right, missing] if branch else [left, right]
            before = impurity_of(data, everything if branch else ~missing, criterion)
            found = max(found, before - sum(impurity_of(data, rows, criterion) for rows in below))
    return found


@pytest.mark.parametrize(
    ("criterion", "yes", "gain"),
    [
        ("entropy", [4, 0], 0.2260002),
        ("entropy", [6, 2], 0.0481270),
        ("gini", [4, 0], 0.1020408),
        ("gini", [9, 0], 0.4591837),
    ],
)
def test_gains_of_the_book(criterion, yes, gain):
    """B6.3, B6.4: 9 and 5 rows of two classes, of which the split takes `yes` out."""
    no = np.array([9, 5]) - yes
    y = np.repeat([0, 1, 0, 1], [*yes, *no])
    tree = grown(of(C, np.repeat([[0.0], [1.0]], [sum(yes), sum(no)], axis=0), y), criterion=criterion, max_depth=1)
    assert tree.impurity[0] == pytest.approx({"entropy": 0.9402860, "gini": 0.4591837}[criterion], abs=5e-8)
    assert tree.gain[0] / 14 == pytest.approx(gain, abs=5e-8)


@pytest.mark.parametrize("task", [C, R])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@pytest.mark.parametrize("seed", range(6))
def test_the_root_has_the_best_split(task, classes, criterion, seed):
    """Numbers with ties, categories, gaps, weights and leaf minima, against all splits there are."""
    draw = rng(seed)
    x = np.column_stack([draw.integers(0, 6, 40), draw.normal(size=40), draw.integers(0, 5, 40)]).astype(float)
    y = draw.integers(0, classes, 40) if task is C else draw.normal(size=40) + x[:, 2] % 2
    if seed % 2:
        x[draw.random(x.shape) < 0.15] = NAN
    weights = draw.uniform(0.5, 2, 40) if seed % 3 else None
    least = [1, 4][seed // 3]
    data = of(task, x, y, levels=[0, 0, 5], weights=weights)
    tree = grown(data, criterion=criterion, max_depth=1, min_samples_leaf=least)
    name = criterion if task is C else "variance"
    assert tree.gain[0] == pytest.approx(best_gain(data, name, least), rel=1e-9)
    below = [int(side[0]) for side in (tree.left, tree.right, tree.missing) if side[0] >= 0]
    ends = leaves(tree, data.x)
    assert {*ends.tolist()} <= {0, *below}
    for node in below:
        assert tree.weight[node] == pytest.approx(data.weights[ends == node].sum())
        assert tree.weight[node] >= least
        assert tree.weight[node] * tree.impurity[node] == pytest.approx(impurity_of(data, ends == node, name), abs=1e-9)


def test_many_categories_of_two_classes_find_the_best_subset():
    """Theorem 4.5 of CART against all 2^11 subsets."""
    x, y = rng(1).integers(0, 12, (90, 1)), rng(2).integers(0, 2, 90)
    data = of(C, x, y, levels=[12])
    assert grown(data, max_depth=1).gain[0] == pytest.approx(best_gain(data, "gini"))


@pytest.mark.parametrize(("task", "classes"), [(R, 0), (C, 2), (C, 3)])
@pytest.mark.parametrize("exact", [True, False])
def test_a_subset_of_categories_has_the_rows_that_a_leaf_must_have(task, classes, exact):
    """The rare level tells most, and alone is too few. Of numbers and of two classes it is a cut of their order."""
    x = np.repeat(np.arange(8.0), [3, 4, 5, 6, 7, 8, 9, 10])[:, None]
    y = rng(3).normal(size=52) + 9 * (x[:, 0] == 0)
    y = y if task is R else np.where(x[:, 0] == 0, 0, rng(4).integers(min(classes - 1, 1), classes, 52))
    data = of(task, x, y, levels=[8])
    tree = grown(data, min_samples_leaf=12, max_depth=1, exact=exact)
    assert tree.weight[1:].min() >= 12
    name = "variance" if task is R else "gini"
    if classes == 3:
        assert tree.gain[0] == pytest.approx(best_gain(data, name, 12))
        return
    order = np.argsort([y[x[:, 0] == level].mean() for level in range(8)])
    lefts = [np.isin(x[:, 0], order[:size]) for size in range(1, 8)]
    gains = [
        impurity_of(data, np.full(52, True), name) - impurity_of(data, left, name) - impurity_of(data, ~left, name)
        for left in lefts
        if min(left.sum(), (~left).sum()) >= 12
    ]
    assert 0 < len(gains) < 7
    assert tree.gain[0] == pytest.approx(max(gains))


def test_of_few_categories_every_subset_is_tried_for_more_than_two_classes():
    """Two of four classes from the other two: a whole bit, which no order by the share of one class can tell."""
    y = np.tile([0, 1, 2, 3, 2, 3, 0, 1], 5)
    tree = grown(of(C, np.arange(40)[:, None] % 8, y, levels=[8]), criterion="entropy", max_depth=1)
    assert tree.gain[0] == pytest.approx(40)


def test_many_categories_of_many_classes():
    """More than ten: each class's order is tried; here the best subset is the levels of one class."""
    x = np.arange(120) % 12
    y = np.where(x < 5, 0, 1 + x % 3)
    tree = grown(of(C, x[:, None], y, levels=[12]), max_depth=1)
    assert tree.members.tolist() == [True] * 5 + [False] * 7
    y = np.array([0, 2, 0, 1, 2, 0, 1, 2, 2, 1, 1, 2])
    last = grown(of(C, x[:, None], y[x], levels=[12]), max_depth=1)
    assert last.members.tolist() == (y == 2).tolist(), "only the order by the last class has them together"


SETS = {"iris": C, "wine": C, "breast_cancer": C, "digits": C, "diabetes": R}


def real(name):
    """In single precision, as the rival takes it."""
    loaded = getattr(datasets, f"load_{name}")()
    return Data.of(SETS[name], loaded.data.astype(np.float32), loaded.target.astype(float))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("criterion", "depth", "least"), [("gini", 1, 1), ("entropy", 1, 1), ("gini", 2, 5)])
def test_no_worse_than_scikit_learn_where_ties_cannot_matter(name, criterion, depth, least):
    """Both grow greedily: while no two splits gain the same, both must have the same and leave the same impurity."""
    data = real(name)
    rival = DecisionTreeClassifier if data.task is C else DecisionTreeRegressor
    own = {"criterion": criterion} if data.task is C else {}
    theirs = rival(max_depth=depth, min_samples_leaf=least, random_state=0, **own).fit(data.x, data.y).tree_
    ours = grown(data, max_depth=depth, min_samples_leaf=least, criterion=criterion)
    leaf = theirs.feature < 0
    assert risk(ours) <= (theirs.impurity * theirs.n_node_samples)[leaf].sum() * (1 + 1e-8)
    assert len(ours.column) == theirs.node_count


def noisy(task):
    """Too noisy for two splits to gain the same, unlike iris, where two columns split the first class off."""
    x = rng(1).normal(size=(400, 5)).astype(np.float32).astype(float)
    y = x[:, 0] + x[:, 1] ** 2 + rng(2).normal(size=400)
    return Data.of(task, x, (y > 1) + 1.0 * (y > 2) if task is C else y)


@pytest.mark.parametrize("task", [C, R])
def test_the_same_predictions_as_scikit_learn_on_new_rows(task):
    """Thresholds lie half-way as theirs do, so rows in between go to the same side."""
    data, new = noisy(task), rng(3).normal(size=(500, 5)).astype(np.float32)
    rival = DecisionTreeClassifier if task is C else DecisionTreeRegressor
    theirs = rival(max_depth=4, min_samples_leaf=10, random_state=0).fit(data.x, data.y)
    tree = grown(data, max_depth=4, min_samples_leaf=10)
    expected = theirs.predict_proba(new) if task is C else theirs.predict(new)
    np.testing.assert_allclose(predict(DecisionTree(), tree.state, new.astype(float)), expected, rtol=1e-12)
    result = {part["column"]: part["importance"] for part in summary(DecisionTree(), tree.state)["importances"]}
    assert result == {j: pytest.approx(share) for j, share in enumerate(theirs.feature_importances_) if share}


def test_grown_out_it_knows_all_rows_by_heart():
    data = real("digits")
    tree = grown(data)
    assert risk(tree) == 0
    np.testing.assert_array_equal(predict(DecisionTree(), tree.state, data.x).argmax(axis=1), data.codes)


def test_the_traveller_of_figure_6_2():
    """B6.2: rules contradict each other about a wealthy European who lives a mile away; the tree has one prediction.

    Europeans walk less than two miles, else take the bus; others use a car if wealthy, and else do as Europeans.
    """
    european, wealthy, miles = (part.ravel() for part in np.meshgrid([0, 1], [0, 1], np.arange(0.25, 4, 0.5)))
    walk, bus, car = range(3)
    y = np.where((european == 0) & (wealthy == 1), car, np.where(miles < 2, walk, bus))
    x = np.column_stack([european, wealthy, miles])
    tree = grown(of(C, x, y, levels=[2, 2, 0]))
    assert risk(tree) == 0
    (explanation,) = explain(DecisionTree(), tree.state, np.array([[1.0, 1.0, 1.0]]))
    assert np.argmax(explanation["leaf"]["prediction"]) == walk
    assert [split.get("threshold") for split in explanation["path"] if split["column"] == 2] == [2.0]


def test_purity_of_the_book():
    """B6.3, B6.4: 0 when pure; log2 n bits, or 1 - 1/n, when uniform over n classes."""
    for n in (2, 4, 8):
        even = of(C, np.zeros((n, 1)), np.arange(n))
        assert grown(even, criterion="entropy").impurity[0] == pytest.approx(np.log2(n))
        assert grown(even, criterion="gini").impurity[0] == pytest.approx(1 - 1 / n)
    assert grown(of(C, np.zeros((3, 1)), [0, 0, 0], classes=2)).impurity[0] == 0


def test_exclusive_or_needs_a_split_that_gains_nothing():
    x, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float), [0, 1, 1, 0]
    assert risk(grown(of(C, x, y))) == 0
    assert grown(of(C, x, y), min_impurity_decrease=1e-3).column.tolist() == [-1]


def test_a_tie_goes_to_the_lowest_column_and_threshold():
    x = np.array([[0.0, 9.0], [1.0, 7.0], [2.0, 5.0]])
    tree = grown(of(C, x, [0, 1, 0]), max_depth=1)
    assert (tree.column[0], tree.threshold[0]) == (0, 0.5)


def test_thresholds_between_neighbouring_numbers():
    one = np.nextafter(1.0, 2)
    tree = grown(of(R, [[1.0], [one]], [0.0, 1.0]))
    assert predict(DecisionTree(), tree.state, np.array([[1.0], [one]])).tolist() == [0.0, 1.0]
    huge = np.array([[-1.7e308], [1.7e308]])
    assert predict(DecisionTree(), grown(of(R, huge, [0.0, 1.0])).state, huge).tolist() == [0.0, 1.0]


def test_limits_are_kept():
    data = real("diabetes")
    assert depth(grown(data, max_depth=3).state.trees) == 3
    assert grown(data, max_depth=0).value.tolist() == [[pytest.approx(data.y.mean())]]
    assert grown(data, min_samples_leaf=20).weight.min() >= 20
    split = grown(data, min_samples_split=50)
    assert split.weight[split.column >= 0].min() >= 50
    gained = grown(data, min_impurity_decrease=100.0)
    is_split = gained.column >= 0
    assert (gained.gain / gained.weight[0])[is_split].min() >= 100


def test_by_default_leaves_have_three_rows():
    """B6.2: leaves of one or two examples are discouraged; a leaf that is a little impure tells probabilities."""
    data = real("iris")
    state = fit(DecisionTree(), data, Context.of(0)).state
    assert state.weight.min() == 3
    predictions = state.trees.values[state.trees.left[state.trees.column < 0]]
    assert ((predictions > 0).sum(axis=1) > 1).any()


def test_up_to_a_size_any_value_may_divide_by_default():
    """Of 3,000 values that differ one is separated by an exact split; bins hold some twelve rows."""
    x = np.arange(3000.0)[:, None]
    data = of(C, x, x[:, 0] < 1)

    def cut(**params):
        return fit(DecisionTree(min_samples_leaf=1, max_depth=1, **params), data, Context.of(0)).state.trees.threshold[
            0
        ]

    assert cut() == cut(splits="exact") == 0.5
    assert cut(splits="binned") > 5
    assert EXACT == 50_000, "as the parameter says"


def test_gain_is_what_the_children_have_less():
    tree = grown(real("wine"), max_depth=3)
    for node in np.flatnonzero(tree.column >= 0):
        below = [side[node] for side in (tree.left, tree.right, tree.missing) if side[node] >= 0]
        left = sum(tree.weight[child] * tree.impurity[child] for child in below)
        assert tree.gain[node] == pytest.approx(tree.weight[node] * tree.impurity[node] - left)
    assert sum(summary(DecisionTree(), tree.state)["importances"][i]["importance"] for i in range(3)) <= 1
    assert (np.diff([part["importance"] for part in summary(DecisionTree(), tree.state)["importances"]]) <= 0).all()


def test_summary_counts():
    result = summary(DecisionTree(), grown(real("iris"), max_depth=2).state)
    assert (result["depth"], result["leaves"], result["nodes"]) == (2, 3, 5)


def test_missing_has_a_branch_of_its_own():
    """B6.7: whoever did not reply is a third kind."""
    x = np.array([[1.0], [2.0], [8.0], [9.0], [NAN], [NAN]])
    y = [10.0, 10.0, 20.0, 20.0, 90.0, 90.0]
    tree = grown(of(R, x, y))
    assert predict(DecisionTree(), tree.state, np.array([[0.0], [99.0], [NAN]])).tolist() == [10, 20, 90]
    assert len(tree.column) == 4


def test_known_or_missing_can_be_the_whole_split():
    x = np.array([[5.0], [5.0], [NAN], [NAN]])
    tree = grown(of(C, x, [0, 0, 1, 1]))
    assert tree.threshold[0] == np.inf
    assert predict(DecisionTree(), tree.state, np.array([[-7.0], [NAN]])).tolist() == [[1, 0], [0, 1]]


def test_missing_unseen_in_training_averages_the_branches():
    """B6.7: 30 % go left to 10, 70 % right to 20: a missing value is predicted as 17."""
    x, y = np.repeat([[0.0], [1.0]], [3, 7], axis=0), np.repeat([10.0, 20.0], [3, 7])
    tree = grown(of(R, x, y))
    assert predict(DecisionTree(), tree.state, np.array([[NAN]]))[0] == pytest.approx(17)


def test_too_few_missing_for_a_branch_go_both_ways():
    """They count for the node, but for none below it, nor for the shares."""
    x = np.array([[0.0]] * 5 + [[1.0]] * 5 + [[NAN]])
    y = np.repeat([0.0, 1.0, 5.0], [5, 5, 1])
    data = of(R, x, y)
    tree = grown(data, min_samples_leaf=2)
    assert (tree.left[0], tree.right[0], tree.missing[0]) == (1, 2, -1)
    assert predict(DecisionTree(), tree.state, np.array([[NAN]]))[0] == pytest.approx(0.5)
    assert (tree.weight[0], tree.weight[1:].sum()) == (11, 10)
    assert tree.gain[0] == pytest.approx(impurity_of(data, np.arange(11) < 10, "variance"))


def test_an_unseen_category_goes_with_the_heavier_side():
    x, y = np.repeat([[0.0], [1.0], [2.0]], [2, 3, 4], axis=0), np.repeat([5.0, 1.0, 1.0], [2, 3, 4])
    tree = grown(of(R, x, y, levels=[4]))
    assert predict(DecisionTree(), tree.state, np.array([[3.0], [0.0]])).tolist() == [1.0, 5.0]


def test_explanations_lead_to_the_prediction():
    draw = rng(4)
    x = np.column_stack([draw.normal(size=120), draw.integers(0, 5, 120)])
    x[draw.random(x.shape) < 0.1] = NAN
    tree = grown(of(C, x, draw.integers(0, 2, 120), levels=[0, 5]), max_depth=4)
    explanation = explain(DecisionTree(), tree.state, x)
    json.dumps(explanation, allow_nan=False)
    predictions = predict(DecisionTree(), tree.state, x)
    for row, reason, predicted in zip(x, explanation, predictions, strict=True):
        assert reason["leaf"]["prediction"] == predicted.tolist()
        for split in reason["path"]:
            assert _holds(split, row[split["column"]])
    assert {split["op"] for reason in explanation for split in reason["path"]} >= {"<=", ">", "in", "not in", "missing"}


def _holds(split, value):
    match split["op"]:
        case "<=":
            return value <= split["threshold"]
        case ">":
            return value > split["threshold"]
        case "in":
            return value in split["categories"]
        case "not in":
            return value not in split["categories"] and not np.isnan(value)
        case "known":
            return not np.isnan(value)
        case "missing":
            return np.isnan(value)


def test_an_explanation_says_where_a_row_stopped():
    tree = grown(of(R, [[0.0], [1.0]], [0.0, 1.0]))
    (explanation,) = explain(DecisionTree(), tree.state, np.array([[NAN]]))
    assert explanation["path"] == []
    assert explanation["leaf"]["column"] == 0
    assert "missing" in explanation["leaf"]["stopped"]


@pytest.mark.parametrize("cost", [0.0, 0.002, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("name", ["breast_cancer", "diabetes"])
def test_pruning_is_scikit_learns(name, cost):
    data = real(name)
    rival = DecisionTreeClassifier if data.task is C else DecisionTreeRegressor
    whole = grown(data, max_depth=3)
    root = whole.impurity[0]
    theirs = rival(max_depth=3, ccp_alpha=cost * root, random_state=0).fit(data.x, data.y).tree_
    ours = grown(data, max_depth=3, ccp_alpha=cost * root)
    assert len(ours.column) == theirs.node_count
    leaf = theirs.feature < 0
    assert risk(ours) == pytest.approx((theirs.impurity * theirs.n_node_samples)[leaf].sum(), rel=1e-9)
    np.testing.assert_allclose(
        predict(DecisionTree(), ours.state, data.x).reshape(len(data.x), -1), _predictions(theirs, data)
    )


@pytest.mark.parametrize("least", [0.0, 0.003, 0.02, 1.0])
@pytest.mark.parametrize("name", ["breast_cancer", "diabetes"])
def test_the_least_decrease_is_scikit_learns(name, least):
    """The decrease of impurity counts by the node's share of the rows."""
    data = real(name)
    rival = DecisionTreeClassifier if data.task is C else DecisionTreeRegressor
    root = grown(data, max_depth=0).impurity[0]
    limits = {"max_depth": 4, "min_impurity_decrease": least * root}
    theirs = rival(**limits, random_state=0).fit(data.x, data.y).tree_
    ours = grown(data, **limits)
    assert len(ours.column) == theirs.node_count
    assert risk(ours) == pytest.approx((theirs.impurity * theirs.n_node_samples)[theirs.feature < 0].sum(), rel=1e-9)


def _predictions(theirs, data):
    return theirs.value[theirs.apply(data.x.astype(np.float32))][:, 0]


def test_pruning_keeps_a_split_that_gains_nothing_before_one_that_does():
    """Of exclusive or the root gains nothing, and each split below half of all: 0.05 a leaf is worth its price."""
    x, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float), [0, 1, 1, 0]
    assert (grown(of(C, x, y), ccp_alpha=0.05).column < 0).sum() == 4
    assert (grown(of(C, x, y), ccp_alpha=0.2).column < 0).sum() == 1


def test_pruning_keeps_subsets_and_missing_ways():
    draw = rng(5)
    x = np.column_stack([draw.normal(size=150), draw.integers(0, 6, 150)])
    x[draw.random(x.shape) < 0.2] = NAN
    data = of(C, x, (x[:, 1] > 2) ^ (draw.random(150) < 0.2), levels=[0, 6])
    whole = grown(data)
    pruned = grown(data, ccp_alpha=0.01)
    assert 1 < len(pruned.column) < len(whole.column)
    ends = leaves(pruned, x)
    for node in np.flatnonzero(pruned.column < 0):
        assert pruned.weight[node] == pytest.approx((ends == node).sum())


def test_deviation_of_a_node_far_smaller_than_that_of_the_root():
    """Running sums over all nodes must not drown the small ones."""
    x = np.arange(8.0)[:, None]
    y = np.array([1e9, 1e9, -1e9, -1e9, 0.001, 0.001, 0.002, 0.002])
    tree = grown(of(R, x, y))
    np.testing.assert_allclose(predict(DecisionTree(), tree.state, x), y, rtol=1e-12)


def twin(data, rows, depth, least):
    """The tree as nested tuples, by its definition: numbers only, no gaps, variance or Gini."""
    criterion = "variance" if data.task is R else "gini"
    whole = impurity_of(data, rows, criterion)
    best = None
    for j, column in enumerate(data.x.T):
        values = np.unique(column[rows])
        for low, high in itertools.pairwise(values):
            left = rows & (column <= low)
            gain = whole - impurity_of(data, left, criterion) - impurity_of(data, rows & ~left, criterion)
            heavy = min(data.weights[left].sum(), data.weights[rows & ~left].sum()) >= least * (1 - 1e-9)
            if heavy and (best is None or gain > best[0] + 1e-11 * whole):
                best = gain, j, low / 2 + high / 2, left
    if depth == 0 or whole == 0 or best is None:
        return (rows.sum(),)
    _, j, threshold, left = best
    return j, threshold, twin(data, left, depth - 1, least), twin(data, rows & ~left, depth - 1, least)


def nested(tree, node=0):
    if tree.column[node] < 0:
        return (tree.weight[node],)
    below = (nested(tree, side[node]) for side in (tree.left, tree.right))
    return tree.column[node], tree.threshold[node], *below


@pytest.mark.parametrize("task", [C, R])
@pytest.mark.parametrize("exact", [True, False])
def test_is_its_definition(task, exact):
    """Ties, of values and of gains, included. With fewer values than bins, bins lose nothing."""
    draw = rng(7)
    x = np.column_stack([draw.integers(0, 9, 120), draw.normal(size=120).round(2), draw.integers(0, 3, 120)])
    data = of(task, x, draw.integers(0, 3, 120))
    tree = grown(data, exact=exact, min_samples_leaf=2, max_depth=6)
    assert nested(tree) == twin(data, np.ones(120, bool), 6, 2)


@pytest.mark.parametrize("task", [C, R])
def test_with_a_limit_of_leaves_the_best_split_comes_first(task):
    data, new = noisy(task), rng(3).normal(size=(300, 5)).astype(np.float32)
    rival = DecisionTreeClassifier if task is C else DecisionTreeRegressor
    theirs = rival(max_leaf_nodes=9, min_samples_leaf=5, random_state=0).fit(data.x, data.y)
    tree = grown(data, max_leaf_nodes=9, min_samples_leaf=5)
    assert (tree.column < 0).sum() == 9
    expected = theirs.predict_proba(new) if task is C else theirs.predict(new)
    np.testing.assert_allclose(predict(DecisionTree(), tree.state, new.astype(float)), expected, rtol=1e-12)


def test_a_missing_branch_counts_as_a_leaf():
    draw = rng(2)
    x = draw.normal(size=(200, 3))
    x[draw.random(x.shape) < 0.2] = NAN
    for limit in range(2, 9):
        tree = grown(of(R, x, np.nansum(x, axis=1)), max_leaf_nodes=limit)
        assert limit - 1 <= (tree.column < 0).sum() <= limit


def test_missing_values_may_be_sent_both_ways():
    draw = rng(6)
    x = draw.normal(size=(200, 2))
    y = np.where(x[:, 0] > 0, 3.0, 1.0)
    x[draw.random(x.shape) < 0.3] = NAN
    tree = grown(of(R, x, y), missing="both", min_samples_leaf=5)
    assert (tree.missing < 0).all()
    gone = predict(DecisionTree(), tree.state, np.full((1, 2), NAN))[0]
    assert gone == pytest.approx(y.mean(), abs=0.3)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("missing", ["branch", "both"])
def test_each_column_may_have_its_own_mode_for_the_missing(missing, exact):
    """B6.7: who did not state "pay" is a kind of his own, while "age" was lost by chance."""
    draw = rng(8)
    x = draw.normal(size=(300, 3))
    y = np.where(x[:, 0] > 0, 3.0, 1.0) + (x[:, 1] > 0) + 0.1 * draw.normal(size=300)
    x[draw.random(x.shape) < 0.2] = NAN
    data = of(R, x, y, names=["age", "pay", "rest"])
    other = {"branch": ["age", "gone"], "both": ["pay", "rest"]}[missing]
    tree = grown(data, missing=missing, missing_exceptions=other, min_samples_leaf=5, exact=exact)
    below = {j: set((tree.missing[tree.column == j] > 0).tolist()) for j in range(3)}
    assert below[0] == {False}
    assert True in below[1]
    sums = grown(data, missing=missing, missing_exceptions=other, min_samples_leaf=5, oblique=3)
    for node in np.flatnonzero(sums.column >= 0):
        about = sums.column[node] - 3
        requested = sums.splits.one(about).column if about >= 0 else sums.column[node : node + 1]
        assert 0 not in requested or sums.missing[node] < 0


def test_bins_cost_little():
    data = noisy(R)
    exact, bins = (grown(data, exact=exact, min_samples_leaf=10) for exact in (True, False))
    assert risk(bins) == pytest.approx(risk(exact), rel=0.1)


@pytest.mark.parametrize("splits", ["exact", "binned"])
def test_of_no_columns_it_is_a_leaf(splits):
    data = Data.of(Task.REGRESSION, np.zeros((3, 0)), [1.0, 2.0, 6.0])
    state = fit(DecisionTree(splits=splits), data, Context.of(0)).state
    assert predict(DecisionTree(), state, np.zeros((5, 0))).tolist() == [3.0] * 5


@pytest.mark.parametrize("exact", [True, False])
def test_leaves_of_a_limited_tree_keep_no_split(exact):
    rng = np.random.default_rng(0)
    data = Data.of(Task.REGRESSION, rng.normal(size=(200, 3)), rng.normal(size=200))
    params = DecisionTree(max_leaf_nodes=5, splits="exact" if exact else "binned")
    trees = fit(params, data, Context.of(0)).state.trees
    assert (trees.column < 0).sum() == 5
    assert not trees.threshold[trees.column < 0].any()


def test_weights_may_differ_by_more_than_the_digits_of_a_number():
    """What is left of the weight is then rounding."""
    x = np.column_stack([[0, 4, 4, 3, 3, 2, 2, 2, 2, 5], np.zeros(10)])
    y, weights = [1, 0, 0, 1, 1, 1, 1, 1, 1, 0], [1e60] * 9 + [0.32]
    data = Data.of(C, x, y, weights=weights)
    state = fit(DecisionTree(min_samples_leaf=1e9), data, Context.of(0)).state
    assert predict(DecisionTree(), state, data.x).argmax(axis=1).tolist() == y
