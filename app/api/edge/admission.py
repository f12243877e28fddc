"""Admission of a request to a route: its key, and what the route needs of it."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from starlette.types import Message, Receive, Scope, Send

from app.errors import ValiantError
from app.project_context import PROJECT
from app.schemas import keys
from app.services.passes import CredentialInvalid, ModelNotCovered, Pass, ScopeMissing

if TYPE_CHECKING:
    from app.services.access import Access

CALLER = "valiant.caller"
"""Key of the scope under which an admitted request has its `Pass`."""
CHANGING = frozenset({keys.Scope.WRITE, keys.Scope.ADMIN, keys.Scope.OPERATOR})
BEARER = b"bearer "
LONGEST = 16_384
"""Bytes of a key or token."""
PROJECT_HEADER = b"valiant-project"
MODEL = "model"
"""Name of the parameter in addresses that is a model."""


class CredentialMissing(ValiantError):
    code, status, title = "credential_missing", 401, "The request has no key"
    remedy = "Send a key in the header Authorization, as `Bearer vlt_…`."


COOKIE = "__Host-valiant"
"""Name of the console's cookie, which browsers send to the host alone that has set it, by TLS or on one machine."""
IN_COOKIE = re.compile(rf"(?:^|;\s*){COOKIE}=([^;\s]+)".encode())
SAME_ORIGIN = b"sec-fetch-site", b"same-origin"


class GuardedRoute(APIRoute):
    """A route that needs a scope, given by the router it belongs to; until then, that of administrators."""

    needs: frozenset[keys.Scope] = frozenset({keys.Scope.ADMIN})
    """One of these; none: anyone may call it."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.admit(scope)
        except (ScopeMissing, ModelNotCovered) as refused:
            await self._audit(scope, refused.status)
            raise

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                created = next((value.decode() for name, value in message["headers"] if name == b"location"), None)
                await self._audit(scope, message["status"], created)
            await send(message)

        await super().handle(scope, receive, noted if CALLER in scope and self._is_audited(scope) else send)

    async def _audit(self, scope: Scope, outcome: int, created: str | None = None) -> None:
        """Before the response is sent, so that nobody has one without its entry."""
        if self._is_audited(scope):
            await run_in_threadpool(
                scope["app"].services.audit.add,
                actor=scope[CALLER].actor,
                action=self.name,
                target=created or scope["path"],
                outcome=outcome,
                request_id=scope["request_id"],
            )

    def _is_audited(self, scope: Scope) -> bool:
        """True for a route that changes something; predictions and queries do not."""
        return scope["method"] != "GET" and not self.needs.isdisjoint(CHANGING)

    async def admit(self, scope: Scope) -> None:
        """Before anything of the body is read. Raises what `Access` raises, and CredentialMissing."""
        app = scope["app"]
        if not self.needs or not app.settings.needs_keys:
            return
        access: Access = app.services.access
        token = credential(scope["headers"], scope["method"])
        own = access.known(token)
        if own is None:
            own = await run_in_threadpool(access.find, token)
        access.check(own)
        scope[CALLER] = own
        PROJECT.set(own.project_id)  # each request has a context of its own
        self.allow(own, scope["path_params"])

    def allow(self, own: Pass, path: Mapping[str, str]) -> None:
        """Raises ScopeMissing, ModelNotCovered."""
        own.allow(self.needs, path.get(MODEL))


def credential(headers: Sequence[tuple[bytes, bytes]], method: str) -> bytes:
    """The key or token that was sent, and after a space the project that was named with it.

    Raises CredentialMissing, CredentialInvalid.
    """
    sent = [value for name, value in headers if name == b"authorization"]
    if not sent and (token := _of_session(headers, method)):
        return token
    if not sent:
        raise CredentialMissing(headers={"WWW-Authenticate": 'Bearer realm="valiant"'})
    token = sent[0][len(BEARER) :].strip()
    if len(sent) > 1 or not sent[0].lower().startswith(BEARER) or len(token) > LONGEST or b" " in token:
        raise CredentialInvalid(headers={"WWW-Authenticate": 'Bearer realm="valiant", error="invalid_request"'})
    projects = [value for name, value in headers if name == PROJECT_HEADER]
    return b" ".join([token, *projects])


def _of_session(headers: Sequence[tuple[bytes, bytes]], method: str) -> bytes | None:
    """The key in the cookie of the console; of a request that changes something only if a page of ours has sent it."""
    if method not in {"GET", "HEAD"} and SAME_ORIGIN not in headers:
        return None
    found = [match[1] for name, value in headers if name == b"cookie" and (match := IN_COOKIE.search(value))]
    return found[0] if len(found) == 1 else None
