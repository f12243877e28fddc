"""Bodies whose numbers are read apart: both readers give what the general path gives, to the bit, or stand aside."""

import json

import numpy as np
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.base.errors import ValiantError
from app.base.settings import Settings
from app.formats import json_tables
from app.formats.json import number_rows
from app.formats.json_tables import interpreted
from app.formats.strict_json import parse
from app.formats.tensor_requests import matrix_request, parsed, read
from app.ml.contract.columns import InputColumn
from app.ml.numerics.decoding.json_numbers import read_table
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.state import PreparationState
from app.ml.tables.rows import read_rows

LIMITS = {"max_rows": 6, "max_depth": Settings().max_json_depth}
NAMES = ("a", "data", "ü/~")
INPUTS = tuple(InputColumn(name=name, kind="numeric") for name in NAMES)
READERS = {"compiled": read_table, "interpreted": interpreted}


class Inputs:
    """Of a model, without the rest of it."""

    def __init__(self, inputs):
        neutral = np.ones(len(inputs))
        self.inputs = inputs
        self.preparation = Preparation(inputs, PreparationState(neutral, neutral, neutral, neutral > 1, neutral > 1))


@pytest.fixture(params=READERS, autouse=True, scope="module")
def reader(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_tables, "_read", READERS[request.param])
        yield request.param


def general(body, model):
    try:
        came = read_rows(parse(body, LIMITS["max_depth"]), model.inputs, max_rows=LIMITS["max_rows"])
    except ValiantError as error:
        return error.code
    return None if came.ignored else model.preparation.raw(came.table)


def tensors(body, model):
    try:
        return read(model, parsed(parse(body, LIMITS["max_depth"])), memoryview(b""), max_rows=LIMITS["max_rows"]).raw
    except ValiantError as error:
        return error.code


def agree(body, inputs=INPUTS):
    """Whether the body was cut; if so, both paths read the same."""
    model = Inputs(inputs)
    quick = number_rows(body, model.preparation.numbers, **LIMITS)
    return quick is not None and same(body, quick, general(body, model))


def agree_on_tensors(body):
    model = Inputs(INPUTS)
    quick = matrix_request(body, model, **LIMITS)
    return quick is not None and same(body, quick.raw, tensors(body, model))


def same(body, quick, slow):
    assert isinstance(slow, np.ndarray), (body, slow)
    assert (quick.shape, quick.tobytes()) == (slow.shape, slow.tobytes()), body
    return True


cells = st.one_of(
    st.integers(-(2**66), 2**66).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.just("null"),
)
odd = st.sampled_from(
    ["true", '"1"', "[]", "{}", "[1]", "NaN", "01", "+1", "1 2", "", "-", "1e999", "-0", "\0", '"]]"', '"data":[[1]]']
)
spaces = st.sampled_from(["", " ", "\n\t", "\x0b"])
names = st.permutations(NAMES) | st.lists(st.sampled_from([*NAMES, "b", 1, None, '"', "[", "\\", "rows"]), max_size=4)


@st.composite
def rows(draw, form):
    cell = draw(st.sampled_from([cells, cells, cells | odd]))
    width = draw(st.sampled_from([st.just(3), st.just(3), st.integers(0, 4)]))
    space, table = draw(spaces), []
    header = draw(names)
    for _ in range(draw(st.integers(0, 7))):
        values = draw(width.flatmap(lambda w: st.lists(cell, min_size=w, max_size=w)))
        if form == "objects":
            keys = header if draw(st.integers(0, 9)) else draw(names)
            parts = [f"{json.dumps(key)}{space}:{value}" for key, value in zip(keys, values, strict=False)]
            table.append(f"{{{f'{space},'.join(parts)}}}")
        else:
            table.append(f"[{space}{f'{space},'.join(values)}]" if form == "lists" else f"{space},".join(values))
    return f"[{f'{space},{space}'.join(table)}{space}]"


@st.composite
def bodies(draw):
    space = draw(spaces)
    if draw(st.booleans()):
        return f'{{{space}"rows"{space}:{draw(rows("objects"))}}}{space}'.encode()
    header = json.dumps(draw(names), ensure_ascii=draw(st.booleans()))
    parts = [f'"columns":{header}', f'"data"{space}:{space}{draw(rows("lists"))}']
    return f"{{{','.join(draw(st.permutations(parts)))}{space}}}".encode()


@st.composite
def requests(draw):
    form = draw(st.sampled_from(["lists", "flat"]))
    count = draw(st.integers(0, 7))
    shape = draw(st.sampled_from([[count, 3], [count, 3], [3 * count], [3], [count, 3, 1]]))
    name = draw(st.sampled_from(["input-0", "input-0", "a"]))
    parts = [
        f'"name":"{name}"', f'"shape":{shape}', f'"data":{draw(rows(form))}',
        f'"datatype":"{draw(st.sampled_from(["FP64", "FP64", "FP32", "INT64"]))}"',
        *draw(st.sampled_from([[], [], ['"parameters":{"data":[[1,2,3]]}'], ['"parameters":{"x\\"data":[1]}']])),
    ]  # fmt: skip
    one = f"{{{','.join(draw(st.permutations(parts)))}}}"
    return f'{{"id":"x","inputs":[{one}{draw(st.sampled_from(["", f",{one}"]))}]}}'.encode()


