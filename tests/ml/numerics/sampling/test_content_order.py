"""The order of rows by their contents, and fits that do not depend on the order of the table."""

import numpy as np
import pytest
import scipy

from app.ml.algorithms import svm
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Data, Task
from app.ml.contract.sparse_rows import SparseRows
from app.ml.models.state_format import pack
from app.ml.numerics.sampling.content_order import content_order

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4)) * (RNG.random((80, 4)) < 0.7)
Y = (X[:, 0] + X[:, 1] + 0.5 * RNG.normal(size=80) > 0) * 1.0
WEIGHTS = RNG.uniform(0.5, 2, 80)


def of(x, y=Y, task=Task.CLASSIFICATION, weights=WEIGHTS):
    return Data.of(task, x, y, weights=weights)


def test_the_order_is_that_of_the_contents():
    order, mixed = content_order(of(X)), RNG.permutation(80)
    again = content_order(of(X[mixed], Y[mixed], weights=WEIGHTS[mixed]))
    np.testing.assert_array_equal(mixed[again], order)
    np.testing.assert_array_equal(content_order(of(X[:, [2, 0, 3, 1]])), order)
    np.testing.assert_array_equal(content_order(of(SparseRows(scipy.sparse.csr_array(X)))), order)
    assert not np.array_equal(order, np.sort(order))


def test_rows_of_one_hash_are_ordered_by_their_target_and_their_numbers():
    x = np.array([[0.0, 1.0], [1.0, 0.0]] * 10)
    y = np.array([0.0, 0.0, 1.0, 1.0] * 5)
    order = content_order(of(x, y, weights=None))
    mixed = RNG.permutation(20)
    again = mixed[content_order(of(x[mixed], y[mixed], weights=None))]
    np.testing.assert_array_equal(np.c_[x, y][order], np.c_[x, y][again])


MEMBERS = [{"name": "logistic"}, {"name": "decision_tree"}]
FITS = {
    "bagging": {"n_estimators": 5}, "perceptron": {"epochs": 20},
    "stacking": {"estimators": MEMBERS}, "committee": {"estimators": MEMBERS, "cv": 3},
}  # fmt: skip


def state_of(name, order):
    entry = find(name)
    spec = entry.spec.model_validate({"name": name} | FITS[name])
    data = of(X[order], Y[order], weights=WEIGHTS[order])
    return entry.algorithm.fit(spec, data, nested.context(7)).state


@pytest.mark.parametrize("name", FITS)
def test_shuffled_rows_give_the_same_bytes(name):
    stored = []
    for order in (np.arange(80), RNG.permutation(80)):
        arrays = {}
        packed = pack(state_of(name, order), "state", arrays)
        stored.append((packed, {path: array.tobytes() for path, array in arrays.items()}))
    assert stored[0] == stored[1]


def test_shuffled_rows_give_the_same_machine():
    """But for the order of its vectors, which is that of the table."""
    mixed = RNG.permutation(80)
    once, again = (fit_svm(order).machine for order in (np.arange(80), mixed))
    places = np.argsort(mixed[again.places])
    np.testing.assert_array_equal(mixed[again.places][places], once.places)
    np.testing.assert_array_equal(again.coef[:, places], once.coef)
    np.testing.assert_array_equal(again.intercept, once.intercept)


def fit_svm(order):
    data = of(X[order], Y[order], weights=WEIGHTS[order])
    return svm.fit(svm.SVM(), data, nested.context(7)).state
