"""Uploads in parts, on the wire."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from app.base.wire import Body, Wire

OFFSET_HEADER = "Upload-Offset"
"""Header of a part, and of every description of an upload."""


class BeginUpload(Body):
    """Announcement of a file that is sent in parts."""

    size_bytes: int = Field(ge=1, description="Size of the whole file, in bytes.")
    digest: str | None = Field(
        None,
        pattern="^sha256:[0-9a-f]{64}$",
        description="`sha256:` and the hexadecimal digest of the whole file, with which it is compared when all has "
        "arrived; null: it is not compared.",
    )


class Upload(Wire):
    """A file that is sent in parts."""

    id: UUID = Field(description="Id of the upload.")
    size_bytes: int = Field(description="Size of the whole file, in bytes.")
    offset: int = Field(description="Number of bytes that have arrived: the next part begins there.")
    digest: str | None = Field(None, description="Digest that was announced; null: none.")
    dataset: UUID | None = Field(None, description="Id of the dataset that was made of the file; null: none yet.")
    created_at: datetime = Field(description="Time at which it began, in UTC.")
    expires_at: datetime = Field(description="Time from which on it may be deleted unless more of it arrives, in UTC.")
