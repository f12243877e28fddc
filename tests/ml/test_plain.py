"""The shortcut for ordinary numbers gives what the long way gives, to the bit, or stands aside."""

import numpy as np
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.errors import ValiantError
from app.ml.plain import plain_rows
from app.ml.raw import measured
from app.ml.rows import read_rows
from app.ml.schema import InputColumn

MOST = 6
NAMES = ("a", "b/~", "ü")
INPUTS = tuple(InputColumn(name=name, kind="numeric") for name in NAMES)

ordinary = st.one_of(
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-9, 9),
    st.sampled_from([2**53, -(2**53), 2**53 + 1, -(2**63), 2**64 - 1, 5e-324, -0.0, 1e300]),
)
odd = st.one_of(ordinary, st.booleans(), st.text(max_size=2), st.lists(ordinary, max_size=3), st.just({}))
headers = st.one_of(st.permutations(NAMES), st.lists(st.one_of(st.sampled_from([*NAMES, "x"]), odd), max_size=4))


def tables(cells):
    row = st.one_of(st.lists(cells, min_size=3, max_size=3), st.lists(cells, max_size=4), cells)
    named = st.one_of(
        st.fixed_dictionaries(dict.fromkeys(NAMES, cells)), st.dictionaries(st.sampled_from([*NAMES, "x"]), cells), row
    )
    return st.one_of(
        st.fixed_dictionaries({"columns": headers, "data": st.lists(row, max_size=MOST + 1)}),
        st.fixed_dictionaries({"rows": st.lists(named, max_size=MOST + 1)}),
        st.fixed_dictionaries({"columns": headers, "data": odd}),
        odd,
    )


def the_long_way(body, inputs):
    try:
        came = read_rows(body, inputs, max_rows=MOST)
    except ValiantError:
        return None
    table = np.stack([measured(came.table.column(column.name), column.name) for column in inputs], axis=1)
    return came._replace(table=table)


def check(body, inputs=INPUTS):
    body = orjson.loads(orjson.dumps(body))
    names = tuple(column.name for column in inputs)
    short, long = plain_rows(body, names, max_rows=MOST), the_long_way(body, inputs)
    if short is not None:
        assert long is not None
        assert short.table.tobytes() == np.ascontiguousarray(long.table).tobytes()
        assert short.table.flags.c_contiguous
        assert (short.rows, short.good.tolist()) == (long.rows, long.good.tolist())
        assert (short.faults, short.ignored) == (long.faults, long.ignored)
    return short


@given(tables(ordinary))
@example({"columns": ["a", "b/~", "ü"], "data": [[1, 2, 3], [4, 5]]})
@example({"columns": ["a", "b/~", "ü"], "data": [[1, 2, 3, 4], [5, 6]]})
@example({"columns": ["a", "b/~", "b/~"], "data": [[1, 2, 3]]})
@example({"columns": ["a", "b/~", "ü"], "data": [[1, 2, 2**53 + 1]]})
def test_tables_of_numbers(body):
    check(body)


@given(tables(odd))
@example({"columns": ["a", "b/~", "ü"], "data": [[1, True, 3]]})
@example({"columns": ["a", "b/~", "ü"], "data": [[1, "2", 3]]})
@example({"columns": ["a", "b/~", "ü"], "data": ["123"]})
@example({"rows": [{"a": 1, "b/~": 2, "x": 3}]})
def test_tables_of_anything(body):
    check(body)


@given(st.lists(st.tuples(ordinary), min_size=1, max_size=MOST))
def test_one_column(rows):
    check({"rows": [{"a": value} for (value,) in rows]}, INPUTS[:1])
    check({"columns": ["a"], "data": rows}, INPUTS[:1])


@pytest.mark.parametrize(
    "body",
    [
        {"columns": ["a", "b/~", "ü"], "data": [[1, 2.5, None], [0, -1, 1e15]]},
        {"columns": ["ü", "a", "b/~"], "data": [[1, 2.5, None]]},
        {"rows": [{"ü": 1, "a": 2.5, "b/~": None}]},
    ],
)
def test_ordinary_bodies_go_the_short_way(body):
    assert check(body) is not None


def test_the_order_of_the_header_counts():
    came = plain_rows({"columns": ["ü", "a", "b/~"], "data": [[3, 1, 2]]}, NAMES, max_rows=1)
    assert came.table.tolist() == [[1, 2, 3]]
