"""The count of labellings by trees is an upper bound of those that trees really give."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from app.ml.numerics.trees.tree_labellings import log_labellings


def steps(points, leaves):
    """Labellings of points on a line by trees of so many leaves: so many runs of equal labels at most."""
    cuts = [c for size in range(leaves) for c in combinations(range(1, points), size)]
    found = set()
    for cut in cuts:
        lengths = np.diff([0, *cut, points])
        found |= {tuple(np.repeat(labels, lengths).tolist()) for labels in product((0, 1), repeat=lengths.size)}
    return len(found)


@pytest.mark.parametrize("leaves", [1, 2, 3, 4])
def test_labellings_of_a_line(leaves):
    for points in (2, 5, 8):
        weight = leaves * math.log(2)
        assert log_labellings(leaves, np.array([0]), 2)(points) - weight >= math.log(steps(points, leaves))


def test_categories_are_split_into_subsets():
    """A split on a column of 3 categories gives all 8 labellings of them."""
    assert math.exp(log_labellings(2, np.array([3]), 2)(3)) >= 8
    assert log_labellings(1, np.array([3, 0]), 2)(50) == pytest.approx(math.log(4))


def test_it_grows_with_leaves_columns_and_rows():
    count = log_labellings(4, np.array([0, 0]), 2)
    assert count(100) < count(200)
    assert count(100) < log_labellings(5, np.array([0, 0]), 2)(100)
    assert count(100) < log_labellings(4, np.array([0, 0, 5]), 2)(100)
