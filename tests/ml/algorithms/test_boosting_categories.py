"""Splits of categories in boosting: the best of all subsets, rare and unseen ones, and a rival as good."""

from itertools import combinations

import numpy as np
import pytest
from sklearn import ensemble

from app.ml.algorithms.gradient_boosting import GradientBoosting, fit, predict
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Accepts, Context, Data, Task
from app.ml.numerics.boosting import gradient_trees
from app.ml.numerics.boosting.compiled.splits import NAMED
from app.ml.numerics.trees.binning import binned
from app.ml.numerics.trees.forest import total
from app.ml.numerics.trees.growth import UNLIMITED

C, R = Task.CLASSIFICATION, Task.REGRESSION
NAN = np.nan


def worth(gradient, curvature, l2):
    return gradient.sum() ** 2 / (curvature.sum() + l2)


def gain(inside, gradient, curvature, l2, category_l2=0.0):
    more = l2 + category_l2
    parts = (worth(gradient[rows], curvature[rows], more) for rows in (inside, ~inside))
    return sum(parts) - worth(gradient, curvature, l2)


def best_subset(level, levels, gradient, curvature, *, l2=0.0, smoothing=0.0, category_l2=0.0):
    """The only split of a tree of two leaves on one column: its gain, and which rows go left."""
    result, raw = (gradient / curvature).astype(np.float32), np.zeros(level.size)  # numbers that weigh their curvature
    largest = np.abs(result * curvature).max(), curvature.max()
    slopes = gradient_trees.Slopes(result, numbers=True, unit=1.0, weights=curvature, weight=1.0, largest=largest)
    data = Data.of(R, level[:, None], raw, levels=[levels], missing=True)
    limits = gradient_trees.Limits(2, UNLIMITED, 1.0, l2, 1.0, smoothing, category_l2)
    booster = gradient_trees.Booster(binned(data, by_row=True), np.ones(level.size, bool), limits, 1)
    tree, gains = booster.grow(slopes, raw)
    assert total(tree, data.x)[:, 0] == pytest.approx(raw, rel=1e-12)
    left = raw == tree.values[1, 0]
    result = -gradient[left].sum() / (curvature[left].sum() + l2 + category_l2)
    assert tree.values[1, 0] == pytest.approx(result, rel=1e-5)
    return gains[0], left