@given(bodies())
@example(b'{"columns":["a","data","\\u00fc/~"],"data":[[1,2,3]],"d\\u0061ta":[]}')
@example(b'{"columns":["a","data","\\u00fc/~"],"x":{"data":[[1,2,3]]},"data":[]}')
@example(b'{"rows":[{"a":1,"data":2,"\\u00fc/~":3,"a":4}]}')
@example(b'{"rows":[{"a":1,"data":18446744073709551616,"\\u00fc/~":3}]}')
@example(b'{"columns":["a","data","\\u00fc/~"],"data":[[1,2,3]],"data":[[1,2,3]]}')
def test_both_paths_read_the_same(body):
    agree(body)


@given(requests())
@example(b'{"inputs":[{"name":"input-0","shape":[1,3],"datatype":"FP64","data":[1,2,3],"data":[1,2,4]}]}')
@example(b'{"inputs":[{"parameters":{"data":[1,2,3]},"name":"input-0","shape":[1,3],"datatype":"FP64","data":[]}]}')
def test_both_paths_read_the_same_tensors(body):
    agree_on_tensors(body)


@given(bodies() | requests(), st.data())
def test_damaged_bodies_too(body, data):
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(len(body), start + 3)))
    damaged = body[:start] + data.draw(st.binary(max_size=3)) + body[end:]
    agree(damaged)
    agree_on_tensors(damaged)


@given(
    st.lists(st.tuples(*[st.floats(-1e15, 1e15, allow_subnormal=False) | st.none()] * 3), min_size=1, max_size=6),
    st.permutations(NAMES),
)
def test_plain_numbers_are_cut(data, header):
    assert agree(orjson.dumps({"columns": header, "data": data}))
    assert agree(orjson.dumps({"data": data, "columns": header}))
    assert agree(json.dumps({"rows": [dict(zip(header, row, strict=True)) for row in data]}, indent=1).encode())
    one = {"name": "input-0", "shape": [len(data), 3], "datatype": "FP64"}
    assert agree_on_tensors(orjson.dumps({"inputs": [one | {"data": data}]}))
    assert agree_on_tensors(orjson.dumps({"inputs": [one | {"data": [x for row in data for x in row]}]}))


@given(st.lists(st.floats(-1e15, 1e15, allow_subnormal=False), min_size=1, max_size=6))
def test_an_only_column_is_cut(data):
    assert agree(orjson.dumps({"columns": ["a"], "data": [[x] for x in data]}), INPUTS[:1])
    assert agree(orjson.dumps({"rows": [{"a": x} for x in data]}), INPUTS[:1])


def test_what_is_remembered_of_one_body_is_no_part_of_the_next():
    frame = b'{"inputs":[{"name":"input-0","shape":[%d,3],"datatype":"FP64","data":[%b]}]}'
    flat, nested = frame % (1, b"1,2,3"), frame % (1, b"[4,5,6]")
    for body in (flat, nested, frame % (1, b""), nested, frame[: frame.index(b"[%b")] + b"[", nested, flat):
        assert agree_on_tensors(body) is (body in {flat, nested})
    header = b'{"columns":["a","data","\xc3\xbc/~"],"data":['
    for row in (b"[1,2,3]", b"[1,null,3e0]", b" [1,2,3]", b"[1,2,3],[4,5,6]"):
        assert agree(header + row + b"]}")
    assert not agree(header + b'{"a":1,"data":2,"\xc3\xbc/~":3}]}')
    assert not agree(header)


@pytest.mark.parametrize(
    "body",
    [
        '{"columns":["a","data","ü/~"],"data":[[1,2,3]]} {}',
        '\ufeff{"columns":["a","data","ü/~"],"data":[[1,2,3]]}',
        '{"columns":["a","data","ü/~"],"data":[' + ",".join(["[1,2,3]"] * 7) + "]}",
        '{"columns":["a","data","ü/~","b"],"data":[[1,2,3,4]]}',
        '{"columns":["a","data","data"],"data":[[1,2,3]]}',
        '{"columns":["a","\\',
        '{"data":',
        '{"data":[[',
        '{"rows":[{',
        '{"rows":[{"a":1,"data":2,"b":3}]}',
        '{"columns":["' + "a" * 20_000 + '","data","ü/~"],"data":[[1,2,3]]}',
    ],
)
def test_what_is_unusual_is_left_alone(body):
    assert number_rows(body.encode(), NAMES, **LIMITS) is None


def test_other_kinds_are_left_alone():
    body = b'{"columns":["a"],"data":[[1]]}'
    assert number_rows(body, Inputs(INPUTS[:1]).preparation.numbers, **LIMITS) is not None
    assert Inputs((InputColumn(name="a", kind="boolean"),)).preparation.numbers is None
    assert number_rows(body, None, **LIMITS) is None


def test_nothing_deeper_than_allowed():
    shallow = {**LIMITS, "max_depth": 2}
    assert number_rows(b'{"columns":["a"],"data":[[1]]}', ("a",), **shallow) is None
