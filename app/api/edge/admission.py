"""Admission of a request to a route: its key, and what the route needs of it."""

import math
import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from starlette.datastructures import QueryParams
from starlette.types import Message, Receive, Scope, Send

from app.api.edge.query_parameters import demand_known, names_of
from app.base.errors import ValiantError
from app.base.project_context import PROJECT
from app.base.suggestions import compare_at_most
from app.schemas import keys
from app.services.access.passes import CredentialInvalid, ModelNotCovered, Pass, ScopeMissing

if TYPE_CHECKING:
    from app.services.access.access import Access
    from app.services.access.audit import Audit
    from app.store.access.audit import PendingEntry

CALLER = "valiant.caller"
"""Key of the scope under which an admitted request has its `Pass`."""
CHANGING = frozenset({keys.Scope.WRITE, keys.Scope.ADMIN, keys.Scope.OPERATOR})
BEARER = b"bearer "
MAX_TOKEN_BYTES = 16_384
"""Bytes of a key or token."""
COMPARISONS = 20_000
"""Names that those which a request has wrong are compared with, in all: each takes microseconds."""
PROJECT_HEADER = b"valiant-project"
MODEL = "model"
"""Name of the parameter in addresses that is a model."""


class CredentialMissing(ValiantError):
    code, status, title = "credential_missing", 401, "The request has no key"
    remedy = "Send a key in the header Authorization, as `Bearer vlt_…`."


class RightsEnded(Exception):
    """A response was cut since its key was revoked or has expired. Never seen by a client."""


ENDS_ITSELF = "valiant.ends_itself"
"""Key of the scope of a response that looks at its rights itself, and ends with the reason."""
LOOK_SECONDS = 1.0
"""Time between two looks at the rights of a request that lasts."""
COOKIE = "__Host-valiant"
"""Name of the console's cookie, which browsers send to the host alone that has set it, by TLS or on one machine."""
IN_COOKIE = re.compile(rf"(?:^|;\s*){COOKIE}=([^;\s]+)".encode())
OF_OURS = {b"same-origin"}
OF_NOBODY_ELSE = OF_OURS | {b"none", b""}
"""Values of Sec-Fetch-Site with which the cookie counts. A person who enters an address sends `none`; empty stands for
browsers without the header, which the cookie's SameSite=Strict restrains."""


