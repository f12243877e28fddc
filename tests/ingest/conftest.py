import csv
import tempfile

import pyarrow as pa
import pytest


@pytest.fixture(autouse=True)
def _processes_own_limit():
    """A parser sets the limit of its process, which is here that of other tests too."""
    limit = csv.field_size_limit()
    yield
    csv.field_size_limit(limit)


@pytest.fixture
def order():
    """An order for the parser with room for everything small."""
    from app.ingest.protocol import Order
    from app.ingest.upload_options import ReadOptions
    from app.ingest.uploaded_file import Limits

    def make(
        *, name="table", file_format=None, memory_bytes=1 << 30, seconds=60, file_bytes=1 << 30, options=None, **limits
    ):
        roomy = {"max_rows": 10**7, "max_columns": 2000, "unpacked_bytes": 1 << 28, "chunk_bytes": 1 << 20}
        return Order(
            name=name,
            file_format=file_format,
            options=ReadOptions(**(options or {})),
            limits=Limits(**(roomy | limits)),
            memory_bytes=memory_bytes,
            seconds=seconds,
            file_bytes=file_bytes,
        )

    return make


@pytest.fixture
def parse(order):
    """Parse bytes in this process: (what was parsed, the table)."""
    from app.ingest.parsing_child import parse as parse_file

    def run(data, **kwargs):
        with tempfile.TemporaryFile() as upload, tempfile.TemporaryFile() as chunks:
            upload.write(data)
            upload.flush()
            parsed = parse_file(order(**kwargs), upload.fileno(), chunks)
            chunks.seek(0)
            payloads = chunks.read()
        parts = [payloads[place.offset : place.offset + place.length] for place in parsed.chunks]
        table = pa.concat_tables(pa.ipc.open_stream(chunk).read_all() for chunk in parts)
        assert len(table) == parsed.rows
        assert table.column_names == [column.name for column in parsed.columns]
        return parsed, table

    return run


@pytest.fixture
def faults(parse):
    """Of bytes that are refused: {pointer: code}; no fault repeats what was sent."""
    from app.base.errors import InvalidData

    def run(data, **kwargs):
        with pytest.raises(InvalidData) as refused:
            parse(data, **kwargs)
        assert "SECRET" not in refused.value.detail + "".join(fault.detail for fault in refused.value.faults)
        return {fault.pointer: fault.code for fault in refused.value.faults}

    return run
