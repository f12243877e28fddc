"""Targets: labels keep their types and never meet by accident."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidData
from app.ml.contract.algorithm import TargetKind
from app.ml.preparation.target import read_target, read_weights

CLASSES = {
    "texts": (["b", "a", "b", "1"], ("1", "a", "b"), [2, 1, 2, 0]),
    "texts that look like numbers": (["1", "1.0", "01"], ("01", "1", "1.0"), [1, 2, 0]),
    "truths": ([True, False, True], (False, True), [1, 0, 1]),
    "whole numbers": ([10, 2, 10], (2, 10), [1, 0, 1]),
    "whole floats": ([1.0, 0.0, -0.0], (0, 1), [1, 0, 0]),
    "fractions": ([1.0, 0.5, 1.0], (0.5, 1.0), [1, 0, 1]),
    "numbers beyond float64": ([2**53 + 1, 2**53], (2**53, 2**53 + 1), [1, 0]),
    "code points": (["é", "z", "Z"], ("Z", "z", "é"), [2, 1, 0]),
}


@pytest.mark.parametrize(("values", "classes", "codes"), CLASSES.values(), ids=CLASSES.keys())
def test_labels_are_sorted_and_keep_their_types(values, classes, codes):
    target = read_target(pa.chunked_array([pa.array(values)]), "y", TargetKind.CLASSES)
    assert target.classes == classes
    assert list(map(type, target.classes)) == list(map(type, classes))
    assert target.codes.tolist() == codes


@pytest.mark.parametrize("values", [[None, 3.0, 1.0, None], [np.nan, 3.0, 1.0, np.nan]])
@pytest.mark.parametrize("kind", [TargetKind.NUMBERS, TargetKind.CLASSES])
def test_rows_without_a_target_are_left_out(values, kind):
    target = read_target(pa.chunked_array([pa.array(values)]), "y", kind)
    assert target.rows.tolist() == [1, 2]
    assert target.y.tolist() == ([3, 1] if kind is TargetKind.NUMBERS else [1, 0])


@pytest.mark.parametrize("kind", [TargetKind.NUMBERS, TargetKind.CLASSES])
def test_infinite_targets_are_refused_by_their_place(kind):
    with pytest.raises(InvalidData) as refusal:
        read_target(pa.chunked_array([pa.array([1.0, None, np.inf])]), "y", kind)
    assert refusal.value.faults[0].pointer == "/rows/2/y"


def test_one_row_is_too_few():
    with pytest.raises(InvalidData, match="Fewer than 2"):
        read_target(pa.chunked_array([pa.array([1.0, None])]), "y", TargetKind.NUMBERS)


def test_weights_that_do_not_weigh_are_refused_by_their_place():
    cells = pa.chunked_array([pa.array([1.0, 0.0, None, -1.0, 2.0, -5.0])])
    with pytest.raises(InvalidData) as refusal:
        read_weights(cells, "w", np.array([0, 1, 2, 3, 4]))
    assert [fault.pointer for fault in refusal.value.faults] == ["/rows/1/w", "/rows/2/w", "/rows/3/w"]
    assert read_weights(cells, "w", np.array([0, 4])).tolist() == [1, 2]


@pytest.mark.parametrize(("exponent", "sound"), [(1, [1e-100, 1e100]), (-2, [1e-49, 1e49])])
def test_weights_out_of_all_proportion_are_refused(exponent, sound):
    cells = pa.chunked_array([pa.array([1e-101, *sound, 1e101])])
    with pytest.raises(InvalidData, match=r"1e-.* to 1e\+.*; 2 of 4") as refusal:
        read_weights(cells, "w", np.arange(4), exponent)
    assert [fault.pointer for fault in refusal.value.faults] == ["/rows/0/w", "/rows/3/w"]
