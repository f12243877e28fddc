import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.notation import MISSING, Notation, read_and_misfits
from app.ml.kinds.job import Sheet
from app.ml.preparation.arrow_columns import Raw, RawColumn
from app.ml.preparation.request import Preprocessing
from app.ml.preparation.state import learn
from workers.trainer_messages import Order

NOTATIONS = [
    Notation(decimal=decimal, thousands=thousands, percent=percent, unit=unit)
    for decimal in (".", ",")
    for thousands in (None, ",", ".", " ", "'")
    for percent in (False, True)
    for unit in (None, "€", "CHF")
    if decimal != thousands
]
FIRST = dt.datetime(1000, 1, 1)  # noqa: DTZ001  drawn without a zone
MARKS = {" ": "\u202f", "'": "’"}


def found(cells, notation, kind="numeric"):
    values = pa.array(cells, pa.string())
    found, wrong = read_and_misfits(values, notation, kind)
    return found.to_pylist(), wrong.to_pylist()


def written(number, notation, form):
    """A number as people write it in this notation."""
    text = f"{number:,.2f}" if notation.thousands else f"{number:.2f}"
    marks = {",": notation.thousands or "", ".": notation.decimal}
    if form % 2:
        marks[","] = MARKS.get(notation.thousands, marks[","])
    text = "".join(marks.get(letter, letter) for letter in text)
    if notation.unit:
        text = f"{text} {notation.unit}" if form > 1 else f"{notation.unit}{text}"
    return f" {text}{' %' if form else '%'}" if notation.percent else text


@given(st.sampled_from(NOTATIONS), st.integers(-(10**11), 10**11), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_a_written_number_comes_back(notation, hundredths, form):
    number = hundredths / 100
    values, wrong = found([written(number, notation, form)], notation)
    assert values == [pytest.approx(number / 100 if notation.percent else number, rel=1e-15)]
    assert wrong == [False]


@given(st.floats(allow_nan=False))
@settings(max_examples=200, deadline=None)
def test_the_plain_way_reads_what_programs_write(number):
    assert found([repr(number), f" {number!r}"], Notation()) == ([number, number], [False, False])


@pytest.mark.parametrize(
    ("notation", "cells", "values"),
    [
        (Notation(unit="$", thousands=","), ["$1,234.50", "-$5", "$-6", "7 $", "1234"], [1234.5, -5, -6, 7, 1234]),
        (Notation(unit="CHF", thousands="'"), ["CHF 1'234.-", "1’234.50 CHF", "5.--"], [1234, 1234.5, 5]),
        (Notation(decimal=",", thousands=" "), ["1\u202f234,5", "12\u00a0345", "\u22125"], [1234.5, 12345, -5]),
        (Notation(percent=True), ["12.5%", "3 %", "-0.5\u00a0%"], [0.125, 0.03, -0.005]),
        (Notation(), ["(5.00)", "5-", "(1e3)"], [-5, -5, -1000]),
        (Notation(thousands=","), ["12,34,567", "1,00,000", "1,234"], [1234567, 100000, 1234]),
        (Notation(), ["+3e4", " .5 ", "5.", "1e999", "-Infinity"], [3e4, 0.5, 5, float("inf"), float("-inf")]),
    ],
)
def test_numbers_as_people_write_them(notation, cells, values):
    assert found(cells, notation) == (values, [False] * len(cells))


@pytest.mark.parametrize(
    ("notation", "cells"),
    [
        (Notation(), ["1,5", "x", "0x1F", "1_000", "5 %", "$5", "--1", ".", "1e", "-5-", "(5", "5)", "(-5)"]),
        (Notation(thousands=","), ["12,34", "1,2345", ",123", "1,234,5"]),
        (Notation(unit="$"), ["$", "€5", "$5$5", "%"]),
        (Notation(percent=True), ["5", "%", "5 % %"]),
    ],
)
def test_other_cells_are_misfits_and_null(notation, cells):
    assert found(cells, notation) == ([None] * len(cells), [True] * len(cells))


def test_markers_are_missing_and_fit():
    notation = Notation(missing=("-", " n.b. "))
    assert found([*MISSING, None, "-", "n.b.", " - "], notation) == ([None] * (len(MISSING) + 4), [False] * 24)
    assert found([" a", "-", "?", None], notation, "text") == (["a", None, "?", None], [False] * 4)


@given(st.datetimes(FIRST), st.sampled_from(["DMY", "MDY", "YMD"]), st.sampled_from("./-"))
@settings(max_examples=200, deadline=None)
def test_a_written_time_comes_back(moment, order, mark):
    digits = {"Y": f"{moment.year:04}", "M": str(moment.month), "D": f"{moment.day:02}"}
    date = mark.join(digits[part] for part in order)
    texts = [date, f"{date} {moment:%H:%M}", f"{date}T{moment:%H:%M:%S.%f}", f"{date}, {moment:%I:%M:%S %p}"]
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    expected = [midnight, moment.replace(second=0, microsecond=0), moment, moment.replace(microsecond=0)]
    values, wrong = found(texts, Notation(dates=order), "datetime")
    assert [value.replace(tzinfo=None) for value in values] == expected
    assert not any(wrong)


def test_times_that_do_not_exist_and_offsets():
    cells = ["31.02.2024", "29.02.2023", "0.1.2024", "1.13.2024", "1.1.2024 24:00", "1.1.2024 13:00 PM", "2024-01-31"]
    assert found(cells, Notation(dates="DMY"), "datetime") == ([None] * 7, [True] * 7)
    (hour, year), _ = found(["2024-01-31T10:00+02:00", "2024-01-31T08:00:00Z"], Notation(), "datetime")
    assert hour == year == dt.datetime(2024, 1, 31, 8, tzinfo=dt.UTC)
    (old, new), _ = found(["1.2.69", "1.2.68"], Notation(dates="DMY"), "datetime")
    assert (old.year, new.year) == (1969, 2068)


def test_truth_values():
    cells = ["Yes", "no", "1", "TRUE", "f", "-", "maybe"]
    assert found(cells, Notation(missing=("-",)), "boolean") == (
        [True, False, True, True, False, None, None],
        [False] * 6 + [True],
    )


def test_a_model_knows_how_its_columns_were_written():
    """From the data sheet over the frame to the trainer into the inputs of the model."""
    percent = Notation(percent=True, missing=("-",))
    column = TableColumn("rate", "numeric", 0, 2, notation=percent)
    sheet = Sheet("sha256:0", 2, (column,))
    (sent,) = Order.read(Order("train", {}, None, [sheet], [], 0).written()).datasets
    assert sent == sheet
    raw = Raw.read(
        pa.table({"rate": [0.1, 0.2], "plan": ["a", "b"]}),
        [RawColumn("rate", ColumnKind.NUMERIC, percent), RawColumn("plan", ColumnKind.CATEGORICAL)],
    )
    inputs, _, _ = learn(raw, np.arange(2), Preprocessing(), scaled=False, centred=False, encodes=False)
    assert [one.notation for one in inputs] == [percent, None]
