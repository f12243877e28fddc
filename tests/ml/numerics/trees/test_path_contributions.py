"""Contributions of columns to sums of trees: the Shapley values of all subsets, by their definition."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from app.base.errors import CorruptModel, NoContributions
from app.ml.algorithms import decision_tree, gradient_boosting, random_forest
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.trees.forest import total
from app.ml.numerics.trees.path_contributions import TreePaths, shares_of

ROWS = 200
rng = np.random.default_rng(5)
X = np.column_stack([rng.normal(size=(ROWS, 3)), rng.integers(0, 4, ROWS), rng.integers(0, 3, ROWS)])
GAPS = X.copy()
GAPS[rng.random(X.shape) < 0.2] = np.nan
Y = X[:, 0] * X[:, 1] + (X[:, 3] == 2) + X[:, 4] + rng.normal(size=ROWS)
CODES = np.digitize(Y, [-0.5, 1.5])
LEVELS = [0, 0, 0, 4, 0]


def value(trees, shares, players, row, present, node):  # noqa: PLR0917
    """The value of a tree where only some players are present, from this node down."""
    column = trees.column[node]
    if column < 0:
        return trees.values[trees.left[node]]
    left = trees.left[node]
    children = [left + branch for branch in range(3 if trees.missing[node] == 2 else 2)]
    parts = shares[children]
    if players[column] in present:
        cell = row[column]
        if not np.isnan(cell):
            threshold = trees.threshold[node]
            if trees.levels[column] and np.isfinite(threshold):
                right = not trees.members[int(threshold) + int(cell)]
            else:
                right = cell > threshold
            parts = np.eye(len(children))[int(right)]
        elif trees.missing[node] >= 0:
            parts = np.eye(len(children))[trees.missing[node]]
        else:
            parts = np.array([trees.share[node], 1 - trees.share[node]])
    below = [value(trees, shares, players, row, present, child) for child in children]
    return np.array(parts) @ np.array(below)


def shapley(trees, shares, players, row):
    """(players, k), and the value of no player."""
    everyone = sorted(set(players))

    def whole(present):
        return sum(value(trees, shares, players, row, present, root) for root in trees.root)

    values = {some: whole(some) for size in range(len(everyone) + 1) for some in combinations(everyone, size)}
    result = np.zeros((len(everyone), trees.values.shape[1]))
    for some, before in values.items():
        weight = 1 / (len(everyone) * comb(len(everyone) - 1, len(some))) if len(some) < len(everyone) else 0.0
        for player in set(everyone) - set(some):
            result[player] += weight * (values[tuple(sorted((*some, player)))] - before)
    return result, values[()]


def fitted(module, params, x, y, task):
    data = Data.of(task, x, y, levels=LEVELS, missing=True)
    return module.fit(params, data, Context.of(1)).state


@pytest.mark.parametrize("x", [X, GAPS], ids=["full", "gaps"])
@pytest.mark.parametrize("players", [[0, 1, 2, 3, 4], [0, 1, 1, 2, 0]], ids=["columns", "groups"])
@pytest.mark.parametrize("missing", ["branch", "both"])
def test_a_tree_has_the_shapley_values_of_all_subsets(x, players, missing):
    params = decision_tree.DecisionTree(missing=missing, max_depth=5)
    state = fitted(decision_tree, params, x, Y, Task.REGRESSION)
    scores = decision_tree.scores(params, state)
    paths = TreePaths.of(state.trees, scores.shares, np.array(players))
    found = paths.contributions(GAPS[:6])
    for row, own in zip(GAPS[:6], found, strict=True):
        expected, mean = shapley(state.trees, scores.shares, players, row)
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(paths.mean, mean, rtol=0, atol=1e-12)


@pytest.mark.parametrize("missing", ["side", "branch", "both"])
def test_a_forest_has_the_shapley_values_of_all_subsets(missing):
    params = random_forest.RandomForest(n_estimators=3, missing=missing, voting="soft", max_depth=4, importance=False)
    state = fitted(random_forest, params, GAPS, CODES, Task.CLASSIFICATION)
    explained = random_forest.scores(params, state).explained(np.arange(5))
    found = explained.contributions(GAPS[:4])
    for row, own in zip(GAPS[:4], found, strict=True):
        expected, mean = shapley(state.trees, explained.scores.shares, [0, 1, 2, 3, 4], row)
        np.testing.assert_allclose(own, expected.T / 3, rtol=0, atol=1e-12)
        np.testing.assert_allclose(explained.mean, mean / 3, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("y", "task"), [(Y, Task.REGRESSION), (CODES, Task.CLASSIFICATION)], ids=["number", "classes"])
def test_boosted_trees_add_up_to_their_scores(y, task):
    params = gradient_boosting.GradientBoosting(n_estimators=20, min_samples_leaf=5)
    state = fitted(gradient_boosting, params, GAPS, y, task)
    scores = gradient_boosting.scores(params, state)
    explained = scores.explained(np.arange(5))
    raw = total(state.trees, GAPS) + state.base
    np.testing.assert_allclose(scores.raw(GAPS), raw, rtol=0, atol=1e-12)
    parts = explained.contributions(GAPS)
    assert parts.shape == (ROWS, len(state.base), 5)
    np.testing.assert_allclose(explained.mean + parts.sum(axis=2), raw, rtol=0, atol=1e-12)


def test_the_mean_of_a_tree_is_that_of_its_training_rows():
    params = decision_tree.DecisionTree()
    state = fitted(decision_tree, params, X, Y, Task.REGRESSION)
    explained = decision_tree.scores(params, state).explained(np.arange(5))
    assert explained.mean[0] == pytest.approx(Y.mean(), abs=1e-12)
    assert explained.contributions(X).mean(axis=0) == pytest.approx(np.zeros((1, 5)), abs=0.3)


def test_a_forty_level_deep_tree_still_adds_up():
    x = np.arange(41.0)[:, None] * np.ones(40)
    x[:, 1:] += np.random.default_rng(2).normal(size=(41, 39)) * 1e-3
    params = random_forest.RandomForest(n_estimators=1, max_features=1, importance=False)
    y = 1.5 ** np.arange(41)
    state = random_forest.fit(params, Data.of(Task.REGRESSION, x, y), Context.of(3)).state
    paths = TreePaths.of(state.trees, shares_of(state.trees), np.arange(40))
    assert paths.lanes.max() > 4
    raw = total(state.trees, x)[:, 0]
    found = paths.mean[0] + paths.contributions(x)[:, :, 0].sum(axis=1)
    np.testing.assert_allclose(found, raw, rtol=0, atol=1e-15 * raw.max())


def test_columns_that_share_a_split_have_no_contributions_of_their_own():
    params = decision_tree.DecisionTree(leaf_model="linear", max_depth=2)
    state = fitted(decision_tree, params, X, Y, Task.REGRESSION)
    with pytest.raises(NoContributions, match="linear leaves"):
        decision_tree.scores(params, state)


def test_branches_that_meet_again_are_refused():
    state = fitted(decision_tree, decision_tree.DecisionTree(max_depth=3), X, Y, Task.REGRESSION)
    left = state.trees.left.copy()
    split = np.flatnonzero(state.trees.column >= 0)
    left[split[1]] = left[split[2]]
    meeting = state.trees._replace(left=left, root=np.zeros(8, np.int32))
    with pytest.raises(CorruptModel, match="meet again"):
        TreePaths.of(meeting, shares_of(meeting), np.arange(5))


@pytest.mark.parametrize("missing", ["branch", "both"])
def test_background_rows_give_the_shapley_values_of_their_mean(missing):
    """By all subsets, where absent columns have the values of each background row in turn."""
    params = random_forest.RandomForest(n_estimators=4, missing=missing, voting="soft", max_depth=5, importance=False)
    state = fitted(random_forest, params, GAPS, CODES, Task.CLASSIFICATION)
    scores, background = random_forest.scores(params, state), GAPS[50:61]
    groups = np.array([0, 1, 1, 2, 0])
    explained = scores.explained(groups).from_background(background)

    def mean(row, some):
        mixed = background.copy()
        mixed[:, np.isin(groups, some)] = row[np.isin(groups, some)]
        return scores.raw(mixed).mean(axis=0)

    for row, own in zip(GAPS[:5], explained.contributions(GAPS[:5]), strict=True):
        expected = np.zeros((3, 3))
        for size in range(4):
            for some in combinations(range(3), size):
                for player in set(range(3)) - set(some):
                    rise = mean(row, (*some, player)) - mean(row, some)
                    expected[:, player] += rise / (3 * comb(2, size))
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(explained.mean + own.sum(axis=1), scores.raw(row[None])[0], rtol=0, atol=1e-12)
