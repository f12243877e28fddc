"""Uploads in parts, which go on after a broken connection from where it broke."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from .failures import Conflict, ConnectionLost, ValiantError
from .record import Record
from .steps import RETRIES, Steps

PART_BYTES = 16 << 20
"""Bytes of one request."""
RESUMED_BYTES = 64 << 20
"""Size from which a file is sent in parts."""
READ_BYTES = 1 << 20
BYTES = {"Content-Type": "application/octet-stream"}
WRONG_OFFSET = "wrong_offset"
UploadProgress: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Called after each part with the upload: its `id`, its `size_bytes`, and its `offset`, the bytes that have arrived."""


def send_parts(record: Record[Any], path: Path, resume: str | None, progress: UploadProgress | None) -> Steps[str]:
    """Send what the service does not have yet; the result is the id of the upload, which is then complete.

    resume: id of an upload of the same file that was broken off. Raises ValueError where it is one of another size.
    An error that ends it has a note with the call that goes on.
    """
    size = path.stat().st_size
    if resume is None:
        upload = yield from record._json("POST", "uploads", body={"size_bytes": size})  # noqa: SLF001
    else:
        upload = yield from record._json("GET", "uploads", resume)  # noqa: SLF001
    if upload["size_bytes"] != size:
        raise ValueError(f"The upload {resume} is of a file of {upload['size_bytes']} bytes; this one has {size}.")
    try:
        failures = 0
        while upload["offset"] < size:
            if progress is not None:
                progress(upload)
            before = upload["offset"]
            upload = yield from _send_part(record, upload, path, may_fail=failures < RETRIES)
            failures = 0 if upload["offset"] > before else failures + 1
    except (KeyboardInterrupt, ValiantError) as error:
        error.add_note(
            f"{upload['offset']} of {size} bytes have arrived. Within a day the upload goes on from there by "
            f"upload({str(path)!r}, resume={upload['id']!r})."
        )
        raise
    if progress is not None:
        progress(upload)
    return str(upload["id"])


def _send_part(record: Record[Any], upload: Mapping[str, Any], path: Path, *, may_fail: bool) -> Steps[dict[str, Any]]:
    """The upload after its next part, or with as much of it as has arrived where the connection broke."""
    start = upload["offset"]
    headers = {**BYTES, "Upload-Offset": str(start)}
    try:
        sent: dict[str, Any] = yield from record._json(  # noqa: SLF001
            "PATCH", "uploads", upload["id"], content=lambda: _part(path, start), headers=headers, repeatable=False
        )
    except ConnectionLost:
        if not may_fail:
            raise
    except Conflict as refused:  # the connection of an earlier attempt broke behind its last byte
        if refused.code != WRONG_OFFSET or not may_fail:
            raise
    else:
        return sent
    arrived: dict[str, Any] = yield from record._json("GET", "uploads", upload["id"])  # noqa: SLF001
    return arrived


def _part(path: Path, start: int) -> Iterator[bytes]:
    left = PART_BYTES
    with path.open("rb") as file:
        file.seek(start)
        while chunk := file.read(min(READ_BYTES, left)):
            left -= len(chunk)
            yield chunk
