"""Gradient boosting: every step from its definition, the loss that falls, stopping, and rivals as good."""

import tracemalloc
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from sklearn import datasets, ensemble

from app.ml.algorithms.gradient_boosting import GradientBoosting, fit, predict, summary
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.boosting import gradient_trees
from app.ml.numerics.boosting.boosting_rows import draw_train_mask
from app.ml.numerics.trees.binning import binned
from app.ml.numerics.trees.forest import total
from app.ml.numerics.trees.growth import UNLIMITED

C, R = Task.CLASSIFICATION, Task.REGRESSION
NAN = np.nan


def fitted(data, seed=0, **params):
    return fit(GradientBoosting(**params), data, Context.of(seed))


def friedman(n, seed=0):
    return Data.of(R, *datasets.make_friedman1(n, 8, noise=1.0, random_state=seed))


def blobs(n, classes, seed=0):
    x, y = datasets.make_classification(n, 8, n_informative=5, flip_y=0.1, n_classes=classes, random_state=seed)
    return Data.of(C, x, y)


def loss(data, predicted):
    if data.task is R:
        return np.average((predicted - data.y) ** 2, weights=data.weights)
    return -np.average(np.log(predicted[np.arange(len(data.y)), data.codes]), weights=data.weights)


def twin(x, gradient, curvature, params):
    """Values of one tree for its own rows, by the definition: every threshold of every leaf, the best one first."""
    worth = lambda rows: gradient[rows].sum() ** 2 / (curvature[rows].sum() + params.l2)  # noqa: E731
    weigh = lambda rows: curvature[rows].sum()  # noqa: E731
    leaves = [np.ones(len(x), bool)]
    while len(leaves) < params.max_leaf_nodes:
        found = None
        for place, rows in enumerate(leaves):
            for j in range(x.shape[1]):
                for value in np.unique(x[rows, j])[:-1]:
                    left, right = rows & (x[:, j] <= value), rows & (x[:, j] > value)
                    if min(left.sum(), right.sum()) < params.min_samples_leaf:
                        continue
                    if min(weigh(left), weigh(right)) < gradient_trees.LEAST_CURVATURE:
                        continue
                    gain = worth(left) + worth(right) - worth(rows)
                    if gain > 0 and (found is None or gain > found[0] * (1 + 1e-9)):
                        found = gain, place, left, right
        if found is None:
            break
        _, place, *parts = found
        leaves[place : place + 1] = parts
    predicted = np.zeros(len(x))
    for rows in leaves:
        predicted[rows] = -params.learning_rate * gradient[rows].sum() / (curvature[rows].sum() + params.l2)
    return predicted


@pytest.mark.parametrize("task", [C, R])
def test_three_trees_are_their_definition(task):
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.normal(size=90).round(1), rng.integers(0, 5, 90), rng.normal(size=90).round(1)])
    y = x[:, 0] + (x[:, 1] > 2) + 0.5 * rng.normal(size=90)
    data = Data.of(task, x, (y > 1) * 1.0 if task is C else y)
    params = GradientBoosting(
        n_estimators=3, max_leaf_nodes=5, min_samples_leaf=1 if task is C else 7, l2=0.5, learning_rate=0.3
    )
    state = fit(params, data, Context.of(0)).state
    raw = np.full(90, np.log(data.y.mean() / (1 - data.y.mean())) if task is C else data.y.mean())
    for _ in range(3):
        share = 1 / (1 + np.exp(-raw))
        gradient = share - data.y if task is C else raw - data.y
        raw += twin(x, gradient, share * (1 - share) if task is C else np.ones(90), params)
    np.testing.assert_allclose(total(state.trees, x)[:, 0] + state.base, raw, rtol=1e-5)  # gradients have four bytes


