"""Uploads in parts: a file that broke off is sent on from where it ended."""

import asyncio
from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import Header, Path, Query, Request, Response, status
from starlette.requests import ClientDisconnect

from app.api.edge.negotiation import BINARY
from app.api.edge.openapi import declare
from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import ServicesDep
from app.api.params.reading_options import OptionsOfQuery
from app.api.routes.datasets.datasets import CREATED as DATASET_CREATED
from app.api.routes.datasets.datasets import FORMAT, Name, make_in_thread
from app.api.uploads.spool import body_chunks, demand_raw
from app.base.errors import RequestTimeout
from app.schemas.datasets import Dataset, FileFormat
from app.schemas.uploads import OFFSET_HEADER, BeginUpload, Upload

router = Router(needs=READ_WRITE, prefix="/v1/uploads", tags=["datasets"])

OFFSET = "Number of bytes of the file that have arrived."
CREATED = declare(201, {"Location": "Where the upload is described, and its parts are sent.", OFFSET_HEADER: OFFSET})
STATE = declare(200, {OFFSET_HEADER: OFFSET})
PART = {"requestBody": {"required": True, "content": {"application/octet-stream": BINARY}}}
UploadPath = Annotated[UUID, Path(description="Id of the upload.")]
PartOffset = Annotated[
    int, Header(ge=0, alias=OFFSET_HEADER, description="Number of bytes of the file that stand before this part.")
]


@router.post("", status_code=status.HTTP_201_CREATED, responses=CREATED)
def create_upload(body: BeginUpload, response: Response, services: ServicesDep) -> Upload:
    """Begin the upload of a large file in parts, which goes on after a broken connection.

    Send the parts by `PATCH` to the address in `Location`, then make the dataset by `POST …/dataset`. The project needs
    room for the whole file at once. An upload is deleted a day after its last part.
    """
    upload = services.uploads.begin(body)
    response.headers["Location"] = f"/v1/uploads/{upload.id}"
    return _described(response, upload)


@router.get("/{upload_id}", responses=STATE)
def get_upload(upload_id: UploadPath, response: Response, services: ServicesDep) -> Upload:
    """Describe an upload: the next part begins at its `offset`, the number of bytes that have arrived."""
    return _described(response, services.uploads.get(upload_id))


@router.patch("/{upload_id}", responses=STATE, openapi_extra=PART)
async def append_to_upload(
    request: Request, response: Response, upload_id: UploadPath, services: ServicesDep, upload_offset: PartOffset
) -> Upload:
    """Send the part of the file that begins at `Upload-Offset`, of any size up to the end of the file.

    What arrives is kept, also where the connection breaks within the part. Where the part does not begin at the end of
    what has arrived, the response has the status 409 and the right offset in `Upload-Offset`.
    """
    demand_raw(request)
    upload = await asyncio.to_thread(services.uploads.expect, upload_id, upload_offset)
    waiting = bytearray()

    async def store() -> None:
        nonlocal upload
        if waiting:
            upload = await asyncio.to_thread(services.uploads.append, upload_id, upload.offset, bytes(waiting))
            waiting.clear()

    try:
        async for chunk in body_chunks(request, upload.size_bytes - upload.offset):
            waiting += chunk
            if len(waiting) >= request.app.settings.chunk_bytes:
                await store()
    except (ClientDisconnect, RequestTimeout):
        await store()
        raise
    await store()
    return _described(response, upload)


@router.delete("/{upload_id}", status_code=status.HTTP_204_NO_CONTENT)
def delete_upload(upload_id: UploadPath, services: ServicesDep) -> None:
    """Give the upload up; a dataset that was made of it stays."""
    services.uploads.delete(upload_id)


@router.post("/{upload_id}/dataset", status_code=status.HTTP_201_CREATED, responses=DATASET_CREATED)
async def create_dataset_from_upload(
    response: Response,
    upload_id: UploadPath,
    services: ServicesDep,
    options: OptionsOfQuery,
    *,
    name: Name = None,
    file_format: Annotated[FileFormat | None, Query(description=FORMAT)] = None,
) -> Dataset:
    """Make a dataset of the whole file, as `POST /v1/datasets` does with its body.

    It is made once: a repeated request returns the same dataset. Where the file cannot be read as requested the upload
    stays, and the request can be repeated with other options.
    """
    make = partial(services.uploads.make_dataset, upload_id, name=name, file_format=file_format, options=options)
    return await make_in_thread(services, response, make)


def _described(response: Response, upload: Upload) -> Upload:
    response.headers[OFFSET_HEADER] = str(upload.offset)
    return upload
