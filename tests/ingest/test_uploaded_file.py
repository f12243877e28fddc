"""The uploaded file, opened more than once."""

import gzip
import lzma
import tempfile

import pytest

from app.ingest.compression import find_compression
from app.ingest.uploaded_file import Source


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_readers_of_one_file_do_not_disturb_each_other(pack):
    data = bytes(range(256)) * 20_000
    with tempfile.TemporaryFile() as file:
        file.write(pack(data))
        file.flush()
        source = Source.of(file.fileno(), unpacked_bytes=len(data))
        layer = find_compression(source.head())
        source = source if layer is None else source._replace(layers=(layer,))
        first, second = source.open(), source.open()
        begun = first.read(3_000_000)
        assert second.read() == data
        assert begun + first.read() == data