def test_trees_of_three_classes_are_their_definition():
    """All trees of a round start from the same probabilities."""
    rng = np.random.default_rng(4)
    x = np.column_stack([rng.normal(size=80).round(1), rng.integers(0, 5, 80)])
    y = np.searchsorted([-0.5, 0.8], x[:, 0] + 0.7 * rng.normal(size=80))
    params = GradientBoosting(n_estimators=4, max_leaf_nodes=4, min_samples_leaf=1, l2=0.5, learning_rate=0.6)
    state = fit(params, Data.of(C, x, y), Context.of(0)).state
    truth = np.eye(3)[y]
    raw = np.tile(np.log(truth.mean(axis=0)), (80, 1))
    for _ in range(4):
        p = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
        raw = raw + np.column_stack([twin(x, q - t, q * (1 - q), params) for q, t in zip(p.T, truth.T, strict=True)])
    p = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(predict(params, state, x), p, rtol=1e-4)  # sums have four bytes


def grown(x, gradient, leaves, weights=()):
    """Values of one tree of full steps for its own rows, of which these are the gradients of probabilities."""
    result, weights, raw = gradient.astype(np.float32), np.array(weights), np.zeros(len(x))
    share = np.abs(result).astype(float)
    times = weights if weights.size else 1.0
    largest = (share * times).max(), (share * (1 - share) * times).max()
    slopes = gradient_trees.Slopes(result, numbers=False, unit=1.0, weights=weights, weight=1.0, largest=largest)
    table = binned(Data.of(R, x, raw), by_row=True)
    gradient_trees.Booster(
        table, np.ones(len(x), bool), gradient_trees.Limits(leaves, UNLIMITED, 1e-9, 0.0, 1.0, 0.0, 0.0), 1
    ).grow(slopes, raw)
    return raw


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_rows_that_are_nearly_certain_count_as_little_as_they_are_in_doubt(seed):
    """Of probabilities from 1e-6 to 1 - 1e-6; a curvature in steps of a thousandth finds other splits."""
    rng = np.random.default_rng(seed)
    x, p = rng.normal(size=(120, 2)), 1 / (1 + np.exp(-5 * rng.normal(size=120)))
    gradient, curvature = p - (rng.random(120) < p), p * (1 - p)
    params = GradientBoosting(max_leaf_nodes=8, min_samples_leaf=1, l2=0, learning_rate=1)
    np.testing.assert_allclose(grown(x, gradient, 8), twin(x, gradient, curvature, params), rtol=1e-5)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_a_tree_of_rows_that_weigh_more_or_less_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    x, p = rng.normal(size=(120, 2)), 1 / (1 + np.exp(-2 * rng.normal(size=120)))
    gradient, weights = p - (rng.random(120) < p), rng.uniform(0.2, 3, 120)
    params = GradientBoosting(max_leaf_nodes=8, min_samples_leaf=1, l2=0, learning_rate=1)
    expected = twin(x, weights * gradient, weights * p * (1 - p), params)
    np.testing.assert_allclose(grown(x, gradient, 8, weights), expected, rtol=1e-5)


def test_a_leaf_without_doubt_takes_no_step_into_nothing():
    """A probability of 1 has no curvature; without `l2` it would be divided by."""
    result = grown(np.zeros((4, 1)), np.array([0.0, 0.0, 0.0, 1e-6]), 2)
    np.testing.assert_allclose(result, -1e-6 / gradient_trees.LEAST_CURVATURE, rtol=1e-6)


@pytest.mark.parametrize("data", [friedman(400), blobs(400, 2), blobs(400, 4)], ids=["numbers", "two", "four"])
def test_the_loss_never_rises(data):
    """E9: each stage lowers what those before it left; the curve is the loss."""
    found = fitted(data, min_samples_leaf=5)
    assert (np.diff(found.curves["loss"]) <= 1e-12).all()
    assert found.curves["loss"][-1] == pytest.approx(loss(data, predict(GradientBoosting(), found.state, data.x)))
    assert found.curves["loss"][-1] < 0.5 * found.curves["loss"][0]


def test_fewer_trees_are_the_first_of_more():
    few, many = (fitted(friedman(200), n_estimators=trees).state.trees for trees in (3, 9))
    assert few.threshold.tobytes() == many.threshold[: few.threshold.size].tobytes()


