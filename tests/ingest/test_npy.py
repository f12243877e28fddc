import io
import pickle

import numpy as np
import pytest

from app.base.errors import InvalidData


def npy(array, **kwargs):
    sink = io.BytesIO()
    np.save(sink, array, **kwargs)
    return sink.getvalue()


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "<i4", ">i8", "u8", "f2", "<f4", ">f8"])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_numeric_arrays(parse, dtype, layout):
    array = np.array(np.arange(12).reshape(4, 3) % 2, dtype, order=layout)
    parsed, table = parse(npy(array))
    assert table.column_names == ["c0", "c1", "c2"]
    assert np.array_equal(np.array([c.to_pylist() for c in table.columns]).T, array.astype(float))
    assert parsed.columns[0].kind == ("boolean" if dtype == "?" else "numeric")


@pytest.mark.parametrize("layout", ["C", "F"])
def test_arrays_of_several_blocks(parse, layout):
    array = np.asarray(np.random.default_rng(0).normal(size=(400_000, 3)), order=layout)
    assert np.array_equal(np.column_stack([c.to_numpy() for c in parse(npy(array))[1].columns]), array)


def test_one_dimension_is_one_column(parse):
    assert parse(npy(np.array([1.5, np.nan])))[1].to_pydict() == {"c0": [1.5, None]}


def lie(**changes):
    header = {"descr": "<f8", "fortran_order": False, "shape": (2, 2)} | changes
    text = repr(header).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(32)


@pytest.mark.parametrize(
    "data",
    [
        lie(shape=(10**15, 2)),
        lie(shape=(10**30, 10**30)),
        lie(shape=(2**62, 4)),
        lie(shape=(-2, -2)),
        lie(shape=(2, 2, 1)),
        lie(shape=()),
        lie(shape=(0, 10**12)),
        lie(shape=(0,)),
        lie(shape=(2, 3)),
        lie(shape="x"),
        lie(descr="|O"),
        lie(descr="<c16"),
        lie(descr="<U4"),
        lie(descr="<V8"),
        lie(descr="<f16"),
        lie(descr=[("a", "<f8")]),
        lie(descr="__import__('os')"),
        lie(extra=1),
        b"\x93NUMPY\x09\x00" + bytes(200),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"(" * 5000,
        b"\x93NUMPY\x01\x00\x76\x00" + b"(" * 118,
        b"\x93NUMPY",
        npy(np.array([1, "x"], object), allow_pickle=True),
        pickle.dumps([1, 2]),
    ],
)
def test_a_lying_header_is_refused_before_memory_is_taken(parse, data):
    with pytest.raises(InvalidData):
        parse(data, file_format="npy")


def test_an_honest_header_is_read(parse):
    assert parse(lie())[1].to_pydict() == {"c0": [0.0, 0.0], "c1": [0.0, 0.0]}


def test_rows_and_columns_are_counted(parse):
    with pytest.raises(InvalidData, match="rows"):
        parse(npy(np.zeros((5, 2))), max_rows=4)
    with pytest.raises(InvalidData, match="columns"):
        parse(npy(np.zeros((5, 2))), max_columns=1)