class GuardedRoute(APIRoute):
    """A route that needs a scope, given by the router it belongs to; until then, that of administrators.

    It takes the query parameters that it declares and no other. One that anyone may call ignores others: it changes
    nothing, and probes and links carry what they like.
    """

    needs: frozenset[keys.Scope] = frozenset({keys.Scope.ADMIN})
    """One of these; none: anyone may call it."""

    @cached_property
    def query_names(self) -> frozenset[str]:
        return names_of(self.dependant)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_known(request: Request) -> Response:
            compare_at_most(COMPARISONS)
            self.demand_known(request.query_params)
            return await handle(request)

        return handle_known

    def demand_known(self, sent: QueryParams) -> None:
        """Raises InvalidRequest."""
        if self.needs:
            demand_known(sent, self.query_names)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.admit(scope)
        except (ScopeMissing, ModelNotCovered) as refused:
            if entry := self._begin_entry(scope):
                await run_in_threadpool(scope["app"].services.audit.complete, entry, outcome=refused.status)
            raise
        await self._handle_admitted(scope, *self.watched(scope, receive, send))

    async def _handle_admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Nobody has a response without its entry; a failure of ours has none, as it has changed nothing."""
        entry = self._begin_entry(scope)
        failure: Exception | None = None

        async def noted(message: Message) -> None:
            nonlocal failure
            try:
                if entry and message["type"] == "http.response.start":
                    await self._complete(entry, message, scope["app"].services.audit)
                await send(message)
            except Exception as error:
                failure = error
                raise

        try:
            await super().handle(scope, receive, noted)
        except RuntimeError as error:  # what the framework makes of a failure, as it takes the response for begun
            raise failure or error from None

    @staticmethod
    async def _complete(entry: "PendingEntry", start: Message, audit: "Audit") -> None:
        if start["status"] < HTTPStatus.INTERNAL_SERVER_ERROR:
            created = next((value.decode() for name, value in start["headers"] if name == b"location"), None)
            await run_in_threadpool(audit.complete, entry, outcome=start["status"], created=created)

    def watched(self, scope: Scope, receive: Receive, send: Send) -> tuple[Receive, Send]:
        """Both ends of an admitted request, which look at its rights again each second while bodies come and go.

        They raise what refuses the caller, or RightsEnded where a response has begun. One that states a change, which
        stands, is sent whole.
        """
        if CALLER not in scope:
            return receive, send
        access: Access = scope["app"].services.access
        looked_at, changing, begun = time.monotonic(), self._is_changing(scope), False

        def look() -> None:
            nonlocal looked_at
            if time.monotonic() - looked_at >= LOOK_SECONDS and ENDS_ITSELF not in scope:
                looked_at = math.inf  # the refusal is sent, if it is one
                access.demand_rights(scope[CALLER])
                looked_at = time.monotonic()

        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                look()
            return message

        async def sending(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and not changing:
                look()
            elif begun:
                try:
                    look()
                except ValiantError as refused:
                    raise RightsEnded(refused.code) from None
            begun = message["type"] == "http.response.body"
            await send(message)

        return receiving, sending

    def _is_changing(self, scope: Scope) -> bool:
        """True for a route that changes something; predictions and queries do not."""
        return scope["method"] != "GET" and not self.needs.isdisjoint(CHANGING)

    def _begin_entry(self, scope: Scope) -> "PendingEntry | None":
        if CALLER not in scope or not self._is_changing(scope):
            return None
        audit: Audit = scope["app"].services.audit
        return audit.begin(
            actor=scope[CALLER].actor,
            action=self.name,
            target=scope["path"],
            outcome=self.status_code or int(HTTPStatus.OK),
            request_id=scope["request_id"],
        )

    async def admit(self, scope: Scope) -> None:
        """Before anything of the body is read. Raises what `Access` raises, and CredentialMissing."""
        app = scope["app"]
        if not self.needs or not app.settings.needs_keys:
            return
        access: Access = app.services.access
        token = credential(scope["headers"], scope["method"])
        caller = access.known(token)
        if caller is None:
            caller = await run_in_threadpool(access.find, token)
        access.check(caller)
        scope[CALLER] = caller
        PROJECT.set(caller.project_id)  # each request has a context of its own
        self.allow(caller, scope["path_params"])

    def allow(self, caller: Pass, path: Mapping[str, str]) -> None:
        """Raises ScopeMissing, ModelNotCovered."""
        caller.allow(self.needs, path.get(MODEL))


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
    if len(sent) > 1 or not sent[0].lower().startswith(BEARER) or len(token) > MAX_TOKEN_BYTES or b" " in token:
        raise CredentialInvalid(headers={"WWW-Authenticate": 'Bearer realm="valiant", error="invalid_request"'})
    projects = [value for name, value in headers if name == PROJECT_HEADER]
    return b" ".join([token, *projects])


def _of_session(headers: Sequence[tuple[bytes, bytes]], method: str) -> bytes | None:
    """The key in the cookie of the console, unless another site had the browser send the request.

    One that changes something has to come from a page of ours. Links from elsewhere lead to the console, not to data.
    """
    sites = b",".join(value for name, value in headers if name == b"sec-fetch-site")
    if sites not in (OF_NOBODY_ELSE if method in {"GET", "HEAD"} else OF_OURS):
        return None
    cookies = [match[1] for name, value in headers if name == b"cookie" and (match := IN_COOKIE.search(value))]
    return cookies[0] if len(cookies) == 1 else None
