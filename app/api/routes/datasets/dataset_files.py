"""Datasets downloaded as files."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Header
from starlette.responses import StreamingResponse

from app.api.edge.negotiation import BINARY, preferred
from app.api.edge.openapi import declare
from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import DatasetPath, ServicesDep
from app.formats.table_files import FILES, written

router = Router(needs=READ_WRITE, prefix="/v1/datasets", tags=["datasets"])

FILE = declare(200, {"Content-Disposition": "A name for the file: that of the dataset."})
FILE[200]["content"] = dict.fromkeys(FILES, BINARY)
FILE[200]["description"] = "The table as a file."
ACCEPT = f"Media types of the file that the caller takes, as in RFC 9110: {', '.join(FILES)}. Null: the first of them."


@router.get("/{dataset_id}/file", response_class=StreamingResponse, responses=FILE)
def download_dataset_file(
    dataset_id: DatasetPath,
    services: ServicesDep,
    accept: Annotated[str | None, Header(max_length=4096, description=ACCEPT)] = None,
) -> StreamingResponse:
    """The whole table as CSV, an Arrow stream or Parquet, by `Accept`; it is streamed, whatever its size.

    Uploaded again, it is the same table: numbers have all their digits, times are ISO 8601 in UTC, a missing value is
    an empty cell in CSV. A CSV file has no kinds of columns: where an upload gave some, or the parameter `missing`,
    give them again.
    """
    media_type = preferred(accept or "*/*", tuple(FILES))
    dataset, file = services.datasets.get(dataset_id), FILES[media_type]
    return StreamingResponse(
        written(services.datasets.tables(dataset.id), file),
        media_type=media_type,
        headers={"Content-Disposition": _attachment(f"{dataset.name}.{file.suffix}"), "Vary": "Accept"},
    )


def _attachment(name: str) -> str:
    """RFC 6266: the name in ASCII for old clients, and as it is."""
    plain = "".join(letter if (letter.isascii() and letter.isalnum()) or letter in " ._-" else "_" for letter in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
