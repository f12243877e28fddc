"""Keys of the API, and who the service takes a caller for."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Request, Response, status

from app.api.edge.admission import CALLER
from app.api.edge.openapi import declare
from app.api.edge.router import ADMIN, KNOWN, Router
from app.api.params.common import PAGE, Cursor, Limit, ServicesDep
from app.schemas.keys import ApiKey, Caller, CreatedKey, KeyPage, KeyRotation, KeySpec
from app.services.access.passes import Pass

router = Router(needs=ADMIN, prefix="/v1/keys", tags=["keys"])
callers = Router(needs=KNOWN, tags=["keys"])
KeyPath = Annotated[UUID, Path(description="Id of the key.")]
CREATED = declare(201, {"Location": "Where the key is described."})


async def _caller(request: Request, services: ServicesDep) -> Pass:
    caller: Pass = request.scope.get(CALLER, services.access.anyone)
    return caller


CallerDep = Annotated[Pass, Depends(_caller)]


@router.post("", status_code=status.HTTP_201_CREATED, responses=CREATED)
def create_key(body: KeySpec, services: ServicesDep, caller: CallerDep, response: Response) -> CreatedKey:
    """Create a key. Its `secret` is in this response alone: what is stored does not give it back.

    It may do nothing that the creating key may not do.
    """
    return _shown(services.keys.create(body, caller), response)


@router.get("")
def list_keys(services: ServicesDep, caller: CallerDep, limit: Limit = PAGE, cursor: Cursor = None) -> KeyPage:
    """List the keys of the project, newest first, revoked and expired ones too."""
    return services.keys.page(limit, cursor, caller)


@router.get("/{key_id}")
def get_key(key_id: KeyPath, services: ServicesDep, caller: CallerDep) -> ApiKey:
    """A key, without its secret: its scopes, its expiry, and its last use."""
    return services.keys.get(key_id, caller)


@router.delete("/{key_id}", status_code=status.HTTP_204_NO_CONTENT)
def revoke_key(key_id: KeyPath, services: ServicesDep, caller: CallerDep) -> None:
    """Revoke a key: within two seconds no process accepts it any more. Once more does no harm."""
    services.keys.revoke(key_id, caller)


@router.post("/{key_id}:rotate", status_code=status.HTTP_201_CREATED, responses=CREATED)
def rotate_key(
    key_id: KeyPath, body: KeyRotation, services: ServicesDep, caller: CallerDep, response: Response
) -> CreatedKey:
    """Replace a key by a new one that may do the same; the old one works for `grace_seconds` more."""
    return _shown(services.keys.rotate(key_id, body, caller), response)


@callers.get("/v1/me")
async def get_caller(caller: CallerDep) -> Caller:
    """The key of the caller, and what it may do."""
    return caller.described()


def _shown(key: CreatedKey, response: Response) -> CreatedKey:
    response.headers["Location"] = f"/v1/keys/{key.id}"
    response.headers["Cache-Control"] = "no-store"
    return key


router.take(callers)
