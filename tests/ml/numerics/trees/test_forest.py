"""Traversal: the kernel against one row at a time in plain Python; parts of rows; company; arrays that lie."""

import numpy as np
import pytest

from app.base.errors import CorruptModel
from app.ml.contract.algorithm import Data, Task
from app.ml.models import state_format
from app.ml.numerics.trees.binning import binned
from app.ml.numerics.trees.compiled.column_split import VARIANCE
from app.ml.numerics.trees.compiled.numeric_traversal import add_plain, add_plain_few
from app.ml.numerics.trees.forest import LEAST_BLOCK, MIN_INTERLEAVED_ROWS, Trees, _one_by_one, _packed, each, total
from app.ml.numerics.trees.forest_builder import together
from app.ml.numerics.trees.growth import Grower, Rules, planted

NAN = np.nan


def traced(trees, row, node):
    """Value of a row from a node on: (k,), by the definition."""
    column, left = trees.column[node], trees.left[node]
    if column < 0:
        return trees.values[left]
    value, threshold = row[column], trees.threshold[node]
    if np.isnan(value):
        if trees.missing[node] >= 0:
            return traced(trees, row, left + trees.missing[node])
        share = trees.share[node]
        return share * traced(trees, row, left) + (1 - share) * traced(trees, row, left + 1)
    if trees.levels[column] and np.isfinite(threshold):
        return traced(trees, row, left + (0 if trees.members[int(threshold) + int(value)] else 1))
    return traced(trees, row, left + (0 if trees.levels[column] or value <= threshold else 1))


def drawn(n, seed, gaps=0.2):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 7, n), rng.normal(size=n)])
    x[rng.random(x.shape) < gaps] = NAN
    return x


@pytest.fixture(scope="module")
def trees():
    parts = []
    for seed, branch in enumerate([True, False, True]):
        x = drawn(150, seed)
        y = np.nan_to_num(x[:, 0]) + (x[:, 1] % 2 == 1) + np.random.default_rng(seed).normal(size=150)
        data = Data.of(Task.REGRESSION, x, y, levels=[0, 7, 0], missing=True)
        rules = Rules(VARIANCE, min_samples_leaf=2, missing_branch=branch)
        grown = Grower(data, binned(data)).grow(data.weights, rules)
        parts.append(planted(grown, data.levels, grown.value))
    return together(parts)


def test_is_its_definition(trees):
    x = drawn(60, 9, gaps=0.3)
    expected = [[traced(trees, row, root)[0] for root in trees.root] for row in x]
    np.testing.assert_allclose(each(trees, x), expected, rtol=1e-13)
    np.testing.assert_allclose(total(trees, x)[:, 0], np.sum(expected, axis=1), rtol=1e-13)
    is_split = trees.column >= 0
    assert (is_split & (trees.levels[trees.column] > 0)).any(), "a split of categories"
    assert (is_split & (trees.missing > 0)).any(), "a way for the missing"
    assert (is_split & (trees.missing < 0)).any(), "a node without one"


def test_company_changes_no_bit(trees):
    x = drawn(700, 3)
    together_ = total(trees, x)
    assert together_.tobytes() == np.concatenate([total(trees, x[i : i + 1]) for i in range(700)]).tobytes()
    assert together_[100:650].tobytes() == total(trees, x[100:650].copy()).tobytes()


def forest(seed, nodes=60, count=3):
    """Trees of numbers in two columns: thresholds that are neighbours, zeros of both signs, and infinite."""
    rng = np.random.default_rng(seed)
    near = [0.0, -0.0, 1.0, np.nextafter(1, 2), np.nextafter(1, 0), -1.0, np.nextafter(-1, 0), 5e-324, -5e-324, np.inf]
    parts = []
    for _ in range(count):
        column, left = np.full(nodes, -1), np.arange(nodes)
        for child in range(1, nodes - 1, 2):
            node = rng.choice(np.flatnonzero(column[:child] < 0))
            column[node], left[node] = rng.integers(2), child
        fields = column, rng.choice(near, nodes), left, np.full(nodes, -1), np.full(nodes, 0.25)
        parts.append(tree(*fields, values=rng.normal(size=nodes)))
    return together(parts), np.array([*near[:-1], NAN, 1e300, -1e300])


@pytest.mark.parametrize(("seed", "count"), [(0, 1), (1, 8), (2, 19)])
def test_side_by_side_is_one_by_one_to_the_last_bit(seed, count):
    """Rows side by side, or the trees of a row."""
    trees, values = forest(seed, count=count)
    x = np.random.default_rng(seed).choice(values, (2 * LEAST_BLOCK + 3, 2))
    alone, by_tree = _one_by_one(trees, x, by_tree=False), _one_by_one(trees, x, by_tree=True)
    for rows in (*range(1, MIN_INTERLEAVED_ROWS + 1), 13, LEAST_BLOCK + 1, len(x)):
        assert total(trees, x[:rows]).tobytes() == alone[:rows].tobytes()
        assert each(trees, x[:rows]).tobytes() == by_tree[:rows].tobytes()
    expected = [[traced(trees, row, root)[0] for root in trees.root] for row in x[:200]]
    np.testing.assert_allclose(each(trees, x[:200]), expected, rtol=1e-13, atol=1e-13)