@pytest.mark.parametrize(
    "draw", [friedman, lambda n: blobs(n, 2), lambda n: blobs(n, 4)], ids=["numbers", "two", "four"]
)
def test_as_good_as_scikit_learns(draw):
    both = draw(3000)
    old, new = both.take(np.arange(1500)), both.take(np.arange(1500, 3000))
    rival = ensemble.HistGradientBoostingRegressor if old.task is R else ensemble.HistGradientBoostingClassifier
    peer = rival(early_stopping=False).fit(old.x, old.y)
    theirs = peer.predict(new.x) if old.task is R else peer.predict_proba(new.x)
    ours = predict(GradientBoosting(), fitted(old, l2=0.0).state, new.x)
    assert loss(new, ours) < 1.08 * loss(new, theirs)


def test_held_out_rows_say_when_to_stop():
    data = blobs(600, 2, seed=1)
    found = fitted(data, n_estimators=400, learning_rate=0.3, early_stopping=True, n_iter_no_change=10)
    curve = found.curves["held_out_loss"]
    assert len(curve) < 400
    assert found.iterations == int(np.argmin(curve)) + 1 == len(curve) - 10
    assert found.state.trees.root.size == found.iterations


@pytest.mark.parametrize("draw", [friedman, lambda n: blobs(n, 3)], ids=["numbers", "classes"])
def test_rows_that_say_when_to_stop_teach_nothing(draw):
    data, params = (
        draw(300),
        GradientBoosting(n_estimators=3, early_stopping=True, n_iter_no_change=50, validation_fraction=0.3),
    )
    held = ~draw_train_mask(params, 300, Context.of(0).rng)
    assert held.sum() == 90
    other = Data.of(data.task, data.x, np.where(held, data.y[::-1], data.y))
    one, same = (fit(params, rows, Context.of(0)) for rows in (data, other))
    assert one.curves["loss"] == same.curves["loss"]
    assert one.curves["held_out_loss"] != same.curves["held_out_loss"]
    kept = min(one.iterations, same.iterations)
    assert kept > 0
    first = one.state.trees.root[1]
    assert one.state.trees.threshold[:first].tobytes() == same.state.trees.threshold[:first].tobytes()
    np.testing.assert_array_equal(one.state.base, same.state.base)


def test_a_class_without_rows_is_nearly_impossible():
    data = blobs(200, 2)
    predicted = predict(GradientBoosting(), fitted(Data.of(C, data.x, data.y, classes=3), n_estimators=2).state, data.x)
    assert 0 < predicted[:, 2].max() < 1e-8


def test_one_class_needs_no_split_and_no_held_out_rows():
    found = fitted(Data.of(C, np.zeros((9, 1)), np.zeros(9)), early_stopping=True, n_iter_no_change=2)
    assert found.iterations == 0
    assert predict(GradientBoosting(), found.state, np.zeros((2, 1))).tolist() == [[1], [1]]


def test_missing_values_go_where_they_help():
    """Those missing are like the small ones; a later node that has seen none sends them both ways."""
    x = np.repeat([[0.0], [1.0], [NAN]], 40, axis=0)
    data = Data.of(R, x, np.repeat([5.0, 1.0, 5.0], 40), missing=True)
    found = fitted(data, n_estimators=1, learning_rate=1.0, l2=0.0)
    assert predict(GradientBoosting(), found.state, np.array([[NAN], [0.0], [1.0]])) == pytest.approx([5, 5, 1])
    for like in (5.0, 1.0):  # by one split
        rows = Data.of(R, x, np.repeat([5.0, 1.0, like], 40), missing=True)
        found = fitted(rows, n_estimators=1, learning_rate=1.0, l2=0.0, max_leaf_nodes=2)
        assert predict(GradientBoosting(), found.state, np.array([[NAN], [0.0], [1.0]])) == pytest.approx([like, 5, 1])
    seen = fitted(data.take(np.arange(80)), n_estimators=1, learning_rate=1.0, l2=0.0)
    assert predict(GradientBoosting(), seen.state, np.array([[NAN]]))[0] == pytest.approx(3)


def test_known_or_missing_can_be_the_whole_split():
    x = np.repeat([[2.0], [NAN]], 30, axis=0)
    found = fitted(Data.of(R, x, np.repeat([1.0, 4.0], 30), missing=True), n_estimators=1, learning_rate=1.0, l2=0.0)
    assert predict(GradientBoosting(), found.state, np.array([[9.0], [NAN]])) == pytest.approx([1, 4])


