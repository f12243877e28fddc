"""Long-running jobs: watch, cancel. They are submitted by `app.api.routes.jobs.job_kinds`."""

from typing import TYPE_CHECKING, Annotated

from fastapi import Header, Query, Request, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from app.api.edge import server_sent_events
from app.api.edge.admission import CALLER, ENDS_ITSELF
from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import PAGE, Cursor, JobPath, Limit, RequestIdDep, ServicesDep
from app.api.routes.jobs.job_kinds import ACCEPTED, PREFIX, point_to
from app.base.errors import ValiantError
from app.base.references import JOB_NAME
from app.schemas.jobs import Job, JobPage, JobState
from app.schemas.problems import Problem

if TYPE_CHECKING:
    from app.api.edge.shared_reads import SharedReads

router = Router(needs=READ_WRITE, prefix=PREFIX, tags=["jobs"])


@router.get("")
def list_jobs(
    services: ServicesDep,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    state: Annotated[JobState | None, Query(description="State of the jobs that are listed; null: any state.")] = None,
    name: Annotated[
        str | None, Query(pattern=JOB_NAME, description="Name of the jobs that are listed; null: any name and none.")
    ] = None,
) -> JobPage:
    """Newest first."""
    return services.jobs.page(limit, cursor, state=state, name=name)


@router.get("/{job_id}")
def get_job(job_id: JobPath, services: ServicesDep) -> Job:
    """State and progress of a job."""
    return services.jobs.get(job_id)


@router.post("/{job_id}/cancel", status_code=status.HTTP_202_ACCEPTED, responses=ACCEPTED)
def cancel_job(job_id: JobPath, services: ServicesDep, request: Request, response: Response) -> Job:
    """Stop a job. A second request, or one that is too late, returns the job as it stands."""
    job = services.jobs.cancel(job_id)
    point_to(job, request, response)
    return job


@router.get(
    "/{job_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {
                "text/event-stream": {"schema": server_sent_events.SCHEMA, "example": server_sent_events.EXAMPLE}
            }
        },
        204: {"description": "The job is over, and the event of Last-Event-ID was its last."},
    },
)
async def stream_job_events(
    job_id: JobPath,
    services: ServicesDep,
    request: Request,
    request_id: RequestIdDep,
    last_event_id: Annotated[str | None, Header(max_length=100, description="Continue after this event.")] = None,
) -> Response:
    """A job's progress as server-sent events (`state`, `progress`, `curve`, `end`), until it is over.

    A stream that ends without `end` was cut by us: connect again with the last id. After `refused` the key is good for
    nothing more.
    """
    job = await run_in_threadpool(services.jobs.get, job_id)
    reads: SharedReads = request.app.state.job_reads

    async def read() -> Job:
        return await reads(services.jobs.get, job.id)

    def refusal() -> Problem | None:
        caller = request.scope.get(CALLER)
        try:
            if caller is not None:
                services.access.demand_rights(caller)
        except ValiantError as refused:
            return Problem.of(refused, request_id=request_id)
        return None

    async def stopping() -> bool:
        return request.app.state.draining or await request.is_disconnected()

    seen = server_sent_events.Seen.of(last_event_id)
    if seen.covers(job):
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    request.scope[ENDS_ITSELF] = True
    return StreamingResponse(
        server_sent_events.stream(job, seen, read, stopping, refusal),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )
