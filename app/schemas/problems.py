"""RFC 9457 problems: the one shape of every failure."""

from typing import Self

from pydantic import Field

from app.errors import Fault, ValiantError
from app.wire import Wire


class ProblemError(Wire):
    """One fault of the input."""

    pointer: str = Field(
        description="JSON pointer into the body; /query/…, /path/… or /header/… elsewhere; "
        "or the line and column of a file."
    )
    detail: str
    code: str

    @classmethod
    def of(cls, fault: Fault) -> Self:
        return cls(pointer=fault.pointer, detail=fault.detail, code=fault.code)


class Problem(Wire):
    """What went wrong (application/problem+json). Never repeats a value the caller sent."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable: made for programs.")
    instance: str | None = None
    errors: list[ProblemError] = []
    remedy: str | None = None
    request_id: str | None = None
    error: str = Field(description="The detail again, where Open Inference clients look for it.")

    @classmethod
    def of(cls, error: ValiantError, *, request_id: str | None = None) -> Self:
        return cls(
            type=f"urn:valiant:problem:{error.code}",
            title=error.title,
            status=error.status,
            detail=error.detail,
            code=error.code,
            instance=f"urn:valiant:request:{request_id}" if request_id else None,
            errors=[ProblemError.of(fault) for fault in error.faults],
            remedy=error.remedy or None,
            request_id=request_id,
            error=error.detail,
        )
