"""Imported trees: order and precision of their sums, transforms, and what becomes of a fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InvalidData
from app.ml.algorithms.imported_trees import ALGORITHM, ImportedTrees, State, predict, sums
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.models import state_format
from app.ml.numerics.class_probabilities.link_functions import predicted
from app.ml.numerics.trees.foreign_trees import ForeignTree, flattened


def forest(count, outputs=1, seed=0):
    """Stumps of one column with random thresholds and values."""
    rng = np.random.default_rng(seed)
    no, none = np.zeros(3, np.bool_), np.zeros(3, np.intp)
    column, left = np.array([0, -1, -1], np.int32), np.array([1, -1, -1], np.int32)
    trees = [
        ForeignTree(
            column,
            np.full(3, rng.normal()),
            no,
            left,
            left + 1,
            no,
            np.append(0.0, rng.normal(size=2).astype(np.float32)),
            no,
            no,
            none,
            none,
            none[:0],
        )
        for _ in range(count)
    ]
    flat = flattened(trees, 1, np.zeros(1, np.intp), single=False)
    return State(flat, np.arange(count) % outputs, np.linspace(0.1, 0.3, outputs), 0)


X = np.random.default_rng(1).normal(size=(300, 1))
X[::20] = np.nan


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("arithmetic", ["float32", "float64"])
@pytest.mark.parametrize("average", [True, False])
def test_leaves_are_added_one_after_the_other_in_the_librarys_precision(outputs, arithmetic, average):
    state, kind = forest(60, outputs), np.dtype(arithmetic).type
    params = ImportedTrees(arithmetic=arithmetic, average=average)
    trees = state.trees
    found = sums(params, state, X)
    for row, own in zip(X, found, strict=True):
        expected = (
            np.zeros(outputs, kind) if average or (outputs == 1 and kind is np.float64) else state.base.astype(kind)
        )
        for root, k in zip(trees.root, state.output, strict=True):
            child = trees.left[root] + (0 if row[0] <= trees.threshold[root] else 1)
            expected[k] += kind(trees.values[trees.left[child], 0])
        if average:
            expected = expected / np.bincount(state.output) + state.base
        elif outputs == 1 and kind is np.float64:
            expected = expected + state.base
        assert own.tolist() == expected.astype(np.float64).tolist()


def test_transforms():
    state = forest(5)
    raw = sums(ImportedTrees(), state, X)[:, 0]

    def of(transform, **how):
        return predict(ImportedTrees(transform=transform, **how), state, X)

    np.testing.assert_allclose(of("sigmoid", sigmoid=2.0), 1 / (1 + np.exp(-2 * raw)), rtol=1e-15)
    assert np.array_equal(of("step"), raw > 0)
    assert np.array_equal(of("exponential"), np.exp(raw))
    np.testing.assert_allclose(of("log_exponential"), np.log1p(np.exp(raw)), rtol=1e-14)
    assert np.array_equal(of("signed_square"), np.copysign(raw**2, raw))
    assert np.array_equal(of("identity"), raw)
    classes = predict(ImportedTrees(transform="sigmoid"), state._replace(classes=2), X)
    np.testing.assert_allclose(classes.sum(axis=1), 1)
    three = forest(6, 3)._replace(classes=3)
    softmax = predict(ImportedTrees(transform="softmax"), three, X)
    raw = sums(ImportedTrees(), three, X)
    np.testing.assert_allclose(softmax, np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True), rtol=1e-14)


def test_it_survives_storage_and_predicts_each_row_alone():
    state, arrays = forest(40, 2), {}
    again = state_format.unpack(State, state_format.pack(state, "state", arrays), arrays)
    params = ImportedTrees(arithmetic="float32")
    whole = sums(params, again, X)
    assert np.array_equal(whole, np.concatenate([sums(params, state, X[i : i + 1]) for i in range(len(X))]))


def test_it_is_not_trained():
    data = Data.of(Task.REGRESSION, X[1:5], np.arange(4.0))
    with pytest.raises(InvalidData, match="imported, not trained"):
        ALGORITHM.fit(ImportedTrees(), data, Context.of(0))


@given(st.lists(st.floats(-1000, 1000), min_size=2, max_size=20), st.sampled_from([1.0, 0.3, 1e6]))
def test_a_row_alone_has_the_bits_that_it_has_among_others(sums, sigmoid):
    params = ImportedTrees(transform="sigmoid", sigmoid=sigmoid)
    column = np.array([*sums, 709.78, -709.78, 709.79, np.inf, -np.inf, np.nan])[:, None]
    alone = np.concatenate([predicted(params, column[[i]], classifies=True) for i in range(len(column))])
    np.testing.assert_array_equal(alone, predicted(params, column, classifies=True))
