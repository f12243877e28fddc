import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.ml.statistics.quantiles import order_statistics, quantiles

NUMBERS = hnp.arrays(np.float64, st.integers(1, 200), elements=st.floats(allow_nan=False, allow_infinity=False))


def chunks(values, size):
    return lambda: iter([values[i : i + size] for i in range(0, len(values), size)])


@given(NUMBERS, st.integers(1, 50), st.integers(1, 20))
@settings(max_examples=80, deadline=None)
def test_order_statistics_are_those_of_a_sort_however_little_is_held(values, size, held):
    ranks = sorted({0, len(values) // 3, len(values) - 1})
    found = order_statistics(chunks(values, size), len(values), ranks, held=held)
    assert found == {rank: np.sort(values)[rank] for rank in ranks}


@given(NUMBERS, st.floats(0, 1))
@settings(max_examples=80, deadline=None)
def test_quantiles_follow_the_linear_rule(values, share):
    values = values / 4  # numpy subtracts, which overflows at the ends of the range
    found = quantiles(chunks(values, 7), len(values), [share], held=5)[0]
    assert found == pytest.approx(np.quantile(values, share), rel=1e-12, abs=1e-300)


def test_one_value_many_times_is_found_without_holding_it():
    values = np.full(10_000, -7.25)
    assert order_statistics(chunks(values, 999), len(values), [0, 5000, 9999], held=10) == dict.fromkeys(
        [0, 5000, 9999], -7.25
    )


def test_the_neighbours_of_zero_are_separated():
    values = np.array([-5e-324, -0.0, 0.0, 5e-324])
    found = order_statistics(chunks(values, 1), 4, [0, 1, 2, 3], held=1)
    assert found == {0: -5e-324, 1: 0.0, 2: 0.0, 3: 5e-324}
    assert not np.signbit(found[1])
