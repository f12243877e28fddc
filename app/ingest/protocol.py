"""What the service and the parsing child say to each other: one JSON message each way."""

from app.errors import Fault
from app.ingest.source import Limits
from app.ml.sheet import Column
from app.schemas.datasets import FileFormat
from app.wire import Wire


class Order(Wire):
    """Comes with two open files: the upload, and an empty one for the chunks."""

    name: str
    file_format: FileFormat | None
    limits: Limits
    memory_bytes: int
    seconds: int
    file_bytes: int


class ChunkPlace(Wire):
    """Where a payload lies in the file of chunks."""

    first_row: int
    rows: int
    offset: int
    length: int


class Parsed(Wire):
    """The chunks are written; this is the table."""

    file_format: FileFormat
    rows: int
    columns: list[Column]
    warnings: list[str]
    chunks: list[ChunkPlace]


class Refusal(Wire):
    """The file is at fault, by a code of `app.errors`; `trace` only where we are."""

    code: str
    detail: str
    faults: list[Fault] = []
    trace: str | None = None


class Answer(Wire):
    """Either of them."""

    parsed: Parsed | None = None
    refusal: Refusal | None = None
