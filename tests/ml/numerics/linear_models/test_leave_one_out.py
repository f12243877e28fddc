"""The closed form equals a fit without each row, wherever it is defined."""

import numpy as np
import pytest

from app.base.errors import InvalidData
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.linear_models.leave_one_out import left_out, leverages

SETTINGS = {
    "linear": [{}, {"fit_intercept": False}],
    "ridge": [{"l2": 0.0}, {"l2": 1.0}, {"l2": 1e3}],
    "knn": [
        {"n_neighbors": 3},
        {"n_neighbors": 5, "weights": "distance", "metric": "manhattan"},
        {"n_neighbors": 50},
        {"prototypes": 3},
    ],
}
CASES = [(name, params) for name, many in SETTINGS.items() for params in many]


def rows(task, n=30, d=3, *, seed=0, duplicates=True):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d)) + [5.0, 0.0, -1.0][:d]
    if duplicates:
        x[n // 2 :] = x[: n - n // 2].round(0)
    x[:, -1] = random.integers(0, 2, n)
    y = x @ np.arange(1.0, d + 1) + random.normal(size=n)
    codes = np.digitize(y, np.quantile(y, [0.3, 0.7])) * 1.0
    weights = random.uniform(0.5, 2, n)
    return Data.of(task, x, codes if task is Task.CLASSIFICATION else y, weights=weights)


def brute_force(algorithm, params, data):
    predictions = []
    for i in range(len(data.x)):
        others = np.arange(len(data.x)) != i
        state = algorithm.fit(params, data.take(others), Context.of(0)).state
        predictions.append(algorithm.predict(params, state, data.x[i : i + 1])[0])
    return np.array(predictions)


@pytest.mark.parametrize("task", [Task.REGRESSION, Task.CLASSIFICATION])
@pytest.mark.parametrize(("name", "params"), CASES, ids=str)
def test_equals_brute_force(name, params, task):
    algorithm = catalogue()[name].algorithm
    settings, data = algorithm.params(**params), rows(task)
    quick, slow = algorithm.leave_one_out.predict(settings, data), brute_force(algorithm, settings, data)
    result = ~np.isnan(quick.reshape(len(quick), -1)).any(axis=1)
    assert result.all() == ("prototypes" not in params)
    np.testing.assert_allclose(quick[result], slow[result], rtol=1e-10, atol=1e-10)


def test_scaling_is_declared_where_it_does_not_count():
    """Columns shifted and scaled anew for every fit, as preparation does."""
    data = rows(Task.REGRESSION)
    for name, params in CASES:
        algorithm = catalogue()[name].algorithm
        settings = algorithm.params(**params)
        moved = Data.of(data.task, (data.x - [4.0, 1.0, 0.5]) / [3.0, 0.1, 10.0], data.y, weights=data.weights)
        one, other = (algorithm.leave_one_out.predict(settings, part) for part in (data, moved))
        same = np.allclose(one, other, rtol=1e-8, atol=1e-8)
        assert same or not algorithm.leave_one_out.unscaled(settings), (name, params)


def test_every_algorithm_that_has_one_is_tested():
    assert {name for name, entry in catalogue().items() if entry.algorithm.leave_one_out} == set(SETTINGS)


def test_a_row_alone_in_its_direction_is_left_open():
    x = np.column_stack([np.linspace(0, 1, 20), np.zeros(20)])
    x[4, 1] = 1.0
    result = left_out(x, x[:, :1] * 2, np.ones(20), 0.0, intercept=True)
    assert np.flatnonzero(np.isnan(result)).tolist() == [4]
    assert not np.isnan(left_out(x, x[:, :1] * 2, np.ones(20), 0.1, intercept=True)).any()


def test_dependent_columns_and_more_columns_than_rows():
    random = np.random.default_rng(1)
    x = random.normal(size=(20, 2))
    y = random.normal(size=(20, 1))
    doubled = np.column_stack([x, x[:, 0] - x[:, 1]])
    one, other = (left_out(part, y, np.ones(20), 0.0, intercept=True) for part in (x, doubled))
    np.testing.assert_allclose(one, other, rtol=1e-9)
    wide = random.normal(size=(5, 9))
    assert np.isnan(left_out(wide, y[:5], np.ones(5), 0.0, intercept=True)).all()
    assert np.isfinite(left_out(wide, y[:5], np.ones(5), 1.0, intercept=True)).all()


@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_leverages_add_up_to_the_degrees_of_freedom(penalty):
    a = np.random.default_rng(0).normal(size=(40, 4))
    s = np.linalg.svd(a, compute_uv=False)
    assert leverages(a, penalty).sum() == pytest.approx((s**2 / (s**2 + penalty)).sum(), rel=1e-12)


def test_one_row():
    data = Data.of(Task.REGRESSION, [[1.0]], [2.0])
    for name, params in CASES:
        algorithm = catalogue()[name].algorithm
        assert np.isnan(algorithm.leave_one_out.predict(algorithm.params(**params), data)).all()
    with pytest.raises(InvalidData):
        Data.of(Task.REGRESSION, np.zeros((0, 1)), [])