@pytest.mark.parametrize(("name", "value"), [("POOL", 0), ("PARTS", 1), ("PARTS", 7)])
def test_with_other_room_for_histograms_and_rows_the_trees_are_the_same(name, value, monkeypatch):
    one = fitted(friedman(300), n_estimators=5).state
    monkeypatch.setattr(gradient_trees, name, value)
    other = fitted(friedman(300), n_estimators=5).state
    assert one.trees.values.tobytes() == other.trees.values.tobytes()


def test_one_wild_number_does_not_blind_it():
    """Gradients are in steps of the largest: there must be enough of them."""
    data = friedman(500)
    y = data.y.copy()
    y[0] = 1e6
    state = fitted(Data.of(R, data.x, y), n_estimators=5, learning_rate=1.0, min_samples_leaf=1, l2=0.0).state
    predicted = predict(GradientBoosting(), state, data.x)
    assert predicted[0] == pytest.approx(1e6, rel=1e-4)
    assert np.corrcoef(predicted[1:], data.y[1:])[0, 1] > 0.95


@pytest.mark.parametrize("unit", [1e-310, 1e-150, 1e150])
def test_numbers_may_be_of_any_size(unit):
    data = friedman(200)
    own, other = (
        predict(GradientBoosting(), fitted(one).state, data.x) for one in (data, Data.of(R, data.x, data.y * unit))
    )
    np.testing.assert_allclose(other / unit, own, rtol=1e-6)


def test_importance_finds_the_columns():
    result = summary(GradientBoosting(), fitted(friedman(1000)).state)
    assert {part["column"] for part in result["importances"][:5]} == set(range(5))
    assert sum(part["importance"] for part in result["importances"]) == pytest.approx(1)


def test_weights_count():
    """Rows of a weight near nothing teach nothing."""
    data = friedman(400)
    y = np.r_[data.y[:200], -data.y[200:]]
    weighted = Data.of(R, data.x, y, weights=np.repeat([1.0, 1e-6], 200))
    predicted = predict(GradientBoosting(), fitted(weighted).state, data.x[:200])
    alone = predict(GradientBoosting(), fitted(data.take(np.arange(200))).state, data.x[:200])
    assert np.corrcoef(predicted, alone)[0, 1] > 0.95


@pytest.mark.parametrize("data", [friedman(300), blobs(300, 2), blobs(300, 3)], ids=["numbers", "two", "three"])
def test_a_weight_that_all_have_is_a_part_of_l2(data):
    """G / (H + l2) of rows that weigh w is that of rows that weigh 1, with l2 / w."""
    heavy = replace(data, weights=np.full(300, 3.0))
    one, other = (fitted(rows, n_estimators=5, l2=l2).state for rows, l2 in ((heavy, 6.0), (data, 2.0)))
    np.testing.assert_allclose(one.trees.values, other.trees.values, rtol=1e-9)


@lru_cache(maxsize=1)
def five_million_cells(classes, columns):
    n = 5_300_000 // columns
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, columns)).round(2)
    y = x[:, 0] + rng.normal(size=n)
    if classes:
        y = np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y)
    return x, y, rng.uniform(1, 2, n)


@pytest.mark.parametrize("params", [{}, {"early_stopping": True, "n_iter_no_change": 5}], ids=["all", "held out"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("classes", "columns"), [(0, 22), (2, 16), (4, 32), (10, 64)])
def test_memory_is_at_most_twice_the_codes(classes, columns, weighted, params):
    """Of 5 MB: arrays that numpy makes, which are all but some kilobytes in kernels."""
    x, y, weights = five_million_cells(classes, columns)
    data = Data.of(C if classes else R, x, y, weights=weights if weighted else None)
    few = {"n_estimators": 2, "max_leaf_nodes": 4, **params}
    fitted(data.take(np.arange(1000)), **few)  # what is imported and compiled counts for nothing
    tracemalloc.start()
    fitted(data, **few)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * x.size
