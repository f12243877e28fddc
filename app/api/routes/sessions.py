"""Online sessions: opened, played round by round, published as a model version."""

import sys
from typing import Annotated
from uuid import UUID

from fastapi import Header, Path, Response, status

from app.api.edge.openapi import declare
from app.api.edge.router import READ_WRITE, Router
from app.api.edge.strict_route import StrictRoute
from app.api.params.common import PAGE, Cursor, IdempotencyKey, Limit, ServicesDep
from app.schemas.sessions import (
    Publication,
    PublishRequest,
    RoundsRequest,
    RoundsResult,
    Session,
    SessionDetail,
    SessionPage,
    SessionSpec,
)


class _RowsRoute(StrictRoute):
    most = sys.maxsize


router = Router(needs=READ_WRITE, prefix="/v1/sessions", tags=["sessions"], route_class=_RowsRoute)
LOCATION = {"Location": "Where it is described."}
SessionPath = Annotated[UUID, Path(description="The session's id.")]
RoundsKey = Annotated[
    str | None,
    Header(
        pattern=r"^[\x21-\x7e]{1,255}$",
        description="Rounds that are sent again with the same key and body are not learned again. A session remembers "
        "the keys of its last 256 requests, and returns the response of the last one.",
    ),
]


@router.post("", status_code=status.HTTP_201_CREATED, responses=declare(201, LOCATION))
def create_session(
    body: SessionSpec, services: ServicesDep, response: Response, idempotency_key: IdempotencyKey = None
) -> Session:
    """Open an online session: a learner, the inputs of its rows, and the two labels, or numbers."""
    made = services.sessions.open(body, key=idempotency_key)
    response.headers["Location"] = f"/v1/sessions/{made.id}"
    return made


@router.get("")
def list_sessions(services: ServicesDep, limit: Limit = PAGE, cursor: Cursor = None) -> SessionPage:
    """Online sessions, newest first."""
    return services.sessions.page(limit, cursor)


@router.get("/{session_id}")
def get_session(session_id: SessionPath, services: ServicesDep) -> SessionDetail:
    """A session: mistakes, loss and regret beside the theorem's bound, along the rounds; and its present hypothesis."""
    return services.sessions.get(session_id)


@router.delete("/{session_id}", status_code=status.HTTP_204_NO_CONTENT)
def delete_session(session_id: SessionPath, services: ServicesDep) -> None:
    """Delete a session. Model versions that were published from it stay."""
    services.sessions.delete(session_id)


@router.post("/{session_id}/rounds")
def play_rounds(
    session_id: SessionPath, body: RoundsRequest, services: ServicesDep, idempotency_key: RoundsKey = None
) -> RoundsResult:
    """Predict rows in their order, and learn each label before the next row is predicted.

    A row without a label, or with null, is only predicted; its label is sent later, by the number of its round. The
    request is learned exactly once: with `revision`, only on this revision, and sent again it returns the same
    response; with an Idempotency-Key, on any revision, and sent again with the same key it is not learned again.
    Bad rows or labels refuse the whole request.
    """
    return services.sessions.play(session_id, body, key=idempotency_key)


@router.post("/{session_id}/publish", status_code=status.HTTP_201_CREATED, responses=declare(201, LOCATION))
def publish_session(
    session_id: SessionPath, body: PublishRequest, services: ServicesDep, response: Response
) -> Publication:
    """Make a model version of a hypothesis of the session, with a bound on its error.

    The version predicts as every other. The same hypothesis after the same rounds is published once: sent again, the
    request returns the same version.
    """
    made, new = services.sessions.publish(session_id, body)
    response.headers["Location"] = f"/v1/models/{made.version.model}/versions/{made.version.version}"
    response.status_code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
    return made
