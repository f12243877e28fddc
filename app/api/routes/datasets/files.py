"""Files of models from other libraries, uploaded for a job that imports them."""

import asyncio
from typing import Annotated
from uuid import UUID

from fastapi import Path, Request, Response, status

from app.api.edge.negotiation import BINARY
from app.api.edge.openapi import declare
from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import ServicesDep
from app.api.uploads.spool import Spool, demand_raw, receive
from app.base.errors import InvalidData
from app.schemas.files import StoredFile

router = Router(needs=READ_WRITE, prefix="/v1/files", tags=["files"])
CREATED = declare(201, {"Location": "Where the file is described."})
RAW_BODY = {"requestBody": {"required": True, "content": {"application/octet-stream": BINARY}}}


@router.post("", status_code=status.HTTP_201_CREATED, responses=CREATED, openapi_extra=RAW_BODY)
async def create_file(request: Request, response: Response, services: ServicesDep) -> StoredFile:
    """Upload a model file of another library; the body is the file, which nothing reads before a job imports it.

    It is kept for 24 hours, and longer while a job needs it. Its size is limited by `VALIANT_MAX_FILE_BYTES`; a body
    that has the `Content-Encoding` gzip or deflate is decompressed first, and the limit counts decompressed bytes.
    """
    demand_raw(request)
    with services.datasets.spool() as file:
        spool = Spool(file)
        await receive(request, spool, request.app.settings.max_file_bytes)
        if not spool.size:
            raise InvalidData("The file is empty.")
        stored = await asyncio.to_thread(services.files.keep, file, size_bytes=spool.size, digest=spool.digest)
    response.headers["Location"] = f"/v1/files/{stored.id}"
    return stored


@router.get("/{file_id}")
def get_file(file_id: Annotated[UUID, Path(description="Id of the file.")], services: ServicesDep) -> StoredFile:
    """Describe an uploaded file: its size and digest, and until when it is kept."""
    return services.files.get(file_id)