def slopes(rows, levels, seed, missing=False):
    rng = np.random.default_rng(seed)
    level = rng.integers(0, levels, rows).astype(float)
    gradient = rng.normal(size=levels)[level.astype(int)] + rng.normal(size=rows)
    level[rng.random(rows) < (0.2 if missing else 0)] = NAN
    return level, gradient, rng.uniform(0.05, 0.25, rows)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("l2", [0.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_subset_of_all_gains_more(seed, l2, missing):
    """The theorem of Fisher and Breiman, for one Newton step with any l2: a cut of the ratios' order is the best."""
    level, gradient, curvature = slopes(300, 8, seed, missing)
    kinds = np.nan_to_num(level, nan=8)
    every = [np.isin(kinds, some) for size in range(1, 5) for some in combinations(np.unique(kinds), size)]
    best = max(gain(inside, gradient, curvature, l2) for inside in every)
    found, left = best_subset(level, 8, gradient, curvature, l2=l2)
    assert found == pytest.approx(best, rel=1e-5)
    assert gain(left, gradient, curvature, l2) == pytest.approx(best, rel=1e-5)
    ordered = [gain(kinds <= last, gradient, curvature, l2) for last in np.unique(kinds)[:-1]]
    assert max(ordered) < 0.95 * best  # a threshold of the codes would not do


@pytest.mark.parametrize("seed", range(6))
def test_the_split_is_its_definition(seed):
    """Smoothed, without the rare ones, and with more l2: every prefix and suffix of half the order, tried plainly."""
    level, gradient, curvature = slopes(400, 14, seed, missing=True)
    level[(level == 3) & (np.arange(400) % 3 > 0)] = NAN
    l2, smoothing, category_l2 = 0.5, 12.0, 2.0
    kinds = np.nan_to_num(level, nan=14)
    counts = {kind: curvature[kinds == kind].sum() / curvature.mean() for kind in np.unique(kinds)}
    able = [kind for kind, count in counts.items() if count >= smoothing]
    assert len(able) < len(counts)
    able.sort(key=lambda kind: gradient[kinds == kind].sum() / (curvature[kinds == kind].sum() + smoothing))
    half = max(1, len(able) // 2)
    sides = [some for size in range(1, half + 1) for some in (able[:size], able[-size:])]
    tried = [np.isin(kinds, some) for some in sides]
    gains = [gain(inside, gradient, curvature, l2, category_l2) for inside in tried]
    found, left = best_subset(level, 14, gradient, curvature, l2=l2, smoothing=smoothing, category_l2=category_l2)
    assert found == pytest.approx(max(gains), rel=1e-5)
    best = tried[int(np.argmax(gains))]
    assert (left == best).all() or (left == ~best).all()
    assert curvature[left].sum() <= curvature[~left].sum() * (1 + 1e-5)  # the lighter side is named


def fitted(x, y, levels, task=R, **params):
    data = Data.of(task, x, y, levels=levels, missing=True)
    params = GradientBoosting(**{"n_estimators": 1, "learning_rate": 1.0, "l2": 0.0, "category_l2": 0.0, **params})
    return params, fit(params, data, Context.of(0)).state


def test_unseen_goes_with_the_heavier_side_and_the_rare_with_most():
    level = np.repeat([0.0, 1, 2, 3], [40, 60, 70, 4])
    y = np.repeat([9.0, 1, 1, 9], [40, 60, 70, 4])
    params, state = fitted(level[:, None], y, [6], category_smoothing=10, max_leaf_nodes=2)
    few, many = 9.0, (130 + 36) / 134
    predicted = predict(params, state, np.array([[0.0], [1], [2], [3], [4], [5]]))
    assert predicted == pytest.approx([few, many, many, many, many, many])
    assert state.trees.members.tolist() == [True, False, False, False, False, False]
    both = predict(params, state, np.array([[NAN]]))[0]
    assert both == pytest.approx(y.mean())
    heavy, y = np.repeat([0.0, 1, 2], [100, 20, 20]), np.repeat([9.0, 1, 1], [100, 20, 20])
    params, state = fitted(heavy[:, None], y, [4], max_leaf_nodes=2)
    predicted = predict(params, state, np.array([[0.0], [1], [2], [3]]))
    assert predicted == pytest.approx([9, 1, 1, 9]), "with the one category that is named, if that is the heavier"


def test_missing_values_go_with_the_categories_they_are_like():
    level = np.repeat([0.0, 1, 2, NAN], 40)
    params, state = fitted(level[:, None], np.repeat([5.0, 1, 1, 5], 40), [3], max_leaf_nodes=2, category_smoothing=0)
    assert predict(params, state, np.array([[NAN], [0.0], [1], [2]])) == pytest.approx([5, 5, 1, 1])


def test_known_or_missing_can_be_the_only_split_of_categories():
    level = np.repeat([0.0, 1, NAN], 30)
    params, state = fitted(level[:, None], np.repeat([1.0, 1, 4], 30), [2], max_leaf_nodes=2)
    assert predict(params, state, np.array([[NAN], [0.0], [1]])) == pytest.approx([4, 1, 1])


def test_a_split_names_few_categories():
    rng = np.random.default_rng(0)
    level = np.repeat(np.arange(200.0), 20)
    y = rng.permutation(200)[level.astype(int)] * 1.0
    _, state = fitted(level[:, None], y, [200], n_estimators=3, max_leaf_nodes=20, min_samples_leaf=1)
    named = state.trees.members.reshape(-1, 200)
    assert named.sum(axis=1).max() == NAMED


def test_a_split_of_more_categories_than_a_byte_has_is_its_definition():
    """700 categories and missing values: the codes of a column lie in three bytes of a row."""
    level, gradient, curvature = slopes(20_000, 700, 3, missing=True)
    kinds = np.nan_to_num(level, nan=700).astype(int)
    g, h = np.bincount(kinds, gradient), np.bincount(kinds, curvature)
    order = np.argsort(g / (h + 12))
    tried = [np.isin(kinds, some) for size in range(1, NAMED + 1) for some in (order[:size], order[-size:])]
    gains = [gain(inside, gradient, curvature, 0.5) for inside in tried]
    found, left = best_subset(level, 700, gradient, curvature, l2=0.5, smoothing=12.0)
    assert found == pytest.approx(max(gains), rel=1e-5)
    best = tried[int(np.argmax(gains))]
    assert (left == best).all() or (left == ~best).all()


def many(rows, rng, effect):
    level, other = rng.integers(0, effect.size, rows), rng.normal(size=rows)
    return np.column_stack([level, other]), effect[level] + 0.5 * other + 0.3 * rng.normal(size=rows)


def test_five_hundred_categories_are_separated():
    """The RMSE is within 10 % of that of the means of the categories, the effect of the number being given to them."""
    rng = np.random.default_rng(1)
    effect = rng.normal(size=500)
    (x, y), (new, new_y) = many(12_500, rng, effect), many(10_000, rng, effect)
    level, new_level = x[:, 0].astype(int), new[:, 0].astype(int)
    means = np.bincount(level, y - 0.5 * x[:, 1]) / np.bincount(level)
    oracle = np.sqrt(np.mean((means[new_level] + 0.5 * new[:, 1] - new_y) ** 2))
    data = Data.of(R, x, y, levels=[500, 0], missing=True)
    predicted = predict(GradientBoosting(), fit(GradientBoosting(), data, Context.of(0)).state, new)
    assert np.sqrt(np.mean((predicted - new_y) ** 2)) < 1.1 * oracle


TAKES_CATEGORIES = sorted(name for name, entry in catalogue().items() if Accepts.CATEGORIES in entry.algorithm.accepts)


@pytest.mark.parametrize("name", TAKES_CATEGORIES)
def test_no_learner_that_takes_categories_merges_them(name):
    """Of 600 categories neighbours differ at random; merged by threes their means would correlate by 0.58."""
    algorithm, rng = catalogue()[name].algorithm, np.random.default_rng(2)
    level, effect = np.repeat(np.arange(600.0), 20)[:, None], rng.permuted(np.repeat([0.0, 1.0], 300))
    task = R if R in algorithm.tasks else C
    data = Data.of(task, level, effect[level[:, 0].astype(int)], levels=[600], missing=True)
    params = algorithm.params()
    predicted = algorithm.predict(params, algorithm.fit(params, data, Context.of(0)).state, np.arange(600.0)[:, None])
    assert np.corrcoef(predicted if task is R else predicted[:, 1], effect)[0, 1] > 0.9


def crossed(rows, seed):
    """Two numbers, and columns of 4, 12 and 30 categories whose effects depend on a number."""
    rng, law = np.random.default_rng(seed), np.random.default_rng(9)
    levels = (0, 0, 4, 12, 30)
    x = np.column_stack([rng.integers(0, k, rows) if k else rng.normal(size=rows) for k in levels])
    score = x[:, 0] + sum(law.normal(size=k)[x[:, j].astype(int)] for j, k in enumerate(levels) if k)
    score += 2 * x[:, 1] * law.normal(size=30)[x[:, 4].astype(int)]
    return x, score + rng.logistic(size=rows), levels


@pytest.mark.parametrize("task", [C, R])
def test_as_good_as_scikit_learns_of_categories(task):
    """It has the same smoothing, and no `category_l2`."""
    (x, y, levels), (new, new_y, _) = crossed(1500, 1), crossed(3000, 2)
    rival = ensemble.HistGradientBoostingRegressor if task is R else ensemble.HistGradientBoostingClassifier
    peer = rival(early_stopping=False, categorical_features=[2, 3, 4]).fit(x, y if task is R else y > 0)

    def loss(predicted):
        if task is R:
            return np.mean((predicted - new_y) ** 2)
        return -np.mean(np.log(np.where(new_y > 0, predicted, 1 - predicted)))

    theirs = loss(peer.predict(new) if task is R else peer.predict_proba(new)[:, 1])
    ours = []
    for category_l2 in (0.0, 10.0):
        how = {"n_estimators": 100, "learning_rate": 0.1, "category_l2": category_l2}
        params, state = fitted(x, y if task is R else (y > 0) * 1.0, levels, task, **how)
        predicted = predict(params, state, new)
        ours.append(loss(predicted if task is R else predicted[:, 1]))
    assert ours[0] == pytest.approx(theirs, rel=0.03)
    assert ours[1] < 1.01 * theirs
