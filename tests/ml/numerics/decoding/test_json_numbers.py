"""The compiled reader of numbers: to the bit what Python reads, or nothing."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ml.numerics.decoding.json_numbers import FLAT, LISTS, OBJECTS, read_table


def flat(*texts, end="]}"):
    """As it is read in a short text, and between others, where more may be looked at: the same."""
    found = []
    for lead, trail in (("", ""), ("k" * 40, " " * 40)):
        body = f'{{"{lead}":[{",".join(texts)}{end[:-1]}{trail}{end[-1:]}'.encode()
        table = read_table(body, body.index(b"["), FLAT, len(texts))
        found.append(None if table is None else table.values[0])
    assert found[0] is found[1] is None or bits(found[0]) == bits(found[1])
    return found[0]


def bits(values):
    return np.array(values, np.float64).tobytes()


HARD = [
    # Paxson (1991), A program for testing IEEE decimal-binary conversion, tables 1 and 2: near half-way cases
    "5e-20", "67e14", "985e15", "55895e-16", "7038531e-32", "1322867e-31", "89254e-22", "9e-265", "8.5e-37",
    "623e100", "6.9e267", "9.91e-54", "3.5e-51", "104544.74e13", "74.2e266", "93e73", "51e-74", "39e-64",
    # half to even, one above and one below; the largest and the smallest that are normal
    "9007199254740993.0", "9007199254740992.999", "9007199254740995.0", "1.7976931348623157e308",
    "2.2250738585072014e-308", "4503599627370497.5", "4503599627370496.5", "0.500000000000000166533453693773481063",
    "-1237189215089507.25", "4503599627370498.5", "1234567890123.4375", "0.5",
    "1e22", "1e23", "8.442911973260991817129021e-309", "1.00000000000000011102230246251565", "0.000000000000000000001",
]  # fmt: skip


@pytest.mark.parametrize("text", HARD)
def test_hard_numbers(text):
    found = flat(text)
    digits = len(text.split("e")[0].replace(".", "").lstrip("0"))
    assert found is not None or digits > 19 or float(text) < 2.3e-308
    assert found is None or bits(found) == bits([float(text)])


def test_floats_of_any_size():
    drawn = np.random.default_rng(0).integers(0, 2**63, 20_000, np.uint64).view(np.float64)
    normal = drawn[np.isfinite(drawn) & (drawn >= 2.2250738585072014e-308)]
    for write in (repr, "{:.17e}".format, "{:.12g}".format, "-{:.3e}".format):
        texts = [write(value) for value in normal.tolist()]
        texts = [text for text in texts if "." in text or "e" in text]
        assert bits(flat(*texts)) == bits([float(text) for text in texts])


def test_nineteen_digits():
    rng = np.random.default_rng(1)
    whole, power = rng.integers(10**17, 10**18, 5000).tolist(), rng.integers(-330, 280, 5000).tolist()
    texts = [f"{w}{i % 10}e{p}" for i, (w, p) in enumerate(zip(whole, power, strict=True)) if p > -320]
    assert bits(flat(*texts)) == bits([float(text) for text in texts])


numbers = st.one_of(
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,5})?", fullmatch=True),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(2**54), 2**54).map(str),
)


@given(numbers | st.text(st.sampled_from("0123456789+-.eE null"), max_size=12))
def test_a_number_is_read_as_json_or_not_at_all(text):
    found = flat(text)
    if found is not None:
        value = json.loads(text)
        assert type(value) is not int or abs(value) <= 2**53
        assert bits(found) == bits([np.nan if value is None else value])


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "+1", "01", "-01", "1.", ".5", "1.e5", "1e", "1e+", "0x1", "1_0", "nul", "nulL", "NaN", "true", '"1"',
        "[1]", "{}", "1 2", "1e400", "1e99999", "9007199254740993", "-9007199254740993", "1234567890123456789.25",
        "5e-324", "18446744073709551616", "18446744073709551616.5", "36893488147419103232.0", "-00", "-01.5", "00.5",
        "1.5.", "1.5.5", "1.5e", "1.5e5e", "1.5e00001", "0.00000000000000000000000000000",
    ],
)  # fmt: skip
def test_what_is_none_or_in_doubt(text):
    assert flat(text) is None
    assert flat("1", text, "2") is None


def test_ordinary_ones_are_read_to_the_end_of_the_text():
    assert bits(flat("0", "-0", "-0.0", "9007199254740992", "null", "1E+2", " 7\t", "1.5")) == bits(
        [0.0, 0.0, -0.0, 2.0**53, np.nan, 100.0, 7.0, 1.5]
    )
    for length in range(1, 30):
        assert bits(flat("1" + "0" * (length % 16) + ".5")) == bits([float("1" + "0" * (length % 16) + ".5")])


def test_tables():
    body = b'{"rows" : [ {"a":1, "b\\"" : null} ,{ "a" :2,"b\\"":-3e0}\n ] , "more": 1}'
    table = read_table(body, body.index(b"["), OBJECTS, 4)
    assert bits(table.values) == bits([1, np.nan, 2, -3])
    assert table.values.shape == (2, 2)
    assert json.loads(table.names) == ["a", 'b"']
    assert body[table.end :] == b' , "more": 1}'
    body = b'{"data":[[1,2],[3,4],[5,6]]}'
    assert read_table(body, 8, LISTS, 6).values.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert read_table(body, 8, LISTS, 5) is None


def test_tables_of_all_sizes_after_each_other():
    """Room is made for as much as last time: then for more, for less, in another shape, and not beyond `most`."""
    for rows, width in ((1, 3), (2, 3), (1, 3), (3, 2), (6, 1), (1, 1), (5000, 3), (3, 5000), (1, 3)):
        x = np.random.default_rng(rows).normal(size=(rows, width))
        names = list(map(str, range(width)))
        for form, value in ((LISTS, x.tolist()), (OBJECTS, [dict(zip(names, row, strict=True)) for row in x.tolist()])):
            body = json.dumps({"x": value}).encode()
            table = read_table(body, 6, form, rows * width)
            assert (table.values.shape, table.values.tobytes()) == (x.shape, x.tobytes())
            assert table.names is None or json.loads(table.names) == names
            assert read_table(body, 6, form, rows * width - 1) is None


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (LISTS, "[[1,2],[3]]"), (LISTS, "[[1],[2,3]]"), (LISTS, "[[],[]]"), (LISTS, "[[1,2],3]"), (LISTS, "[[1,2],]"),
        (LISTS, "[[1,2] [3,4]]"), (LISTS, "[[1,2]"), (LISTS, "[[[1]]]"), (FLAT, "[]"), (FLAT, "[1,]"), (FLAT, "[1"),
        (OBJECTS, '[{"a":1},{"b":1}]'), (OBJECTS, '[{"a":1},{"a":1,"b":2}]'), (OBJECTS, '[{"a":1,"b":2},{"a":1}]'),
        (OBJECTS, '[{"a":1,"b":2},{"b":1,"a":2}]'), (OBJECTS, "[{}]"), (OBJECTS, '[{"a"}]'), (OBJECTS, '[{"a'),
        (OBJECTS, '[{"a":1},{"ab":1}]'), (OBJECTS, '[{"ab":1},{"a":1}]'), (OBJECTS, '[{"a\\'), (OBJECTS, '[{"a":"b"}]'),
    ],
)  # fmt: skip
def test_uneven_tables(form, text):
    assert read_table(f'{{"x":{text}}}'.encode(), 5, form, 100) is None
