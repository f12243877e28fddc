"""RFC 9457 problems: the one shape of every failure."""

from typing import Self

from pydantic import Field

from app.base.errors import ValiantError
from app.base.faults import Fault
from app.base.wire import Wire


class ProblemError(Wire):
    """One fault of the input."""

    pointer: str = Field(
        description="JSON pointer into the body; /query/…, /path/… or /header/… elsewhere; "
        "or the line and column of a file."
    )
    detail: str = Field(description="Sentence on what is wrong.")
    code: str = Field(description="Stable code of this fault.")

    @classmethod
    def of(cls, fault: Fault) -> Self:
        return cls(pointer=fault.pointer, detail=fault.detail, code=fault.code)


class Problem(Wire):
    """Problem of a request (application/problem+json). It never repeats a value the caller sent."""

    type: str = Field("about:blank", description="URN of the code, such as urn:valiant:problem:no_explanation.")
    title: str = Field(description="Sentence that is the same for every problem of this code.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="Sentence on what is wrong: the first problem with its place.")
    code: str = Field(description="Stable: made for programs.")
    instance: str | None = Field(None, description="URN of this occurrence; null: none.")
    errors: list[ProblemError] = Field([], description="Problems of the request with their places, 1,000 at most.")
    remedy: str | None = Field(None, description="Sentence on what to do; null: the detail is enough.")
    request_id: str | None = Field(None, description="Id of the request, as in the header X-Request-Id and in the log.")
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
