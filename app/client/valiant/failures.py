"""Errors of the client: problems of the service by their code, lost connections, jobs that did not succeed."""

from collections.abc import Mapping, Sequence
from typing import Any


class ValiantError(Exception):
    """Base of every error that the client raises by itself."""


class ConnectionLost(ValiantError):
    """No connection, or one that was cut before the response was complete."""

    def __init__(self, detail: str, *, sent: bool) -> None:
        """sent: True if the service may have received the request."""
        super().__init__(detail)
        self.sent = sent


class WaitTimedOut(ValiantError):
    """The time to wait for a job is over. The job itself goes on."""


class Problem(ValiantError):
    """A request that the service refused: `application/problem+json` of RFC 9457."""

    def __init__(self, status: int, fields: Mapping[str, Any]) -> None:
        self.status = status
        self.code: str = fields.get("code") or "unknown"
        """Stable: made for programs."""
        self.detail: str = fields.get("detail") or f"The service responded with the status {status}."
        self.errors: Sequence[Mapping[str, str]] = fields.get("errors") or ()
        """Every problem of the request: `pointer` (its place), `detail` and `code`."""
        self.remedy: str = fields.get("remedy") or ""
        self.request_id: str | None = fields.get("request_id")
        places = [f"  {error.get('pointer') or '/'}: {error.get('detail')}" for error in self.errors]
        lines = [f"{self.detail} [{self.code}]", *places, *([self.remedy] if self.remedy else ())]
        super().__init__("\n".join(lines))


class InvalidRequest(Problem):
    """400, 413, 415, 422 and their like: mend the request at the places in `errors`."""


class Unauthorised(Problem):
    """401, 403, 421: the service does not serve this caller or under this name."""


class NotFound(Problem):
    """404: the resource does not exist."""


class Conflict(Problem):
    """409, 412: the resource is in use, has changed, or does not offer this."""


class Unavailable(Problem):
    """429, 503, 504, 507: the service had no room for the request, also after retries."""


class ServiceFault(Problem):
    """500: the service failed. Its log has the cause under `request_id`."""


class JobFailed(Problem):
    """A job that ended without success; `job` is the job."""

    def __init__(self, job: Any) -> None:
        fields = job.error or {"code": job.state, "detail": f"The job ended as {job.state}."}
        super().__init__(fields.get("status", 0), fields)
        self.job = job


class JobCancelled(JobFailed):
    """The job was cancelled."""


class JobTimedOut(JobFailed):
    """The job reached its time limit."""


BY_STATUS: Mapping[int, type[Problem]] = {
    **dict.fromkeys((401, 403, 421), Unauthorised),
    404: NotFound,
    **dict.fromkeys((409, 412), Conflict),
    **dict.fromkeys((429, 503, 504, 507), Unavailable),
}
BY_STATE: Mapping[str, type[JobFailed]] = {"cancelled": JobCancelled, "timed_out": JobTimedOut}


def problem_of(status: int, fields: Mapping[str, Any]) -> Problem:
    """The problem of a response, of the class of its status."""
    return BY_STATUS.get(status, InvalidRequest if status < 500 else ServiceFault)(status, fields)
