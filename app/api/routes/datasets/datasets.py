"""Datasets: uploaded once, then only read."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Annotated

from fastapi import File, Form, Query, Request, Response, UploadFile, status
from pydantic import WithJsonSchema

from app.api.edge.openapi import declare
from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import PAGE, Cursor, DatasetPath, Limit, Offset, ServicesDep
from app.api.params.reading_options import OptionsOfForm, OptionsOfQuery, with_charset
from app.api.uploads.multipart import FileFormRoute
from app.api.uploads.spool import Spool, demand_raw, receive
from app.base.errors import InvalidData
from app.base.references import NAME_LENGTH, RESERVED, is_dataset_name
from app.composition.wiring import Services
from app.ingest.upload_options import ReadOptions
from app.schemas.datasets import Dataset, DatasetPage, FileFormat, Rows

router = Router(needs=READ_WRITE, prefix="/v1/datasets", tags=["datasets"])
forms = Router(needs=READ_WRITE, prefix="/v1/datasets", tags=["datasets"], route_class=FileFormRoute)

BINARY = {"type": "string", "format": "binary"}
MEDIA_TYPES = (
    "application/octet-stream",
    "text/csv",
    "application/vnd.apache.parquet",
    "application/vnd.apache.arrow.file",
    "application/vnd.apache.arrow.stream",
    "application/x-ndjson",
    "application/json",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.ms-excel",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/x-arff",
    "text/x-svmlight",
    "application/gzip",
    "application/x-bzip2",
    "application/x-xz",
    "application/zstd",
    "application/zip",
)
BY_MEDIA_TYPE = {
    "application/x-arff": FileFormat.ARFF,
    "text/x-arff": FileFormat.ARFF,
    "text/x-svmlight": FileFormat.SVMLIGHT,
    "text/x-libsvm": FileFormat.SVMLIGHT,
}
"""Formats that a Content-Type chooses; the others are recognised whatever it is."""
RAW_BODY = {"requestBody": {"required": True, "content": {kind: {"schema": BINARY} for kind in MEDIA_TYPES}}}
CREATED = declare(201, {"Location": "Where the dataset is described."})
NAME = (
    "A name for the dataset: 1 to 200 printable characters that do not read as a UUID. It need not be new: wherever an "
    "id of a dataset is expected, a name means the newest dataset of that name."
)
FORMAT = (
    "Format of the file. null: by its first bytes; else by the end of its name (.json, .jsonl, .ndjson, .arff, .svm, "
    ".libsvm, .svmlight), its Content-Type or its first lines; else CSV."
)
ROWS = 100

Name = Annotated[str | None, Query(min_length=1, max_length=NAME_LENGTH, description=NAME)]
Columns = Annotated[
    list[str] | None,
    Query(max_length=1000, description="Names of the columns that are returned, in this order; null: all."),
]
Sheets = Annotated[
    bool, Query(description="False: of each column only its name, kind and counts, which is quick for wide tables.")
]
RowLimit = Annotated[int, Query(ge=1, le=1000, description="Largest number of rows on a page.")]


@router.post("", status_code=status.HTTP_201_CREATED, responses=CREATED, openapi_extra=RAW_BODY)
async def create_dataset(
    request: Request,
    response: Response,
    services: ServicesDep,
    options: OptionsOfQuery,
    *,
    name: Name = None,
    file_format: Annotated[FileFormat | None, Query(description=FORMAT)] = None,
) -> Dataset:
    """The body is the file: CSV, Excel, Parquet, Arrow IPC, JSON, ARFF, SVMLight or npy.

    It may be compressed by gzip, bzip2, xz, zstd or lz4, or be a zip archive with one table. It is read as it comes and
    checked to the last line; a fault is named by its line and column. A body that has the `Content-Encoding` gzip or
    deflate is decompressed first, and the limit on size counts decompressed bytes.
    """
    demand_raw(request)
    options = with_charset(options, request.headers.get("content-type", ""))
    with services.datasets.spool() as file:
        spool = Spool(file)
        await receive(request, spool, request.app.settings.max_upload_bytes)
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        file_format = file_format or BY_MEDIA_TYPE.get(media_type)
        return await _keep(services, response, spool, name, file_format=file_format, options=options)


@forms.post("/upload", status_code=status.HTTP_201_CREATED, responses=CREATED)
async def upload_dataset(
    request: Request,
    response: Response,
    services: ServicesDep,
    options: OptionsOfForm,
    *,
    file: Annotated[UploadFile, File(description="The file."), WithJsonSchema(BINARY)],
    name: Annotated[
        str | None, Form(min_length=1, max_length=NAME_LENGTH, description=f"{NAME} Absent: the file's.")
    ] = None,
    file_format: Annotated[FileFormat | None, Form(description=FORMAT)] = None,
) -> Dataset:
    """The same as a form, for browsers and `curl -F file=@table.csv`."""
    spool: Spool = request.scope["spool"]
    file_name = _own_name(file)
    return await _keep(
        services, response, spool, name or file_name, file_name=file_name, file_format=file_format, options=options
    )


router.take(forms)


async def _keep(
    services: Services,
    response: Response,
    spool: Spool,
    name: str | None,
    *,
    file_name: str | None = None,
    file_format: FileFormat | None,
    options: ReadOptions,
) -> Dataset:
    if not spool.size:
        raise InvalidData("The file is empty: upload one that has rows.")
    ingest = partial(
        services.datasets.ingest,
        spool.file,
        name=name,
        file_name=file_name,
        file_format=file_format,
        options=options,
        size_bytes=spool.size,
        digest=spool.digest,
    )
    return await make_in_thread(services, response, ingest)


async def make_in_thread(services: Services, response: Response, make: Callable[[], Dataset]) -> Dataset:
    """The new dataset. In threads of their own: uploads that wait for their turn hold up no other request."""
    making = partial(copy_context().run, make)
    dataset = await asyncio.get_running_loop().run_in_executor(services.datasets.threads, making)
    response.headers["Location"] = f"/v1/datasets/{dataset.id}"
    return dataset


def _own_name(file: UploadFile) -> str | None:
    """The file's name as far as it can be printed, without folders; None if it is no name of a dataset."""
    base = (file.filename or "").replace("\\", "/").rpartition("/")[2]
    name = "".join(filter(str.isprintable, base)).strip()[:NAME_LENGTH]
    return name if name != RESERVED and is_dataset_name(name) else None


