"""Uploaded files on the wire."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from app.base.wire import Wire


class StoredFile(Wire):
    """File of a model, kept for a day so that a job can read it."""

    id: UUID = Field(description="Id of the file, as a job of the kind `import` takes it.")
    size_bytes: int = Field(description="Size of the file, in bytes.")
    digest: str = Field(description="sha256: of the bytes of the file.")
    created_at: datetime = Field(description="Time of the upload, in UTC.")
    expires_at: datetime = Field(description="Time from which on the file may be deleted, in UTC.")
