"""The container: what is written is read, the same content gives the same bytes, and nothing hostile gets through."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load

from app.base.errors import CorruptModel
from app.ml.models import safetensors_format

ARRAYS = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.uint16, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(lambda name: name != "__metadata__")
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
EXAMPLE = safetensors_format.write({"a": [1, "é"]}, {"w": np.arange(6.0).reshape(2, 3), "b": np.array([True, False])})


@given(DOCUMENTS, st.dictionaries(NAMES, ARRAYS, max_size=4))
def test_round_trip(document, arrays):
    blob = safetensors_format.write(document, arrays)
    found, views = safetensors_format.read(blob)
    assert found == document == safetensors_format.read_document(blob)
    assert views.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (views[name].dtype, views[name].shape) == (array.dtype, array.shape)
        assert views[name].tobytes() == array.tobytes()


def test_the_order_of_keys_does_not_matter():
    document, arrays = {"x": 1, "y": 2}, {name: np.ones(3, bool if name in "ae" else float) for name in "abcdef"}
    backwards = [dict(reversed(part.items())) for part in (document, arrays)]
    assert safetensors_format.write(document, arrays) == safetensors_format.write(*backwards)


def test_the_library_reads_it():
    np.testing.assert_array_equal(load(EXAMPLE)["w"], np.arange(6.0).reshape(2, 3))


def test_arrays_are_read_only_views():
    big = safetensors_format.write({}, {"w": np.ones(1 << 20)})
    tracemalloc.start()
    array = safetensors_format.read(big)[1]["w"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
    assert not array.flags.writeable


def test_an_array_that_does_not_lie_on_a_word_is_still_whole():
    shifted = memoryview(b"x" + EXAMPLE)[1:]
    array = safetensors_format.read(shifted)[1]["w"]
    assert array.flags.aligned
    np.testing.assert_array_equal(array, np.arange(6.0).reshape(2, 3))


def test_objects_are_not_stored():
    with pytest.raises(TypeError):
        safetensors_format.write({}, {"w": np.array([object()])})


@pytest.mark.parametrize("cut", range(len(EXAMPLE)))
def test_every_truncation_is_found(cut):
    with pytest.raises(CorruptModel):
        safetensors_format.read(EXAMPLE[:cut])


def test_every_flipped_bit_of_the_frame_is_found_or_harmless():
    """In the header a flip gives other content or CorruptModel: never another exception."""
    for place in range(len(EXAMPLE)):
        for bit in range(8):
            hostile = bytearray(EXAMPLE)
            hostile[place] ^= 1 << bit
            try:
                safetensors_format.read(bytes(hostile))
            except CorruptModel:
                continue


@given(st.binary(max_size=200))
def test_noise_is_corrupt(noise):
    with pytest.raises(CorruptModel):
        safetensors_format.read(noise)


def blob(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


META = {"__metadata__": {"valiant": "{}"}}


def part(dtype="F64", shape=(1,), offsets=(0, 8)):
    return META | {"w": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


LIES = {
    "no header": blob({}),
    "a list": blob([]),
    "another service": blob({"__metadata__": {"format": "pt"}}),
    "two keys of metadata": blob({"__metadata__": {"valiant": "{}", "x": ""}}),
    "metadata that is no JSON": blob({"__metadata__": {"valiant": "{"}}),
    "metadata with NaN": blob({"__metadata__": {"valiant": "NaN"}}),
    "metadata that is no text": blob({"__metadata__": {"valiant": {}}}),
    "header beyond the end": (2**63 - 1).to_bytes(8, "little") + b"{}",
    "no such dtype": blob(part("OBJECT"), bytes(8)),
    "dtype that is no text": blob(part(["F64"]), bytes(8)),
    "shape beyond the data": blob(part(shape=(2,)), bytes(8)),
    "shape that overflows to the size": blob(part(shape=(2**32, 2**32), offsets=(0, 0))),
    "a negative size": blob(part(shape=(-1,)), bytes(8)),
    "a fractional size": blob(part(shape=(1.0,)), bytes(8)),
    "a truth for a size": blob(part(shape=(True,)), bytes(8)),
    "sixty-four dimensions": blob(part(shape=(1,) * 64), bytes(8)),
    "data beyond the parts": blob(part(), bytes(9)),
    "data short of the parts": blob(part(), bytes(7)),
    "a hole": blob(part(offsets=(8, 16)), bytes(16)),
    "an end before its beginning": blob(part(offsets=(8, 0)), bytes(8)),
    "one offset": blob(part(offsets=(8,)), bytes(8)),
    "an overlap": blob(part() | {"v": part()["w"]}, bytes(8)),
    "something beside": blob(META | {"w": part()["w"] | {"path": "/etc"}}, bytes(8)),
    "a key twice": blob(b'{"__metadata__":{"valiant":"{}"},"__metadata__":{"valiant":"{}"}}'),
    "deep nesting": blob(b"[" * 1_000_000),
    "not Unicode": blob(b'{"\xff":1}'),
    "a huge number": blob(b'{"w":' + b"9" * 100_000 + b"}"),
    "too many parts": blob(b"{" + b",".join(b'"%d":0' % i for i in range(300_000)) + b"}"),
}


@pytest.mark.parametrize("hostile", LIES.values(), ids=LIES.keys())
def test_lies_are_found_and_cost_little(hostile):
    tracemalloc.start()
    with pytest.raises(CorruptModel):
        safetensors_format.read(hostile)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25 * len(hostile) + 100_000


def test_a_thousand_members_of_many_parts_are_stored():
    arrays = {f"state.members.{i}.state.trees.{j}": np.zeros(1) for i in range(1000) for j in range(24)}
    assert safetensors_format.read(safetensors_format.write({}, arrays))[1].keys() == arrays.keys()
