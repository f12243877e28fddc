"""Wide tables: columns that are processed together give what each gives alone."""

import math

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ingest.arrow_types import Settled
from app.ingest.reader_result import Reading
from app.ingest.type_inference import Form, narrow, narrow_all
from app.ingest.uploaded_file import Limits
from app.ml.statistics.histogram_and_box_plot import spread, spreads
from app.ml.tables.column_sheet import describe
from app.ml.tables.column_statistics import numeric_statistics

CELLS = [
    None, "", " ", "NA ", " nan", "1", "0", "-7", "+3", " 12 ", "007", "1.5", "-.5", "2.", "1e5", "inf", "-Infinity",
    "NaN", "0x1F", "9223372036854775807", "9223372036854775808", "99999999999999999999", "3,14", "1,2,3", "true",
    " False", "t", "2024-01-02", "2024-01-02 03:04", "2024-01-02T03:04:05.123456", "2024-13-45", "2024-01-02T03:04Z",
    "2024-01-02T03:04+01:30", "20240102", "2024", "word", "1 2", "-", ".", "e", "\u00a05", "\u0661",
]  # fmt: skip
FORMS = tuple(Form)
WITHOUT_COMMA = tuple(form for form in Form if form is not Form.DECIMAL_COMMA)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5).map(float)


@settings(max_examples=50)
@given(
    st.integers(1, 6).flatmap(
        lambda rows: st.lists(st.lists(st.sampled_from(CELLS), min_size=rows, max_size=rows), min_size=1, max_size=12)
    ),
    st.sampled_from([FORMS, WITHOUT_COMMA, (Form.FLOAT, Form.TEXT), (Form.NAIVE, Form.ZONED, Form.TEXT)]),
)
def test_forms_of_joined_columns_are_those_of_each(columns, forms):
    arrays = [pa.array(column, pa.string()) for column in columns]
    assert narrow_all([forms] * len(arrays), arrays) == [narrow(forms, values) for values in arrays]


def test_every_cell_alone_has_the_same_forms():
    arrays = [pa.array([first, second], pa.string()) for first in CELLS for second in CELLS[::5]]
    assert narrow_all([FORMS] * len(arrays), arrays) == [narrow(FORMS, values) for values in arrays]


@settings(max_examples=30)
@given(
    st.integers(1, 40).flatmap(lambda n: st.lists(st.lists(NUMBERS, min_size=n, max_size=n), min_size=1, max_size=5))
)
def test_distributions_of_many_columns_are_those_of_each(rows):
    values = np.array(rows)
    for row, x in zip(spreads(values), values, strict=True):
        expected = spread(lambda x=x: iter([x]), x.size)
        assert row.keys() == expected.keys()
        for field, value in expected.items():
            assert same(plain(row[field]), plain(value)), field


def plain(value):
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value if isinstance(value, float | int | dict | None) else value.model_dump()


def same(value, expected):
    """Equal, but for the last digits of sums."""
    if isinstance(expected, dict):
        return value.keys() == expected.keys() and all(same(value[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(value) == len(expected) and all(map(same, value, expected))
    if isinstance(expected, float) and isinstance(value, float):
        return value == expected or math.isclose(value, expected, rel_tol=1e-15)
    return value == expected


def test_data_sheets_of_many_columns_are_those_of_each():
    r = np.random.default_rng(0)
    columns = [
        pa.array([None] * 30, pa.float64()), pa.array(np.arange(30)), pa.array(r.integers(0, 3, 30)),
        pa.array([20240101 + n for n in range(30)]), pa.array([2**62 + n for n in range(30)]), pa.array([7] * 30),
        *(pa.array(r.normal(size=30), mask=r.random(30) < share) for share in (0, 0, 0.1, 0.5, 0.97)),
        pa.array([0.0, -0.0] * 15), pa.array([*[1.0] * 29, 1e300]), pa.array([5e-324, *[0.0] * 29]),
    ]  # fmt: skip
    for values, statistics in zip(columns, numeric_statistics(columns), strict=True):
        alone = describe("a", values.type, lambda values=values: iter([values]))
        together = describe("a", values.type, lambda values=values: iter([values]), statistics=statistics)
        assert same(together.model_dump(), alone.model_dump())


def test_a_value_that_is_not_kept_is_named_by_its_column():
    names, cells = [f"c{n}" for n in range(40)], [pa.array([1.0, 2.0])] * 39
    limits = Limits(10, 100, 1 << 20, 1 << 20)
    settled = Settled(Reading(names, [pa.float64()] * 40, iter([[*cells, pa.array([1.0, math.inf])]])), limits)
    (batch,) = settled
    assert batch.column(39).to_pylist() == [1.0, None]
    assert [name for name in names if settled.remark(name).warnings] == ["c39"]
