"""Algorithms that accept sparse rows fit them as they fit the same rows in an array."""

import numpy as np
import pytest
import scipy

from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Accepts, Context, Data, Task
from app.ml.contract.sparse_rows import SparseRows, beside, sparse
from app.ml.models import state_format

SETTINGS = {
    "generative_bayes": [{"density": "multinomial"}],
    "multinomial_mixture": [{"n_components": 3}],
    "svm": [{"kernel": "linear", "tol": 1e-7, "cv": None}],
}
"""Those with which an algorithm takes texts, where not the defaults."""
CASES = [
    (name, settings, task)
    for name, entry in sorted(catalogue().items())
    if Accepts.SPARSE in entry.algorithm.accepts
    for settings in SETTINGS.get(name, [{}])
    for task in sorted(entry.algorithm.tasks)
]


def drawn(task, d, rows=150):
    rng = np.random.default_rng(5)
    topics = rng.dirichlet(np.full(d, 0.1), 3)
    codes = rng.integers(0, 3, rows)
    x = np.array([rng.multinomial(20, topics[code]) for code in codes], np.float64)
    y = x @ rng.normal(size=d) if task is Task.REGRESSION else codes
    return x, y, rng.uniform(0.5, 2, rows)


@pytest.fixture(params=CASES, ids=lambda case: "-".join([case[0], case[2]]))
def taker(request):
    name, settings, task = request.param
    algorithm = catalogue()[name].algorithm
    return algorithm, algorithm.params(**settings), task


def test_sparse_rows_are_fitted_as_an_array(taker):
    algorithm, params, task = taker
    for d in (6, 300):
        x, y, weights = drawn(task, d)
        rows = SparseRows(scipy.sparse.csr_array(x))
        plain, few = (Data.of(task, given, y, weights=weights) for given in (x, rows))
        expected = algorithm.fit(params, plain, Context.of(0))
        found = algorithm.fit(params, few, Context.of(0))
        predicted = algorithm.predict(params, expected.state, x)
        if task is Task.CLUSTERING:
            assert len(np.unique(predicted)) == 3
            pairs = set(zip(predicted.tolist(), algorithm.predict(params, found.state, rows).tolist(), strict=True))
            assert len(pairs) == 3
        else:
            scale = 1.0 if task.of_classes else np.abs(y).max()
            np.testing.assert_allclose(
                algorithm.predict(params, found.state, rows), predicted, rtol=0, atol=1e-5 * scale
            )
        again = algorithm.fit(params, few, Context.of(0))
        arrays, same = {}, {}
        assert state_format.pack(found.state, "s", arrays) == state_format.pack(again.state, "s", same)
        assert {name: array.tobytes() for name, array in arrays.items()} == {
            name: array.tobytes() for name, array in same.items()
        }


def test_a_sparse_row_is_predicted_alone_as_among_others(taker):
    algorithm, params, task = taker
    x, y, _ = drawn(task, 200)
    rows = SparseRows(scipy.sparse.csr_array(x))
    state = algorithm.fit(params, Data.of(task, rows, y), Context.of(0)).state
    together = algorithm.predict(params, state, rows)
    for row in range(0, len(x), 10):
        np.testing.assert_array_equal(algorithm.predict(params, state, rows[row : row + 1])[0], together[row])


def test_rows_without_numbers_are_fitted_and_predicted(taker):
    algorithm, params, task = taker
    x, y, _ = drawn(task, 30)
    x[:40] = 0
    rows = SparseRows(scipy.sparse.csr_array(x))
    fit = algorithm.fit(params, Data.of(task, rows, y), Context.of(0))
    assert np.isfinite(algorithm.predict(params, fit.state, rows)).all()


def test_the_rows_have_what_is_used_of_an_array():
    x = np.array([[0.0, 2, 0], [1, 0, 3], [0, 0, 0]])
    rows = SparseRows(scipy.sparse.csr_array(x))
    left, right = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
    assert (len(rows), rows.shape, sparse(x), sparse(rows)) == (3, (3, 3), None, rows)
    for chosen in ([2, 0, 0], np.array([True, False, True]), slice(0, 3, 2)):
        np.testing.assert_array_equal(rows[chosen].csr.toarray(), x[chosen])
    np.testing.assert_array_equal(rows @ right, x @ right)
    np.testing.assert_array_equal(rows.T @ right, x.T @ right)
    np.testing.assert_array_equal(left @ rows, left @ x)
    np.testing.assert_array_equal(left[0] @ rows, left[0] @ x)
    np.testing.assert_array_equal(beside(right, [rows, rows]).csr.toarray(), np.hstack([right, x, x]))
    rows.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        rows.csr.data[0] = 1
