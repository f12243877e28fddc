"""Submission of jobs: a route for every kind of job, and one for its dry run."""

from collections.abc import Callable, Sequence

from fastapi import Request, Response, status
from fastapi.concurrency import run_in_threadpool

from app.api.edge.openapi import declare
from app.api.edge.router import READ_WRITE, Router
from app.api.edge.strict_route import StrictRoute
from app.api.params.common import IdempotencyKey, RequestIdDep, ServicesDep
from app.base.faults import Fault
from app.ml.kinds.job import Estimate
from app.ml.kinds.job import Request as JobRequest
from app.ml.operations import Entry, kinds
from app.schemas.jobs import Job

DURABLE = "The job is committed before the response is sent: it will reach an end, whichever process dies."

PREFIX = "/v1/jobs"
ACCEPTED = declare(
    202, {"Location": "Where the job is.", "Retry-After": "Seconds after which it is worth looking at the job."}
)
RETRY_SECONDS = "1"


class CompleteRoute(StrictRoute):
    """A route that names faults of meaning, such as a column that does not exist, beside those of the schema."""

    async def further_faults(self, request: Request, body: object, faults: Sequence[Fault]) -> Sequence[Fault]:
        assert self.body_field is not None  # noqa: S101  every kind of work has a request
        kind, submission = self.body_field.field_info.annotation, request.app.services.submission
        return await run_in_threadpool(submission.further_faults, kind, body, faults)


router = Router(needs=READ_WRITE, prefix=PREFIX, tags=["jobs"], route_class=CompleteRoute)


def point_to(job: Job, request: Request, response: Response) -> None:
    """The location of the accepted job, in the response and in the log."""
    request.scope["job_id"] = str(job.id)
    response.headers["Location"] = f"{PREFIX}/{job.id}"
    response.headers["Retry-After"] = RETRY_SECONDS


def _submitted(kind_request: type[JobRequest]) -> Callable[..., Job]:
    def submit(  # noqa: PLR0917  FastAPI passes them by name
        body: kind_request,  # type: ignore[valid-type]  # known when the route is made
        services: ServicesDep,
        request_id: RequestIdDep,
        request: Request,
        response: Response,
        idempotency_key: IdempotencyKey = None,
    ) -> Job:
        traceparent: str | None = request.scope["traceparent"]
        job, _ = services.submission.submit(
            body, idempotency_key=idempotency_key, request_id=request_id, traceparent=traceparent
        )
        point_to(job, request, response)
        return job

    return submit


def _validated(kind_request: type[JobRequest]) -> Callable[..., Estimate]:
    def validate(body: kind_request, services: ServicesDep) -> Estimate:  # type: ignore[valid-type]  # as above
        return services.submission.validate(body)

    return validate


def _serve(entry: Entry) -> None:
    kind, path = entry.kind, f"/{entry.name}"
    router.add_api_route(
        path,
        _submitted(kind.request),
        methods=["POST"],
        name=kind.operation,
        status_code=status.HTTP_202_ACCEPTED,
        responses=ACCEPTED,
        description=f"{entry.description}\n\n{DURABLE}",
    )
    if kind.dry_run is not None:
        router.add_api_route(
            f"{path}:validate",
            _validated(kind.request),
            methods=["POST"],
            name=kind.dry_run,
            response_model=kind.estimate,
            description="A dry run: every problem of such a request at once, or what the job would take.",
        )


for _entry in kinds().values():
    if not _entry.kind.from_version:
        _serve(_entry)
