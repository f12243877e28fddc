"""States as JSON and arrays: the fields are the format."""

import json
import math
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.models import state_format


class Colour(StrEnum):
    RED = "red"


class Tree(NamedTuple):
    left: Labels
    depth: int


class State(NamedTuple):
    coef: Matrix
    bias: float
    trees: tuple[Tree, ...]
    best: Tree | None
    offset: Vector | None
    words: NDArray[np.str_]
    names: list[str]
    pair: tuple[int, float]
    colour: Colour
    mode: Literal["a", "b"]
    on: bool
    anything: Any


TREE = Tree(np.array([1, 2]), 3)
STATE = State(
    np.eye(2), math.inf, (TREE, TREE), None, np.zeros(1), np.array(["é", ""]), ["x"], (1, 2.0),
    Colour.RED, "b", True, 1.5,
)  # fmt: skip


def packed(state):
    arrays = {}
    return json.loads(json.dumps(state_format.pack(state, "state", arrays), allow_nan=False)), arrays


def same(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for parts in zip(one, other, strict=True):
            same(*parts)
    else:
        assert one == other


@pytest.mark.parametrize(
    "state", [STATE, STATE._replace(best=TREE, offset=None, trees=(), bias=-0.0, anything=[1, "x", None])]
)
def test_round_trip(state):
    found = state_format.unpack(State, *packed(state))
    same(found._replace(anything=list(found.anything) if isinstance(found.anything, tuple) else found.anything), state)


def test_the_fields_name_the_arrays():
    assert set(packed(STATE)[1]) == {"state.coef", "state.offset", "state.trees.0.left", "state.trees.1.left"}


def test_numpy_scalars_become_plain_ones():
    arrays = {}
    written = state_format.pack(Tree(np.array([0]), np.int64(3)), "t", arrays)
    assert type(state_format.unpack(Tree, written, arrays).depth) is int


def test_nan_stays_nan():
    document, arrays = packed(STATE._replace(bias=math.nan))
    assert math.isnan(state_format.unpack(State, document, arrays).bias)


def test_what_is_not_stored_is_reported_by_its_path():
    with pytest.raises(TypeError, match=r"t\.depth is a set"):
        state_format.pack(Tree(np.array([0]), {1}), "t", {})


WRONG = {
    "an array for a number": ("bias", {"array": "state.coef"}),
    "a number for an array": ("coef", 1.0),
    "an array of another type": ("coef", {"array": "state.trees.0.left"}),
    "an array that is not there": ("coef", {"array": "state.nothing"}),
    "an array by an odd name": ("coef", {"array": []}),
    "nothing": ("coef", None),
    "a text for a number": ("bias", "1"),
    "a truth for a number": ("bias", True),
    "an unknown float": ("bias", {"float": "1e9"}),
    "an unknown tag": ("coef", {"pickle": ""}),
    "two tags": ("coef", {"array": "state.coef", "texts": []}),
    "a list for an array": ("coef", [1.0]),
    "a number for fields": ("best", 3),
    "fields that are missing": ("best", {"fields": {"depth": 1}}),
    "fields that are too many": ("best", {"fields": {"depth": 1, "left": {"array": "state.trees.0.left"}, "x": 1}}),
    "texts that are none": ("words", {"texts": [1]}),
    "texts that are a number": ("words", {"texts": 1}),
    "a pair of three": ("pair", [1, 2.0, 3]),
    "no such colour": ("colour", "blue"),
    "no such mode": ("mode", "c"),
    "a tuple of other things": ("trees", [1]),
}


@pytest.mark.parametrize(("field", "value"), WRONG.values(), ids=WRONG.keys())
def test_what_does_not_fit_is_refused(field, value):
    document, arrays = packed(STATE)
    document["fields"][field] = value
    with pytest.raises((TypeError, KeyError, ValueError)):
        state_format.unpack(State, document, arrays)


@pytest.mark.parametrize("document", [None, 1, [], {}, "x", {"fields": []}, {"fields": {}}])
def test_what_is_no_state_is_refused(document):
    with pytest.raises((TypeError, KeyError, ValueError)):
        state_format.unpack(State, document, {})
