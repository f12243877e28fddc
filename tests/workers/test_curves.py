import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from workers.curves import Curves


@given(st.integers(0, 5000), st.integers(2, 100))
def test_a_curve_keeps_evenly_spaced_points_from_the_first_on(number, limit):
    curves = Curves(limit)
    for value in range(number):
        curves.add({"loss": float(value)})
    kept = curves.values.get("loss", [])
    assert len(kept) <= limit
    assert len(kept) >= min(number, limit // 2)
    assert len({after - before for before, after in itertools.pairwise(kept)}) <= 1
    assert kept[:1] == [0.0][:number]


def test_what_json_cannot_carry_is_left_out():
    curves = Curves()
    for value in (1.0, math.nan, math.inf, 2.0):
        curves.add({"loss": value})
    assert curves.values == {"loss": [1.0, 2.0]}


def test_measures_do_not_mix():
    curves = Curves()
    curves.add({"train": 1.0, "test": 2.0})
    curves.add({"train": 3.0})
    assert curves.values == {"train": [1.0, 3.0], "test": [2.0]}
