"""The shortcut for numeric bodies reads what the general path reads, to the bit, and keeps out of everything else."""

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.numeric_json import read_matrix
from app.api.strict_json import parse
from app.errors import ValiantError
from app.ml.preparation import Learned, Preparation
from app.ml.rows import read_rows
from app.ml.schema import InputColumn
from app.settings import Settings

SETTINGS = Settings(max_predict_rows=6)
INPUTS = tuple(InputColumn(name=name, kind="numeric") for name in ("a", "data", "ü"))
HEAD = '{"columns":["a","data","ü"],"data":'
PLAIN = INPUTS[::2]


def preparation(inputs):
    neutral = np.ones(len(inputs))
    return Preparation(inputs, Learned(neutral, neutral, neutral, neutral > 1, neutral > 1))


def short(body, inputs):
    return read_matrix(body, preparation(inputs).numbers, SETTINGS)


def general(body, inputs):
    """The matrix, or the code of the refusal."""
    try:
        read = read_rows(parse(body, SETTINGS), inputs, max_rows=SETTINGS.max_predict_rows)
    except ValiantError as error:
        return error.code
    return preparation(inputs).raw(read.table)


def agree(body, inputs=PLAIN):
    """Whether the shortcut was taken; if so, both paths read the same."""
    quick = short(body, inputs)
    if quick is None:
        return False
    slow = general(body, inputs)
    assert not isinstance(slow, str), (body, slow)
    assert (quick.shape, quick.tobytes()) == (slow.shape, slow.tobytes())
    return True


numbers = st.one_of(
    st.integers(-(2**66), 2**66).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)
odd = st.sampled_from(
    ["null", "true", '"1"', "[]", "{}", "[1]", "NaN", "01", "+1", "1 2", "", "-", "1e999", "-0", "\0"]
)
ordered = st.permutations(["a", "ü"])
columns = ordered | st.lists(st.sampled_from(["a", "ü", "b", "data", 1, None, '"', "[", "\\"]), max_size=4)


@st.composite
def bodies(draw):
    cells = draw(st.sampled_from([numbers, numbers | odd]))
    width = draw(st.sampled_from([st.just(2), st.integers(0, 3)]))
    row = width.flatmap(lambda w: st.lists(cells, min_size=w, max_size=w))
    space = draw(st.sampled_from(["", " ", "\n\t"]))
    table = [f"[{space}{f'{space},'.join(one)}]" for one in draw(st.lists(row, max_size=7))]
    names = orjson.dumps(draw(columns)).decode()
    text = f'{{{space}"columns":{names},{space}"data"{space}:{space}[{",".join(table)}]{space}}}'
    return text.encode()


@given(bodies())
def test_both_paths_read_the_same(body):
    agree(body)


@given(st.lists(st.tuples(*[st.floats(-1e15, 1e15)] * 2), min_size=1, max_size=6), ordered)
def test_plain_numbers_take_the_shortcut(data, names):
    assert agree(orjson.dumps({"columns": names, "data": data}))


@given(st.lists(st.tuples(st.floats(-1e15, 1e15)), min_size=1, max_size=6))
def test_an_only_column_takes_the_shortcut(data):
    assert agree(orjson.dumps({"columns": ["a"], "data": data}), INPUTS[:1])


@given(bodies(), st.data())
def test_damaged_bodies_too(body, data):
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(len(body), start + 3)))
    agree(body[:start] + data.draw(st.binary(max_size=3)) + body[end:])


@pytest.mark.parametrize(
    "body",
    [
        '{"columns":["a","ü"],"data":[[1,2],[1,2,3],[1]]}',
        '{"columns":["a","ü"],"data":[[1,2,3],[4]]}',
        '{"columns":["a","ü"],"data":[[1,9007199254740993]]}',
        '{"columns":["a","ü"],"data":[[1,-9007199254740993]]}',
        '{"columns":["a","ü"],"data":[[1,2]],"data":[[1,2]]}',
        '{"data":[[1,2]],"columns":["a","ü"]}',
        '{"columns":["a","ü"],"columns":["a","ü"],"data":[[1,2]]}',
        '{"columns":["a","ü"],"d\\u0061ta":1,"data":[[1,2]]}',
        '{"columns":["a","a"],"data":[[1,2]]}',
        '{"columns":["a","ü","b"],"data":[[1,2,3]]}',
        '{"columns":["a","ü"],"data":[]}',
        '{"columns":["a","ü"],"data":[[],[1,2]]}',
        '{"columns":["a","ü"],"data":[[1,2]]} {}',
        '\ufeff{"columns":["a","ü"],"data":[[1,2]]}',
        '{"columns":["a","ü"],"data":[' + ",".join(["[1,2]"] * 7) + "]}",
        '{"columns":["a","ü"],"data":[[1 2,3]]}',
        '{"columns":["a","\\',
    ],
)
def test_what_is_unusual_is_left_alone(body):
    assert short(body.encode(), PLAIN) is None


def test_other_kinds_are_left_alone():
    body = b'{"columns":["a"],"data":[[1]]}'
    assert short(body, INPUTS[:1]) is not None
    assert short(body, (InputColumn(name="a", kind="boolean"),)) is None


def test_a_column_called_data_is_left_alone():
    assert short(f"{HEAD}[[1,2,3]]}}".encode(), INPUTS) is None
