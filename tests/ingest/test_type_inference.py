import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ingest.type_inference import Form, narrow, read_as
from app.ml.contract.notation import MISSING

ALL = tuple(Form)
WORDS = ["1", "-7", "+3", " 4 ", "1.5", "1,5", "1E+05", "true", "FALSE", "2024-01-31", "2024-01-31T10:00:00Z", "x",
         "0x1F", "99999999999999999999", None, " NA ", "?"]  # fmt: skip


def form(*values):
    return narrow(ALL, pa.array(values, pa.string()))[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "0", "-5", None], Form.INTEGER),
        (["+5", " 6", "7 "], Form.INTEGER),
        (["1", "2.5"], Form.FLOAT),
        (["1E+05", ".5", "5."], Form.FLOAT),
        (["9223372036854775807"], Form.INTEGER),
        (["9223372036854775808"], Form.TEXT),
        (["1e19", "0.5"], Form.FLOAT),
        (["0x1F", "1"], Form.TEXT),
        (["3,14", "2"], Form.DECIMAL_COMMA),
        (["3,14", "2.5"], Form.TEXT),
        (["true", "False", "TRUE"], Form.BOOLEAN),
        (["true", "1"], Form.TEXT),
        (["yes", "no"], Form.TEXT),
        (["2024-01-31", "2024-01-31 10:00", "2024-01-31T10:00:00.5"], Form.NAIVE),
        (["2024-01-31T10:00:00Z", "2024-01-31T10:00:00+02:00"], Form.ZONED),
        (["2024-01-31", "2024-01-31T10:00:00Z"], Form.TEXT),
        (["2024-02-30"], Form.TEXT),
        (["1", "?", " N/A", "x"], Form.TEXT),
        (["1", "?", " N/A", "2"], Form.INTEGER),
        (["1_000"], Form.TEXT),
    ],
)
def test_the_form_of_a_column(values, expected):
    assert form(*values) is expected


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.integers(1, 12))
@settings(max_examples=200, deadline=None)
def test_where_blocks_end_does_not_matter(values, size):
    possible = ALL
    for start in range(0, len(values), size):
        possible = narrow(possible, pa.array(values[start : start + size], pa.string()))
    assert possible == narrow(ALL, pa.array(values, pa.string()))


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_every_form_that_is_left_can_read_the_column(values):
    array = pa.array(values, pa.string())
    for left in narrow(ALL, array):
        assert read_as(array, left).type == left.type


def test_numbers_and_times_are_read():
    assert read_as(pa.array(["+5", " 6 ", " NA "]), Form.INTEGER).to_pylist() == [5, 6, None]
    assert read_as(pa.array(["-3,5", "2"]), Form.DECIMAL_COMMA).to_pylist() == [-3.5, 2.0]
    assert read_as(pa.array(["True", "false", None]), Form.BOOLEAN).to_pylist() == [True, False, None]
    hour = read_as(pa.array(["2024-01-31T10:00:00+02:00"]), Form.ZONED)
    assert hour.equals(read_as(pa.array(["2024-01-31 08:00"]), Form.NAIVE))


def test_text_loses_its_spaces_and_only_its_empty_cells():
    values = [" <=50K", " ?", "x", " ", "NaN"]
    assert read_as(pa.array(values), Form.TEXT).to_pylist() == ["<=50K", "?", "x", None, "NaN"]
    assert read_as(pa.array(MISSING), Form.TEXT).null_count == 1
    assert read_as(pa.array(MISSING), Form.FLOAT).null_count == len(MISSING)