def test_the_kernel_is_what_it_says():
    trees, values = forest(7, nodes=20)
    x = np.random.default_rng(7).choice(values[~np.isnan(values)], (11, 2))
    outputs = np.full((4, 11, 1), NAN)
    arguments = x, trees.root, _packed(trees), trees.values
    with np.errstate(over="ignore"):
        for way, out in zip([add_plain.python, add_plain], outputs[:2], strict=True):
            assert way(*arguments, 9, False, out) == 0
        for way, out in zip([add_plain_few.python, add_plain_few], outputs[2:], strict=True):
            assert way(*arguments, False, out) == 0
    assert {out.tobytes() for out in outputs} == {total(trees, x).tobytes()}


def test_what_is_kept_beside_the_trees_is_counted():
    trees, _ = forest(0)
    assert trees.beside == _packed(trees).nbytes > 0
    assert state_format.beside({"no": "state"}) == 0
    assert state_format.beside((trees, [1.0, trees])) == 2 * trees.beside


def test_other_columns_are_refused():
    trees, _ = forest(0)
    for rows in (1, MIN_INTERLEAVED_ROWS):
        with pytest.raises(CorruptModel):
            total(trees, np.zeros((rows, 1)))


def tree(*fields, values):
    """Column, threshold, left, missing and share of every node."""
    types = np.int32, np.float64, np.int32, np.int8, np.float64
    arrays = (np.array(values, kind) for values, kind in zip(fields, types, strict=True))
    predictions = np.array(values, float)[:, None]
    return Trees(np.zeros(1, np.int32), *arrays, np.zeros(2, np.int64), np.zeros(0, bool), predictions)


def test_a_missing_value_goes_both_ways():
    """B6.7: 30 % of the training rows left to 10, 70 % right to 20: 17."""
    stump = tree([0, -1, -1], [0.5, 0, 0], [1, 0, 1], [-1, -1, -1], [0.3, 1, 1], values=[10, 20])
    assert total(stump, np.array([[NAN, 0.0]])).tolist() == [[0.3 * 10 + 0.7 * 20]]


def test_parts_multiply_and_the_rest_of_the_row_goes_on():
    """Both ways at the root; on the left both ways again, on the right the known value decides."""
    nested = tree(
        [0, 0, 1, -1, -1, -1, -1],
        [0, 0, 5, 0, 0, 0, 0],
        [1, 3, 5, 0, 1, 2, 3],
        [-1] * 7,
        [0.25, 0.6, 0.5, 1, 1, 1, 1],
        values=[1, 10, 100, 1000],
    )
    expected = 0.25 * (0.6 * 1 + 0.4 * 10) + 0.75 * 1000
    assert total(nested, np.array([[NAN, 9.0]]))[0, 0] == pytest.approx(expected, rel=1e-15)
    parts = nested._replace(values=np.ones((4, 1)))
    assert total(parts, np.array([[NAN, NAN]]))[0, 0] == pytest.approx(1, rel=1e-15)


def test_numbers_of_any_type_and_order_are_predicted():
    trees, _ = forest(3)
    x = np.arange(-6, 6).reshape(6, 2)
    for rows in (x, x.astype(np.float32), np.asfortranarray(x, float), np.repeat(x, 2, axis=0)[::2].astype(float)):
        for n in (1, 6):
            assert total(trees, rows[:n]).tobytes() == _one_by_one(trees, x[:n].astype(float), by_tree=False).tobytes()


LIES = {
    "back to the root": {"left": [0, 0, 1]},
    "out of the nodes": {"left": [2, 0, 1]},
    "out of the nodes by an infinite threshold": {"threshold": [-np.inf, 0, 0], "left": [2, 0, 1]},
    "no such values": {"left": [1, 0, 2]},
    "no such column": {"column": [2, -1, -1]},
    "no such tree": {"root": [3]},
    "a missing way out of the nodes": {"missing": [2, 0, 0]},
    "too few thresholds": {"threshold": [0.5]},
    "no truths of its levels": {"levels": [3, 0]},
    "truths before the first": {"levels": [3, 0], "threshold": [-1.0, 0, 0], "members": [True] * 9},
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_refused_before_compiled_code_follows_them(lie):
    stump = tree([0, -1, -1], [0.5, 0, 0], [1, 0, 1], [-1, -1, -1], [0.3, 1, 1], values=[10, 20])
    total(stump, np.zeros((1, 2)))
    bad = stump._replace(left=stump.left.copy())
    bad = bad._replace(**{name: np.array(value, getattr(stump, name).dtype) for name, value in LIES[lie].items()})
    with pytest.raises(CorruptModel):
        total(bad, np.zeros((1, 2)))


@pytest.mark.parametrize("name", Trees._fields)
def test_arrays_of_another_type_are_refused(name):
    """Of a type that is as large, and with gaps between their numbers."""
    stump = tree([0, -1, -1], [0.5, 0, 0], [1, 0, 1], [-1, -1, -1], [0.3, 1, 1], values=[10, 20])
    stump = stump._replace(members=np.ones(2, bool), root=np.zeros(2, np.int32))
    total(stump, np.zeros((1, 2)))
    array = getattr(stump, name)
    other = np.dtype({4: "f4", 8: "f8" if array.dtype.kind == "i" else "i8", 1: "u1"}[array.itemsize])
    for wrong in (array.astype(other), np.repeat(array, 2, axis=0)[::2]):
        bad = stump._replace(left=stump.left.copy())._replace(**{name: wrong})
        with pytest.raises(CorruptModel):
            total(bad, np.zeros((1, 2)))
