"""A dataset beside memory: in a file that nobody else sees, mapped to be read.

Mapped pages are the kernel's to drop and to fetch again; they do not count as memory of the trainer. The file lies
where temporary files go (TMPDIR) and is gone with the trainer, however that ends.
"""

import ctypes
import mmap
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

import pyarrow as pa

from app.errors import NO_ROOM, StorageFull

LARGE = 1 << 16
"""Bytes from which on an array has pages of its own."""
_M_MMAP_THRESHOLD = -3


def spooled(batches: Iterator[pa.Table]) -> pa.Table:
    """All rows, in order; at most one batch of them is in memory at a time. Raises StorageFull."""
    give_large_arrays_back()
    with tempfile.TemporaryFile() as file:
        try:
            _write(file, batches)
            file.flush()
        except OSError as error:
            if error.errno in NO_ROOM:
                raise StorageFull("There is no room for the dataset beside memory.") from None
            raise
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # stays when the file is closed
    return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()


def _write(file: IO[bytes], batches: Iterator[pa.Table]) -> None:
    first = next(batches)
    with pa.ipc.new_file(pa.PythonFile(file, "w"), first.schema) as writer:
        writer.write_table(first)
        for batch in batches:
            writer.write_table(batch)


def give_large_arrays_back() -> None:
    """Return large arrays to the system as soon as they are free. Otherwise glibc keeps them on its heap, among small
    ones that are still held, and the heap grows with every batch.
    """
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE)
