"""Growing with missing values sent to a side: the split of the root by trying each, and what it is worth."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.boosting.weak_trees import Weak
from app.ml.numerics.trees.binning import binned
from app.ml.numerics.trees.compiled.column_split import ENTROPY, GINI, VARIANCE
from app.ml.numerics.trees.forest import total
from app.ml.numerics.trees.growth import Grower, Rules, planted

C, R = Task.CLASSIFICATION, Task.REGRESSION
LEVELS = [0, 5, 0]


def impurity(data, rows, criterion):
    """Times the weight."""
    weights = data.weights[rows]
    if not weights.size:
        return 0.0
    if criterion == VARIANCE:
        return weights @ (data.y[rows] - np.average(data.y[rows], weights=weights)) ** 2
    shares = weights @ data.targets[rows] / weights.sum()
    if criterion == GINI:
        return weights.sum() * (1 - (shares**2).sum())
    shares = shares[shares > 0]
    return -weights.sum() * (shares * np.log2(shares)).sum()


def sides(column, levels):
    """Every way to part the rows in two, the missing on either side."""
    gone, known = np.isnan(column), np.unique(column[~np.isnan(column)])
    if levels:
        for inside in product([False, True], repeat=known.size):
            yield np.isin(column, known[list(inside)])
            yield np.isin(column, known[list(inside)]) | gone
        return
    for threshold in known:
        yield column <= threshold
        yield (column <= threshold) | gone


def best(data, criterion, least):
    whole = impurity(data, np.full(len(data.x), True), criterion)
    return max(
        whole - impurity(data, left, criterion) - impurity(data, ~left, criterion)
        for column, levels in zip(data.x.T, LEVELS, strict=True)
        for left in sides(column, levels)
        if min(data.weights[left].sum(), data.weights[~left].sum()) >= least
    )


def table(task, seed, n=40):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n).round(1), rng.integers(0, 5, n), rng.normal(size=n)])
    x[rng.random(x.shape) < 0.25] = np.nan
    y = rng.integers(0, 3, n) if task is C else rng.normal(size=n)
    return Data.of(task, x, y, levels=LEVELS, missing=True, weights=rng.uniform(0.5, 2, n))


def grown(data, criterion, **rules):
    return Grower(data, binned(data)).grow(data.weights, Rules(criterion, **rules))


SIDE = {"missing_branch": False, "missing_side": True}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("task", "criterion"), [(C, GINI), (C, ENTROPY), (R, VARIANCE)])
def test_the_root_asks_what_gains_most_with_the_missing_on_either_side(task, criterion, seed):
    data = table(task, seed)
    tree = grown(data, criterion, max_depth=1, min_samples_leaf=3, **SIDE)
    assert tree.gain[0] == pytest.approx(best(data, criterion, 3), rel=1e-9)
    assert tree.weight[1:].sum() == pytest.approx(data.weights.sum()), "all rows teach one of two sides"
    left_over = (tree.weight * tree.impurity)[1:].sum()
    assert tree.weight[0] * tree.impurity[0] - left_over == pytest.approx(tree.gain[0]), "the side where more is gained"
    column = data.x[:, tree.column[0]]
    left = total(planted(tree, data.levels, np.array([[0.0], [1], [0]])), data.x)[:, 0] > 0
    assert data.weights[left].sum() == pytest.approx(tree.weight[1])
    assert np.unique(left[np.isnan(column)]).size <= 1


def test_missing_values_that_determine_the_target_go_by_themselves():
    x = np.where(np.arange(60) < 20, np.nan, np.arange(60.0) % 7)[:, None]
    data = Data.of(C, x, np.isnan(x[:, 0]) * 1, missing=True)
    tree = grown(data, GINI, **SIDE)
    assert tree.column.tolist() == [0, -1, -1]
    assert tree.impurity[1:].tolist() == [0, 0]
    result = total(planted(tree, data.levels, tree.value), np.array([[np.nan], [3.0]]))
    np.testing.assert_array_equal(result, [[0, 1], [1, 0]])


def test_where_none_was_missing_a_row_goes_both_ways():
    x = np.arange(10.0)[:, None]
    data = Data.of(R, x, (x[:, 0] > 2) * 10.0, missing=True)
    tree = grown(data, VARIANCE, max_depth=1, **SIDE)
    assert tree.missing.tolist() == [-1, -1, -1]
    assert total(planted(tree, data.levels, tree.value), np.array([[np.nan]])) == pytest.approx(7)


@pytest.mark.parametrize("exact", [True, False])
def test_boosted_trees_send_the_missing_to_a_side(exact):
    data = table(C, 1)
    shares = replace(data, weights=data.weights / data.weights.sum())
    slopes = np.random.default_rng(2).uniform(-1, 1, 40)
    bent = abs(slopes) * (1 - abs(slopes))
    response = replace(data, task=R, y=slopes / bent, weights=data.weights * bent)
    assert Weak(data, 1, exact=exact).grown(shares.weights)[0].gain[0] == pytest.approx(best(shares, GINI, 1e-12))
    step = Weak(data, 1, exact=exact).stepped(slopes)
    assert step.gain[0] == pytest.approx(best(response, VARIANCE, 1e-12 * response.weights.sum()))
    assert step.value[0, 0] == pytest.approx(data.weights @ slopes / response.weights.sum())
    deep, _ = Weak(data, 3, exact=exact).grown(shares.weights)
    assert len(deep.column) == 1 + 2 * (deep.column >= 0).sum(), "two branches of each split"


def test_newton_steps_are_the_same_from_ranks_and_from_bins():
    """From ranks by least squares of response and curvature, from bins by the slopes themselves."""
    rng = np.random.default_rng(0)
    x, slopes = rng.normal(size=(200, 3)), rng.uniform(-0.9, 0.9, 200)
    slopes[0] = 0  # no curvature
    data = Data.of(C, x, np.arange(200) % 2, weights=rng.uniform(0.5, 2, 200))
    ranks, bins = (Weak(data, 3, exact=exact).stepped(slopes) for exact in (True, False))
    assert len(ranks.column) > 9
    np.testing.assert_array_equal(ranks.column, bins.column)
    np.testing.assert_array_equal(ranks.threshold, bins.threshold)
    np.testing.assert_allclose(ranks.value, bins.value, rtol=1e-9)


def test_deep_boosted_trees_bear_missing_values():
    """Values lost by chance cost a little of what two columns show; branches of their own, at each split, cost more."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 6))
    y = (x[:, 0] + x[:, 1] + rng.logistic(size=3000) > 0).astype(int)
    x[:, 2:][rng.random((3000, 4)) < 0.3] = np.nan
    boosted = find("logitboost").algorithm
    params = boosted.params(n_estimators=30, max_depth=3, splits="binned")

    def loss(columns):
        data = Data.of(C, x[:1000, columns], y[:1000], missing=True)
        predicted = boosted.predict(params, boosted.fit(params, data, Context.of(0)).state, x[1000:, columns].copy())
        return -np.log(predicted[np.arange(2000), y[1000:]]).mean()

    assert loss([0, 1, 2, 3, 4, 5]) < loss([0, 1]) + 0.03
