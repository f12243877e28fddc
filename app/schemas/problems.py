"""RFC 9457 problems: the one shape of every failure."""

from pydantic import Field

from app.wire import Wire


class ProblemError(Wire):
    """One fault of the input."""

    pointer: str = Field(description="JSON pointer to the place, or the line and column of a file.")
    detail: str
    code: str


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
