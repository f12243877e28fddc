"""Drawn rows, columns and thresholds of gradient boosting: published numbers, shares, and what they depend on."""

import numpy as np
import pytest

from app.ml.algorithms.gradient_boosting import GradientBoosting, fit, predict
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.boosting.compiled.bounded_splits import ROW_STREAM, draw_rows, philox
from app.ml.numerics.boosting.step_bounds import StepBounds


def rows(n=600, numbers=None):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 6))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=n)
    return Data.of(Task.REGRESSION, x, y, numbers=numbers)


def fitted(data, seed=0, **params):
    made = GradientBoosting(**{"n_estimators": 20, "min_samples_leaf": 5} | params)
    return made, fit(made, data, Context.of(seed)).state


def test_philox_has_its_published_numbers():
    """Published numbers of Random123: counters and keys of zeros."""
    assert philox(0, 0, 0, 0, 0) == pytest.approx((0x6627E8D5 + 0xE169C58D / 2**32) / 2**32, abs=1e-15)


def test_draws_depend_on_nothing_but_seed_tree_and_row():
    numbers, draws, few = np.arange(100_000), np.empty(100_000), np.empty(3)
    draw_rows(7, 3, numbers, draws)
    draw_rows(7, 3, numbers[[5, 70, 4000]], few)
    assert few.tolist() == draws[[5, 70, 4000]].tolist()
    assert draws.mean() == pytest.approx(0.5, abs=0.004)
    other = np.empty(100_000)
    draw_rows(7, 4, numbers, other)
    assert abs(np.corrcoef(draws, other)[0, 1]) < 0.01
    assert ROW_STREAM < 4


def test_a_bag_has_its_share_of_the_training_rows():
    mask = np.arange(20_000) % 10 > 0
    bag = StepBounds(max_samples=0.4).bag(1, np.arange(20_000), mask)
    assert not bag[~mask].any()
    assert bag[mask].mean() == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize(
    "params", [{"max_samples": 0.5}, {"max_features_tree": 2}, {"max_features": 1}, {"extra_trees": True}]
)
def test_same_seed_same_bytes_and_another_seed_others(params):
    data = rows()
    _, state = fitted(data, **params)
    _, again = fitted(data, **params)
    _, other = fitted(data, seed=1, **params)
    _, plain = fitted(data)
    assert state.trees.threshold.tobytes() == again.trees.threshold.tobytes()
    assert state.trees.threshold.tobytes() not in {other.trees.threshold.tobytes(), plain.trees.threshold.tobytes()}


def test_rows_out_of_the_bag_have_their_trees_too():
    """The curve of the loss, of all rows, is that of the predictions."""
    data = rows()
    params = GradientBoosting(n_estimators=15, max_samples=0.3)
    made = fit(params, data, Context.of(0))
    predicted = predict(params, made.state, data.x)
    assert made.curves["loss"][-1] == pytest.approx(np.mean((predicted - data.y) ** 2), rel=1e-9)


def test_trees_have_no_more_columns_than_are_drawn():
    _, state = fitted(rows(), max_features_tree=2, n_estimators=12)
    ends = np.append(state.trees.root[1:], state.trees.column.size)
    used = [set(state.trees.column[a:b].tolist()) - {-1} for a, b in zip(state.trees.root, ends, strict=True)]
    assert max(map(len, used)) == 2
    assert len(set().union(*used)) == 6


def test_a_node_with_one_drawn_column_splits_others_than_the_best():
    _, state = fitted(rows(), max_features=1, n_estimators=12)
    _, plain = fitted(rows(), n_estimators=12)
    assert len(set(state.trees.column[state.trees.root])) > len(set(plain.trees.column[plain.trees.root]))


def test_a_split_that_lowers_the_mean_loss_too_little_is_not_made():
    x = np.repeat([[0.0], [1.0], [2.0], [3.0]], 25, axis=0)
    y = np.repeat([0.0, 0.2, 4.0, 4.2], 25)
    options = {"n_estimators": 1, "learning_rate": 1.0, "l2": 0.0, "min_samples_leaf": 1}
    for least, leaves in ((0.0, 4), (0.004, 4), (0.006, 2), (3.9, 2), (4.1, 1)):  # 0.005 each, and 4
        _, state = fitted(Data.of(Task.REGRESSION, x, y), min_impurity_decrease=least, **options)
        assert (state.trees.column < 0).sum() == leaves


def test_drawn_thresholds_are_still_fitted():
    data = rows(2000)
    params, state = fitted(data, extra_trees=True, n_estimators=80)
    assert np.corrcoef(predict(params, state, data.x), data.y)[0, 1] > 0.85
