"""Messages of an Arrow stream that take memory beyond the body are refused before they are unpacked."""

import struct

import pyarrow as pa

from app.formats.malformed import MalformedTable

HEADER, COMPRESSION, DATA, IS_DELTA = 2, 3, 1, 2
"""Places of fields in the tables Message, RecordBatch and DictionaryBatch of Arrow's Message.fbs."""


def refuse_unpacking(message: pa.Message) -> None:
    """Raises MalformedTable for what takes memory beyond the body."""
    if message.type not in {"record batch", "dictionary"}:
        return
    text = memoryview(message.metadata)
    header = _table_at(text, _field(text, _table_at(text, 0), HEADER))
    if message.type == "dictionary":
        flag = _field(text, header, IS_DELTA)
        if flag and text[flag]:
            raise MalformedTable("Dictionaries in several batches are not read; send each of them whole.")
        header = _table_at(text, _field(text, header, DATA))
    if _field(text, header, COMPRESSION):
        raise MalformedTable("Compressed buffers are not read; send them as they are.")


def _table_at(text: memoryview, position: int) -> int:
    """Start of the table to which a flatbuffer refers from here."""
    return position + int(struct.unpack_from("<I", text, position)[0])


def _field(text: memoryview, table: int, number: int) -> int:
    """Place of a field of a flatbuffer's table; 0 if it is left out."""
    entries = table - int(struct.unpack_from("<i", text, table)[0])
    size, entry = int(struct.unpack_from("<H", text, entries)[0]), 4 + 2 * number
    offset = int(struct.unpack_from("<H", text, entries + entry)[0]) if entry < size else 0
    return table + offset if offset else 0
