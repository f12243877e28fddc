"""A dataset beside memory: in a file that nobody else sees, mapped to be read.

Mapped pages are the kernel's to drop and to fetch again; they do not count as memory of the trainer. The file lies
where temporary files go (TMPDIR) and is gone with the trainer, however that ends.
"""

import ctypes
import mmap
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import IO

import numpy as np
import pyarrow as pa

from app.base.errors import NO_ROOM, StorageFull
from app.ml.contract.algorithm import Matrix

MIN_MAPPED_BYTES = 1 << 16
"""Bytes from which on an array has pages of its own."""
_M_MMAP_THRESHOLD = -3


def spooled(batches: Iterator[pa.Table]) -> pa.Table:
    """All rows, in order; at most one batch of them is in memory at a time. Raises StorageFull."""
    mapped = _mapped(partial(_write_tables, batches))
    return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()


def spooled_rows(parts: Iterator[Matrix]) -> Matrix:
    """The rows of all parts, read-only; at most one part is in memory at a time. Raises StorageFull."""
    first = next(parts)
    mapped = _mapped(partial(_write_rows, chain([first], parts)))
    return np.frombuffer(mapped, np.float64).reshape(-1, first.shape[1])


def _mapped(write: Callable[[IO[bytes]], None]) -> mmap.mmap:
    """A file without a name, written and mapped."""
    give_large_arrays_back()
    with tempfile.TemporaryFile() as file:
        try:
            write(file)
            file.flush()
        except OSError as error:
            if error.errno in NO_ROOM:
                raise StorageFull("There is no room for the dataset beside memory.") from None
            raise
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # stays when the file is closed


def _write_tables(batches: Iterator[pa.Table], file: IO[bytes]) -> None:
    first = next(batches)
    with pa.ipc.new_file(pa.PythonFile(file, "w"), first.schema) as writer:
        writer.write_table(first)
        for batch in batches:
            writer.write_table(batch)


def _write_rows(parts: Iterator[Matrix], file: IO[bytes]) -> None:
    for part in parts:
        file.write(np.ascontiguousarray(part).data)


def give_large_arrays_back() -> None:
    """Return large arrays to the system as soon as they are free. Otherwise glibc keeps them on its heap, among small
    ones that are still held, and the heap grows with every batch.
    """
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MIN_MAPPED_BYTES)
