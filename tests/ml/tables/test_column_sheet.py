import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ml.statistics import histogram_and_box_plot as spread
from app.ml.tables import column_statistics, identifiers
from app.ml.tables.column_sheet import describe
from app.ml.tables.data_sheet import Remark


def column(values, of, *, size=None, name="x", notes=()):
    array = pa.array(values, of)
    size = size or max(1, len(array))
    return describe(name, of, lambda: (array[i : i + size] for i in range(0, len(array), size)), Remark(notes))


def numbers(values, **kwargs):
    return column(values, pa.float64(), **kwargs)


def strings(values, **kwargs):
    return column(values, pa.string(), **kwargs)


def test_quartiles_of_one_to_ten():
    found = column(range(1, 11), pa.int64())
    assert (found.first_quartile, found.median, found.third_quartile) == (3.25, 5.5, 7.75)
    assert (found.minimum, found.maximum, found.mean) == (1, 10, 5.5)
    assert found.standard_deviation == pytest.approx(np.sqrt(55 / 6))
    assert (found.count, found.missing, found.distinct) == (10, 0, 10)


def test_whiskers_of_a_normal_column_lie_at_2_697959_sigma():
    n = 400_001
    values = scipy.stats.norm.ppf((np.arange(n) + 0.5) / n)
    found = numbers(values, size=65_536)
    assert found.upper_whisker == pytest.approx(2.697959, abs=1e-4)
    assert found.lower_whisker == pytest.approx(-2.697959, abs=1e-4)
    assert 1 - found.outliers / n == pytest.approx(0.9930234, abs=1e-5)


def test_whiskers_are_values_of_the_column():
    found = numbers([1.0, 2.0, 3.0, 4.0, 5.0, 100.0, -50.0])
    assert (found.lower_whisker, found.upper_whisker, found.outliers) == (1.0, 5.0, 2)


@given(
    st.lists(st.none() | st.floats(-1e6, 1e6), min_size=2, max_size=200),
    st.integers(1, 60),
)
@settings(max_examples=60, deadline=None)
def test_metrics_agree_with_numpy_and_do_not_depend_on_the_chunks(values, size):
    found = numbers(values, size=size)
    whole = numbers(values)
    exact = {"mean", "standard_deviation", "other_whiskers"}
    assert found.model_dump(exclude=exact) == whole.model_dump(exclude=exact)
    kept = np.array([v for v in values if v is not None])
    assert (found.count, found.missing) == (len(kept), len(values) - len(kept))
    if len(kept) < 2:
        return
    assert found.mean == pytest.approx(kept.mean(), rel=1e-9, abs=1e-9)
    assert found.standard_deviation == pytest.approx(kept.std(ddof=1), rel=1e-9, abs=1e-9)
    expected = np.quantile(kept, [0.25, 0.5, 0.75])
    assert [found.first_quartile, found.median, found.third_quartile] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found.distinct == len(np.unique(kept))
    assert sum(bin_.count for bin_ in found.histogram) == len(kept)


def test_the_deviation_of_a_small_spread_on_a_large_offset_keeps_its_digits():
    spread = np.random.default_rng(0).normal(size=10_000)
    found = numbers(1e9 + spread, size=777)
    assert found.standard_deviation == pytest.approx(spread.std(ddof=1), rel=1e-7)


def test_the_ends_of_the_range_of_floats():
    found = numbers([1e308, -1e308, 1.7e308, None])
    assert found.mean == pytest.approx(1.7e308 / 3)
    assert found.standard_deviation == pytest.approx(1e308 * np.std([1, -1, 1.7], ddof=1))
    assert sum(bin_.count for bin_ in found.histogram) == 3
    tiny = numbers([5e-324, 0.0, 1e-323])
    assert tiny.median == 5e-324


def test_the_histogram_counts_from_lower_to_upper_excluded():
    rng = np.random.default_rng(1)
    values = rng.integers(0, 9, 500).astype(float)
    found = numbers(values, size=64)
    for bin_ in found.histogram[:-1]:
        assert bin_.count == ((values >= bin_.lower) & (values < bin_.upper)).sum()
    last = found.histogram[-1]
    assert last.count == ((values >= last.lower) & (values <= last.upper)).sum()
    assert len(numbers(rng.normal(size=100_000)).histogram) == spread.MOST_BINS


def test_a_constant_column_says_so():
    found = numbers([0.1] * 7, size=3)
    assert (found.mean, found.standard_deviation, found.outliers) == (0.1, 0.0, 0)
    assert [(b.lower, b.upper, b.count) for b in found.histogram] == [(0.1, 0.1, 7)]
    assert "All values are the same" in found.warnings[0]


def test_a_column_without_values_says_so():
    found = numbers([None, None], notes=["First."])
    assert (found.count, found.missing, found.distinct, found.kind) == (0, 2, 0, "numeric")
    assert found.mean is None
    assert found.histogram is None
    assert found.warnings == ["First.", "No row has a value."]


def test_one_value_has_no_deviation():
    assert numbers([3.0]).standard_deviation is None


def test_minus_zero_is_zero():
    found = numbers([0.0, -0.0, 0.0])
    assert found.distinct == 1
    assert not np.signbit(found.median)


