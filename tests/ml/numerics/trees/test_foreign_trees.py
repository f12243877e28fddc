"""Trees of other libraries: the same side for every number, and no tree that leads nowhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import ImportUnsupported, InvalidData
from app.ml.numerics.trees.foreign_trees import ForeignTree, flattened, last_left, resized
from app.ml.numerics.trees.forest import total

FEW = np.float32([0.0, -0.0, 1.0, -1.0, 0.1, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38, 1e-38, 16777216.0])


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.booleans(), st.integers(-3, 3))
def test_a_number_goes_where_its_rounding_goes(threshold, strict, steps):
    bound = last_left(np.array([threshold]), np.array([strict]), single=True)[0]
    for number in near(bound, steps):
        with np.errstate(over="ignore"):
            single = np.float32(number)
        assert (number <= bound) == (single < threshold if strict else single <= threshold)


@pytest.mark.parametrize("threshold", FEW.tolist())
@pytest.mark.parametrize("strict", [True, False])
def test_so_too_at_the_ends_of_the_numbers(threshold, strict):
    test_a_number_goes_where_its_rounding_goes.hypothesis.inner_test(threshold, strict, 0)


def near(bound, steps):
    found = [bound, np.nextafter(bound, np.inf), np.nextafter(bound, -np.inf), bound + steps, bound * (1 + steps / 3)]
    return [number for number in found if np.isfinite(number)]


def test_thresholds_of_64_bits_that_no_32_bits_hold():
    bound = last_left(np.array([0.1]), np.array([False]), single=True)[0]
    below = np.nextafter(np.float32(0.1), np.float32(0))  # 0.1 itself is rounded up
    assert np.float32(bound) == below
    assert np.float32(np.nextafter(bound, 1)) == np.float32(0.1)


def test_a_strict_test_of_64_bits_is_one_of_the_number_before():
    bounds = last_left(np.array([0.5, np.inf]), np.array([True, False]), single=False)
    assert bounds.tolist() == [np.nextafter(0.5, 0), np.inf]


@pytest.mark.parametrize("threshold", [np.nan, -np.inf])
def test_a_threshold_that_is_no_number_is_refused(threshold):
    with pytest.raises(InvalidData, match="not a number"):
        last_left(np.array([threshold]), np.array([False]), single=True)


def tree(column, left, right, value=None, *, threshold=0.5, subset=None, levels=(), members_right=False, missing=False):
    n = len(column)
    column = np.array(column, np.int32)
    subset = np.zeros(n, np.bool_) if subset is None else np.array(subset)
    value = np.arange(n, dtype=np.float64) if value is None else np.array(value, np.float64)
    return ForeignTree(
        column,
        np.full(n, threshold),
        np.zeros(n, np.bool_),
        np.array(left, np.int32),
        np.array(right, np.int32),
        np.full(n, missing),
        value,
        subset,
        np.full(n, members_right),
        np.zeros(n, np.intp),
        np.where(subset, len(levels), 0),
        np.array(levels, np.intp),
    )


ONE = np.zeros(1, np.intp)


def test_nodes_in_any_order():
    found = flattened([tree([0, -1, 0, -1, -1], [2, -1, 4, -1, -1], [1, -1, 3, -1, -1])], 1, ONE, single=False)
    assert total(found, np.array([[0.5], [0.6], [np.nan]])).ravel().tolist() == [4, 1, 1]
    assert found.left.tolist()[:2] == [1, 3]


@pytest.mark.parametrize(
    ("left", "right"),
    [([1, 0, -1], [2, 2, -1]), ([1, -1, -1], [1, -1, -1]), ([0, -1, -1], [2, -1, -1]), ([1, -1, -1], [3, -1, -1])],
)
def test_children_that_lead_back_or_nowhere_are_refused(left, right):
    with pytest.raises(InvalidData, match="nowhere, or back"):
        flattened([tree([0, -1 if left[1] < 0 else 0, -1], left, right)], 1, ONE, single=False)


def test_other_damage_is_refused():
    leaf = [-1], [-1], [-1]
    stump = [0, -1, -1], [1, -1, -1], [2, -1, -1]
    for bad, columns in (
        (tree(*leaf, [np.inf]), 1),
        (tree([5, -1, -1], *stump[1:]), 1),
        (tree([], [], []), 1),
    ):
        with pytest.raises(InvalidData):
            flattened([bad], columns, np.zeros(columns, np.intp), single=False)
    mixed = tree(
        [0, 0, -1, -1, -1], [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], subset=[True, False] + [False] * 3, levels=[1]
    )
    with pytest.raises(ImportUnsupported, match="as a number and as a category"):
        flattened([mixed], 1, ONE, single=False)


@pytest.mark.parametrize("members_right", [True, False])
def test_subsets_and_the_code_of_all_other_levels(members_right):
    stump = tree(
        [0, -1, -1], [1, -1, -1], [2, -1, -1], subset=[True, False, False], levels=[0, 2], members_right=members_right
    )
    found = flattened([stump], 1, np.array([4]), single=False)
    assert found.levels.tolist() == [5]
    inside, outside = (2, 1) if members_right else (1, 2)
    rows = np.array([[0.0], [1], [2], [3], [4], [np.nan]])
    assert total(found, rows).ravel().tolist() == [inside, outside, inside, outside, outside, 2]
    more = resized(found, np.array([7]))
    assert total(more, np.arange(7.0)[:, None]).ravel().tolist() == [inside, outside, inside] + [outside] * 4
    fewer = resized(found, np.array([2]))
    assert total(fewer, np.array([[0.0], [1]])).ravel().tolist() == [inside, outside]
