"""Binary matrices of finite numbers take a short path: it gives what the general path gives, or stands aside."""

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import ValiantError
from app.formats.strict_json import parse
from app.formats.tensor_requests import _matrix_head, binary_matrix, parsed, read, read_request
from app.ml.contract.columns import InputColumn
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.state import PreparationState

LIMITS = {"max_rows": 6, "max_depth": 20}
NAMES = ("a", "b", "c")


class Inputs:
    """Of a model, without the rest of it."""

    def __init__(self, *, nullable=True):
        neutral = np.ones(len(NAMES))
        self.inputs = tuple(InputColumn(name=name, kind="numeric", nullable=nullable) for name in NAMES)
        self.preparation = Preparation(
            self.inputs, PreparationState(neutral, neutral, neutral, neutral > 1, neutral > 1)
        )


def head(rows, width, **changes):
    tensor = {
        "name": "input-0", "shape": [rows, width], "datatype": "FP64",
        "parameters": {"binary_data_size": 8 * rows * width},
    }  # fmt: skip
    return orjson.dumps({"inputs": [tensor | changes]})


def general(text, payload, model):
    try:
        request = parsed(parse(text, LIMITS["max_depth"]))
        return read(model, request, memoryview(payload), max_rows=LIMITS["max_rows"]).raw
    except ValiantError as error:
        return error.code


def short(text, payload, model):
    try:
        found = _matrix_head(text, LIMITS["max_depth"])
    except ValiantError as error:
        return error.code
    return binary_matrix(found, memoryview(payload), model, max_rows=LIMITS["max_rows"])


@given(
    rows=st.integers(0, 8),
    width=st.integers(0, 4),
    skew=st.integers(0, 7),
    more=st.integers(-8, 8),
    datatype=st.sampled_from(["FP64", "FP32", "INT64", "BOOL"]),
    special=st.sampled_from([0.0, -0.0, 1.5, np.nan, np.inf, 1e308]),
    nullable=st.booleans(),
)
def test_both_paths_read_the_same_matrices(*, rows, width, skew, more, datatype, special, nullable):
    values = np.arange(rows * width, dtype=float) + 0.5
    values[:2] = special
    text, model = head(rows, width, datatype=datatype), Inputs(nullable=nullable)
    payload = memoryview(bytes(skew) + values.tobytes() + bytes(max(more, 0)))[skew:]
    payload = payload[: len(payload) + min(more, 0)] if more < 0 else payload
    found, expected = short(text, payload, model), general(text, payload, model)
    if found is not None and not isinstance(found, str):
        assert isinstance(expected, np.ndarray)
        assert (found.raw.shape, found.raw.tobytes()) == (expected.shape, expected.tobytes())
        assert found.raw.flags.aligned


def test_a_row_of_finite_numbers_takes_the_short_path():
    row = np.array([[1.0, -2.5, 1e-300]])
    found = short(head(1, 3), row.tobytes(), Inputs())
    np.testing.assert_array_equal(found.raw, row)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_missing_numbers_take_the_general_path(special):
    assert short(head(1, 3), np.array([[1.0, special, 2.0]]).tobytes(), Inputs()) is None


def test_bytes_after_a_matrix_of_json_are_refused():
    text = orjson.dumps({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP64", "data": [1.0, 2.0, 3.0]}]})
    with pytest.raises(ValiantError, match="do not add up"):
        read_request(text + b"more", len(text), Inputs(), **LIMITS)
