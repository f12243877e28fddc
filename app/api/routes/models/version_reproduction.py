"""Making a stored version again from its receipt."""

from typing import Annotated

from fastapi import Query, Request, Response, status

from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import IdempotencyKey, ModelPath, RequestIdDep, ServicesDep, VersionPath
from app.api.routes.jobs.job_kinds import ACCEPTED, point_to
from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import JobName
from app.ml.kinds.job import NAME
from app.schemas.jobs import Job

router = Router(needs=READ_WRITE, prefix="/v1/models", tags=["models"])


@router.post("/{model}/versions/{version}/reproduce", status_code=status.HTTP_202_ACCEPTED, responses=ACCEPTED)
def reproduce_model_version(  # noqa: PLR0917  FastAPI passes them by name
    model: ModelPath,
    version: VersionPath,
    services: ServicesDep,
    request_id: RequestIdDep,
    request: Request,
    response: Response,
    name: Annotated[JobName | None, Query(description=NAME)] = None,
    idempotency_key: IdempotencyKey = None,
) -> Job:
    """Make the version again from its receipt, in a job that succeeds only if the bytes are the same.

    The job that made it runs again, on the same data and versions. Where the bytes differ its error `not_reproduced`
    names every difference with its place: releases of libraries, other fields, arrays and by how much. If the dataset
    was deleted, another with the digest in the receipt takes its place: upload the same file again.
    """
    again = services.reproduction.request(model, version).model_copy(update={"name": name})
    traceparent: str | None = request.scope["traceparent"]
    try:
        job, _ = services.submission.submit(
            again, idempotency_key=idempotency_key, request_id=request_id, traceparent=traceparent
        )
    except InvalidRequest as error:
        raise InvalidRequest(error.detail, faults=[*map(_of_address, error.faults)]) from None
    point_to(job, request, response)
    return job


def _of_address(fault: Fault) -> Fault:
    """The name is a parameter of the address."""
    return fault._replace(pointer="/query/name") if fault.pointer == "/name" else fault
