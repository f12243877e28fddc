"""The state of one process on the wire."""

from pydantic import Field

from app.base.wire import Wire


class Liveness(Wire):
    """The process is alive."""

    status: str = Field(description="`alive`.")


class Check(Wire):
    """One thing a process leans on."""

    name: str = Field(description="Part that was checked.")
    ok: bool = Field(description="True if the dependency responds.")
    required: bool = Field(description="True where the process is not ready without this part.")
    detail: str | None = Field(None, description="Finding of the check; null where `ok` is enough.")


class Readiness(Wire):
    """Readiness of the process."""

    status: str = Field(description="`ready`, or `not_ready` where a required check fails.")
    checks: list[Check] = Field(description="Result of each check.")