@router.get("")
def list_datasets(
    services: ServicesDep,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    name: Annotated[
        str | None,
        Query(max_length=NAME_LENGTH, description="Name of the datasets that are listed; null: all datasets."),
    ] = None,
    *,
    sheets: Sheets = True,
) -> DatasetPage:
    """Newest first."""
    return services.datasets.page(limit, cursor, name=name, sheets=sheets)


@router.get("/{dataset_id}")
def get_dataset(dataset_id: DatasetPath, services: ServicesDep, *, sheets: Sheets = True) -> Dataset:
    """The table's columns, each with its data sheet."""
    return services.datasets.get(dataset_id, sheets=sheets)


@router.delete("/{dataset_id}", status_code=status.HTTP_204_NO_CONTENT)
def delete_dataset(dataset_id: DatasetPath, services: ServicesDep) -> None:
    """Refused while an unfinished job needs it. Models that were trained on it stay."""
    services.datasets.delete(dataset_id)


@router.get("/{dataset_id}/rows")
def list_dataset_rows(
    dataset_id: DatasetPath,
    services: ServicesDep,
    offset: Offset = 0,
    limit: RowLimit = ROWS,
    columns: Columns = None,
) -> Rows:
    """A window of the table as it was read: times as ISO 8601 in UTC, missing values as null.

    Where values are very long it holds fewer rows than requested: go on at offset plus the rows it holds.
    """
    return services.datasets.rows(dataset_id, offset, limit, columns)
