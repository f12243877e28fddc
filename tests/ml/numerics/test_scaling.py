"""Statistics of one column, against exact arithmetic."""

from fractions import Fraction
from math import isclose, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ml.numerics.scaling import Spread, spread

FINITE = st.floats(-1e12, 1e12, allow_subnormal=False)


def exact(values):
    numbers = [Fraction(v) for v in values]
    mean = sum(numbers) / len(numbers)
    unit = max(map(abs, numbers)) or 1  # squares of small numbers are no floats
    return float(mean), float(unit) * sqrt(sum(((n - mean) / unit) ** 2 for n in numbers) / len(numbers))


@given(st.lists(FINITE, min_size=1, max_size=30))
def test_agrees_with_exact_arithmetic(values):
    found = spread(np.array(values))
    mean, deviation = exact(values)
    size = max(map(abs, values))
    assert isclose(found.mean, mean, rel_tol=1e-12, abs_tol=1e-15 * size)
    assert isclose(found.deviation, deviation, rel_tol=1e-9, abs_tol=1e-15 * size)
    assert (found.low, found.high, found.rows) == (min(values), max(values), len(values))


@pytest.mark.parametrize("scale", [2.0**-900, 1.0, 2.0**900])
def test_a_power_of_two_changes_nothing_but_the_scale(scale):
    values = np.array([1.5, -3.25, 7.0, 0.125])
    plain, scaled = spread(values), spread(values * scale)
    assert scaled.mean == plain.mean * scale
    assert scaled.deviation == plain.deviation * scale


def test_a_large_offset_costs_no_digits():
    assert spread(np.array([1.0, 2.0, 3.0]) + 2.0**50).deviation == pytest.approx(sqrt(2 / 3), rel=1e-15)


@pytest.mark.parametrize("values", [[3.0], [0.1] * 7, [0.3, 0.1 * 3], [5e-324, 0.0]])
def test_differences_of_rounding_alone_are_none(values):
    assert spread(np.array(values)).deviation == 0


def test_the_widest_column_does_not_overflow():
    found = spread(np.array([-1.7e308, 1.7e308]))
    assert found.mean == 0
    assert found.deviation == 1.7e308


def test_nothing_is_left_as_it_is():
    values = np.array([np.nan, 2.0, np.nan])
    assert spread(values) == Spread(2, 2, 2, 0, 1)
    assert np.isnan(values[[0, 2]]).all()
    assert spread(np.full(3, np.nan)) == Spread(0, 0, 0, 0, 0)
