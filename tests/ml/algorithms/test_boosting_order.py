"""Directions and interactions of gradient boosting: walked on grids, beside LightGBM, the nearest values, refusals."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from app.base.errors import InvalidData
from app.ml.algorithms.gradient_boosting import ALGORITHM, GradientBoosting, fit, predict, summary
from app.ml.contract.algorithm import Context, Data, Inputs, Size, Task
from app.ml.numerics.boosting.ordered_leaves import ordered_values, prove_order
from app.ml.numerics.trees.forest import total

NAMES = ("a", "b", "c", "d")


def drawn(seed, n=400):
    """Rows with gaps and a category, in which nothing is in order."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    x[:, 3] = rng.integers(0, 5, n)
    x[rng.random(x.shape) < 0.1] = np.nan
    filled = np.nan_to_num(x)
    y = np.sin(2 * filled[:, 0]) + filled[:, 0] * filled[:, 1] + filled[:, 3] % 2 + rng.normal(size=n)
    return x, y


def fitted(seed, n=400, **params):
    x, y = drawn(seed, n)
    loss = params.get("loss", "squared")
    y = np.exp(y / 2) if loss in {"poisson", "gamma"} else y
    data = Data.of(Task.REGRESSION, x, y, levels=[0, 0, 0, 5], missing=True, names=NAMES)
    options = {"n_estimators": 8, "max_leaf_nodes": 12, "min_samples_leaf": 5} | params
    made = GradientBoosting(**options)
    return made, fit(made, data, Context.of(seed)).state, x


def steps_along(params, state, x, column):
    """Differences of the predictions of rows whose column walks over all thresholds, from below to above."""
    splits = state.trees.column == column
    bounds = np.unique(state.trees.threshold[splits & np.isfinite(state.trees.threshold)])
    walk = np.concatenate([[-9.0], *([bound, np.nextafter(bound, np.inf)] for bound in bounds), [9.0]])
    rows = np.repeat(x[:40], walk.size, axis=0)
    rows[:, column] = np.tile(walk, 40)
    raw = total(state.trees, rows)[:, 0].reshape(40, -1)
    return np.diff(raw, axis=1), np.diff(predict(params, state, rows).reshape(40, -1), axis=1)


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile", "poisson", "huber"])
def test_no_step_of_a_walk_over_all_thresholds_goes_the_wrong_way(loss):
    for seed in range(6):
        params, state, x = fitted(seed, loss=loss, monotone={"a": 1, "b": -1, "c": 0}, learning_rate=0.3)
        proofs = prove_order(state.trees, state.directions)
        assert [(proof.column, proof.direction, proof.violations) for proof in proofs] == [(0, 1, 0), (1, -1, 0)]
        assert proofs[0].pairs > 0
        for column, direction in ((0, 1), (1, -1)):
            raw, predicted = steps_along(params, state, x, column)
            assert (direction * raw >= 0).all()
            assert (direction * predicted >= 0).all()


def test_a_fit_without_directions_is_out_of_order():
    """The proof can fail: the same rows without directions."""
    _, state, _ = fitted(0)
    (proof,) = prove_order(state.trees, np.array([1, 0, 0, 0]))
    assert proof.violations > 0


def test_reports_state_the_proof():
    params, state, _ = fitted(0, monotone={"a": 1})
    (proof,) = summary(params, state)["monotone"]
    assert proof == {"column": 0, "direction": 1, "trees": 8, "pairs": proof["pairs"], "violations": 0}


def test_values_in_order_are_the_nearest():
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=9), rng.uniform(0.5, 2, 9)
    chain = np.array([[i, i + 1] for i in range(8)])
    expected = IsotonicRegression().fit_transform(np.arange(9), values, sample_weight=weights)
    np.testing.assert_allclose(ordered_values(values, weights, chain), expected, atol=1e-9)
    pairs = np.array(
        [(a, b) for a, b in itertools.product(range(9), repeat=2) if a % 3 <= b % 3 and a // 3 <= b // 3 and a != b]
    )
    ordered = ordered_values(values, weights, pairs)
    assert (ordered[pairs[:, 0]] <= ordered[pairs[:, 1]]).all()
    best = minimize(
        lambda v: weights @ (v - values) ** 2,
        np.full(9, values.mean()),
        constraints={"type": "ineq", "fun": lambda v: v[pairs[:, 1]] - v[pairs[:, 0]]},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert weights @ (ordered - values) ** 2 <= best.fun * (1 + 1e-6)


def test_true_directions_cost_no_accuracy_beside_lightgbm():
    import lightgbm

    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, (4000, 3))
    y = np.tanh(2 * x[:, 0]) - x[:, 1] + np.sin(3 * x[:, 2]) + rng.normal(size=4000)
    params = GradientBoosting(monotone={"a": 1, "b": -1}, l2=0, n_estimators=60)
    state = fit(params, Data.of(Task.REGRESSION, x[:2000], y[:2000], names=("a", "b", "c")), Context.of(0)).state
    error = np.sqrt(np.mean((predict(params, state, np.ascontiguousarray(x[2000:])) - y[2000:]) ** 2))
    rival = lightgbm.train(
        {
            "monotone_constraints": [1, -1, 0],
            "monotone_constraints_method": "advanced",
            "verbose": -1,
            "num_threads": 1,
        },
        lightgbm.Dataset(x[:2000], y[:2000]),
        60,
    )
    assert error <= 1.02 * np.sqrt(np.mean((rival.predict(x[2000:]) - y[2000:]) ** 2))


def test_columns_of_a_path_lie_in_one_group():
    groups = [["a", "b"], ["b", "d"]]
    _, state, _ = fitted(0, interactions=groups, max_leaf_nodes=20)
    allowed = [{0, 1}, {1, 3}, {2}]
    trees = state.trees
    stack, paths = [(int(root), frozenset()) for root in trees.root], set()
    while stack:
        node, path = stack.pop()
        if trees.column[node] < 0:
            paths.add(path)
            continue
        children = range(trees.left[node], trees.left[node] + 2)
        stack += [(child, path | {int(trees.column[node])}) for child in children]
    assert all(any(path <= group for group in allowed) for path in paths)
    assert max(map(len, paths)) == 2


@pytest.mark.parametrize(
    ("params", "place"),
    [
        ({"monotone": {"aa": 1}}, "/monotone/aa"),
        ({"monotone": {"d": 1}}, "/monotone/d"),
        ({"interactions": [["a"], ["e"]]}, "/interactions/1"),
    ],
)
def test_columns_without_an_order_are_refused_by_name(params, place):
    inputs = Inputs({"a": "numeric", "d": "categorical"}, Size(100, 2))
    assert [fault.pointer for fault in ALGORITHM.faults(GradientBoosting(**params), inputs)] == [place]


def test_more_than_two_classes_have_no_direction():
    faults = ALGORITHM.faults(GradientBoosting(monotone={"a": 1}), Inputs({"a": "numeric"}, Size(100, 1, 3)))
    assert [fault.pointer for fault in faults] == ["/monotone"]


def test_a_column_that_a_fit_does_not_have_is_named():
    data = Data.of(Task.REGRESSION, np.zeros((5, 1)), np.arange(5.0), names=("a",))
    with pytest.raises(InvalidData, match="'b'"):
        fit(GradientBoosting(monotone={"b": 1}), data, Context.of(0))