def test_levels_are_counted_and_ordered():
    found = strings(["b", "a", None, "a", "b", "c"], size=2)
    assert (found.kind, found.distinct, found.missing) == ("categorical", 3, 1)
    assert [(level.value, level.count) for level in found.top_levels] == [("a", 2), ("b", 2), ("c", 1)]


def test_mostly_different_or_long_strings_are_text():
    assert strings([f"v{i % 21}" for i in range(30)]).kind == "text"
    assert strings([f"v{i % 21}" for i in range(60)]).kind == "categorical"
    assert strings([f"v{i % 20}" for i in range(30)]).kind == "categorical"
    assert strings(["y" * 65, "n" * 65] * 30).kind == "text"
    assert len(strings(["y" * 300]).top_levels[0].value) == column_statistics.LEVEL_LENGTH


def test_too_many_levels_are_not_counted(monkeypatch):
    for module in (column_statistics, identifiers):
        monkeypatch.setattr(module, "COUNTED", 50)
    found = strings([f"v{i * i % 67}" for i in range(30)] + [f"v{i % 60}" for i in range(600)], size=7)
    assert (found.kind, found.distinct, found.top_levels) == ("text", None, None)
    assert not found.identifier_like
    assert numbers(np.arange(600.0) % 60, size=7).distinct is None


def test_booleans():
    found = column([True, False, True, None], pa.bool_())
    assert (found.kind, found.distinct, found.count) == ("boolean", 2, 3)
    assert [(level.value, level.count) for level in found.top_levels] == [("true", 2), ("false", 1)]


def test_datetimes():
    moments = [dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC), None, dt.datetime(1, 1, 1, tzinfo=dt.UTC)]
    found = column(moments, pa.timestamp("us", "UTC"), size=1)
    assert (found.kind, found.minimum, found.maximum) == ("datetime", "0001-01-01T00:00:00Z", "2024-02-29T12:00:00Z")


@pytest.mark.parametrize(
    ("name", "values", "of", "expected"),
    [
        ("row", range(1, 41), pa.int64(), True),
        ("row", range(40), pa.int64(), True),
        ("row", range(2, 42), pa.int64(), False),
        ("year", range(1980, 2020), pa.int64(), False),
        ("rank", [*range(20, 40), *range(20)], pa.int64(), False),
        ("customer_id", [i * i for i in range(40)], pa.int64(), True),
        ("customerId", [i * i for i in range(40)], pa.int64(), True),
        ("ID", [i * i for i in range(40)], pa.int64(), True),
        ("paid", [i * i for i in range(40)], pa.int64(), False),
        ("customer_id", [i // 2 for i in range(40)], pa.int64(), False),
        ("height", [i + 0.5 for i in range(40)], pa.float64(), False),
        ("id", [float(i) for i in range(40)], pa.float64(), False),
        ("code", [f"u{i}" for i in range(40)], pa.string(), True),
        ("code", [f"u{i // 2}" for i in range(40)], pa.string(), False),
        ("code", [f"u{i}" for i in range(19)], pa.string(), False),
    ],
)
def test_identifier_like(name, values, of, expected):
    found = column(values, of, name=name, size=9)
    assert found.identifier_like is expected
    assert expected == any("identifier" in warning for warning in found.warnings)


def test_identifiers_beyond_what_is_counted(monkeypatch):
    for module in (column_statistics, identifiers):
        monkeypatch.setattr(module, "COUNTED", 50)
    assert strings([f"u{i}" for i in range(200)], size=60).identifier_like
    assert column(range(1, 201), pa.int64(), size=60).identifier_like
    assert not strings(["u1"] + [f"u{i}" for i in range(200)], size=60).identifier_like


def test_box_plots_by_other_rules():
    """B5.16: of a normal column 68.27 % are within a standard deviation of the mean, 82 % between the percentiles."""
    n = 100_001
    found = numbers(scipy.stats.norm.ppf((np.arange(n) + 0.5) / n), size=40_000)
    rules = {one.rule: one for one in found.other_whiskers}
    assert 1 - rules["deviation"].outliers / n == pytest.approx(0.6826895, abs=1e-4)
    assert rules["deviation"].upper == pytest.approx(1, abs=1e-3)
    assert rules["percentiles"].upper == pytest.approx(scipy.stats.norm.ppf(0.91), abs=1e-3)
    assert rules["percentiles"].outliers / n == pytest.approx(0.18, abs=1e-4)
    assert (rules["extremes"].lower, rules["extremes"].upper) == (found.minimum, found.maximum)
    assert rules["extremes"].outliers == 0


def test_a_tenth_lies_below_the_tenth_percentile():
    """B5.15."""
    found = {one.share: one.value for one in numbers(np.arange(101.0), size=7).percentiles}
    assert found == {0.01: 1, 0.05: 5, 0.1: 10, 0.9: 90, 0.95: 95, 0.99: 99}


def test_outliers_are_named_by_their_row():
    values = [None, 1.0, 2.0, 3.0, 60.0, None, 4.0, -90.0, 5.0]
    for size in (1, 4, 9):
        assert numbers(values, size=size).outlier_rows == [7, 4]
    assert numbers([1.0, 2.0]).outlier_rows is None
    assert numbers([*range(4000), *([10**6] * 150)], size=999).outlier_rows == list(range(4000, 4100))
