"""Weighted rows: the effective number of rows of each class."""

import numpy as np
import pytest

from app.ml.numerics.effective_rows import effective_rows
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.resampling import Rows


def test_each_class_counts_as_many_rows_as_its_weights_are_worth():
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(0, 4, 60), rng.uniform(0.1, 9, 60)
    rows = Rows(Resamples.none(60), weights)
    expected = [weights[codes == code].sum() ** 2 / (weights[codes == code] ** 2).sum() for code in range(4)]
    assert rows.worths(codes, 4) == pytest.approx(expected)
    assert rows.worths(np.zeros(60, np.intp), 1) == pytest.approx([float(effective_rows(weights))])


def test_tiny_weights_are_worth_as_much_as_large_ones():
    """Squares of weights of 1e-200 are 0; what they are worth is not."""
    rows = Rows(Resamples.none(3), np.array([1e-200, 1e-200, 3.0]))
    assert rows.worths(np.array([0, 0, 2]), 3).tolist() == [2, 0, 1]
