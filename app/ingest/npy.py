"""npy: one numeric array, (n,) or (n, p), its columns named c0, c1, … Object arrays do not exist here.

The header is checked against the size of the file before anything is read.
"""

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy_format

from app.base.errors import InvalidData
from app.ingest.arrow_types import own_type
from app.ingest.reader_result import Reading, check_names
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits, Source

BLOCK_BYTES = 4 << 20
HEADER_LENGTH = 10_000
_READERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}


def read(source: Source, limits: Limits, _options: ReadOptions) -> Reading:
    shape, by_columns, dtype, offset = _header(source)
    n, p = shape if len(shape) == 2 else (*shape, 1)
    if n > limits.max_rows:
        raise InvalidData(f"The array has {n} rows; this service accepts {limits.max_rows}.")
    names = [f"c{number}" for number in range(min(p, limits.max_columns + 1))]  # p may be as large as the header likes
    check_names(names, limits)
    data_type = own_type(pa.from_numpy_dtype(_native(dtype)))
    blocks = _by_columns(source, n, p, dtype, offset) if by_columns else _by_rows(source, n, p, dtype, offset)
    return Reading(names, [data_type] * p, ([pa.array(column) for column in block] for block in blocks))


def _header(source: Source) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    file = source.open()
    try:
        version = npy_format.read_magic(file)
        shape, by_columns, dtype = _READERS[version](file, max_header_size=HEADER_LENGTH)
    except Exception:  # noqa: BLE001  numpy tokenizes and evaluates the header: a lie may make it raise anything
        raise InvalidData(
            "The file is not readable as npy: its header is damaged. Write it anew by numpy.save."
        ) from None
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InvalidData(
            "The array holds no booleans, integers or floats of up to 64 bits: save it as one of these types."
        )
    if len(shape) not in {1, 2} or min(shape) < 0:
        raise InvalidData(
            "The array has neither one nor two dimensions: reshape it to rows and columns, and save it again."
        )
    offset = file.tell()
    if math.prod(shape) * dtype.itemsize != source.size - offset:
        raise InvalidData("The header of the array does not fit the size of the file: upload the file whole.")
    return shape, by_columns, dtype, offset


def _native(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("=")


def _by_rows(source: Source, n: int, p: int, dtype: np.dtype, offset: int) -> Iterator[list[np.ndarray]]:
    step = max(1, BLOCK_BYTES // max(1, p * dtype.itemsize))
    for start in range(0, n, step):
        rows = min(step, n - start)
        values = _values(source, offset + start * p * dtype.itemsize, rows * p, dtype).reshape(rows, p)
        yield list(np.ascontiguousarray(values.T))


def _by_columns(source: Source, n: int, p: int, dtype: np.dtype, offset: int) -> Iterator[list[np.ndarray]]:
    step = max(1, BLOCK_BYTES // max(1, p * dtype.itemsize))
    for start in range(0, n, step):
        rows = min(step, n - start)
        yield [_values(source, offset + (j * n + start) * dtype.itemsize, rows, dtype) for j in range(p)]


def _values(source: Source, start: int, count: int, dtype: np.dtype) -> np.ndarray:
    raw = source.read_range(start, count * dtype.itemsize)
    return np.frombuffer(raw, dtype).astype(_native(dtype), copy=False)
