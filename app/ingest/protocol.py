"""Protocol of the service, its parser and the parser's child.

The service sends the parser one byte with a socket. Over this socket the forked child gets an order and sends its
response, one JSON message in each direction. When the child has ended, the parser sends how.
"""

from struct import Struct

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.base.wire import Wire
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits
from app.ml.tables.data_sheet import Column
from app.schemas.datasets import FileFormat, FileReading

LENGTH = Struct("!Q")
"""The bytes of an order, in front of it."""
STATUS = Struct("!i")
"""A child's exit status, or minus the signal that ended it."""


PARSED, REFUSED = b"P", b"R"
"""First byte of the result for a model file: a `ParsedModel`, or a `Refusal` in JSON."""


class Order(Wire):
    """Comes with two open files: the upload, and an empty one for the chunks."""

    name: str
    file_format: FileFormat | None
    options: ReadOptions = ReadOptions()
    limits: Limits
    memory_bytes: int
    seconds: int
    file_bytes: int


class ChunkPlace(Wire):
    """Place of a payload in the file of chunks."""

    first_row: int
    rows: int
    offset: int
    length: int


class Parsed(Wire):
    """The chunks are written; this is the table."""

    reading: FileReading
    rows: int
    columns: list[Column]
    warnings: list[str]
    chunks: list[ChunkPlace]


class Refusal(Wire):
    """The file is at fault, by a code of `app.base.errors`; `trace` only where we are."""

    code: str
    detail: str
    faults: list[Fault] = []
    trace: str | None = None


def out_of_memory(order: Order) -> Refusal:
    """Also of a child that died: a library that gets no memory may end its process."""
    detail = (
        f"Reading this file takes more than the {order.memory_bytes >> 20} MiB of memory that a parser may use, or it "
        "is damaged. Send it as Parquet, or with fewer columns or shorter values; or raise VALIANT_PARSE_MEMORY_BYTES."
    )
    return Refusal(code=InvalidData.code, detail=detail, faults=[Fault("", detail, "too_much_memory")])


class ParseResponse(Wire):
    """Either of them."""

    parsed: Parsed | None = None
    refusal: Refusal | None = None
