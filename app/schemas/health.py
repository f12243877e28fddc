"""The state of one process on the wire."""

from pydantic import Field

from app.wire import Wire


class Liveness(Wire):
    status: str


class Check(Wire):
    """One thing a process leans on."""

    name: str
    ok: bool
    required: bool = Field(description="Whether the process is not ready without it.")
    detail: str | None = Field(None, description="What was found; absent if `ok` says all there is to say.")


class Readiness(Wire):
    status: str
    checks: list[Check]
