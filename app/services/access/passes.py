"""The rights of a caller: one object for all requests with one key or token, and what it refuses."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.base.errors import ValiantError
from app.base.faults import Fault
from app.base.project_context import DEFAULT_PROJECT
from app.schemas.keys import ApiKey, Caller, Scope
from app.schemas.projects import DEFAULT_NAME

if TYPE_CHECKING:
    from uuid import UUID

    from app.services.access.identity_tokens import Identity
    from app.services.access.request_rates import Allowance
    from app.store.access.keys import StoredKey

ANY_SCOPE = frozenset(Scope)
PUBLIC = frozenset[Scope]()
MAX_MODEL_NAME_LENGTH = 100
"""Characters; a longer name is that of no model."""


class CredentialInvalid(ValiantError):
    code, status, title = "credential_invalid", 401, "The key is not valid"
    remedy = "See that the key is whole; if it was revoked, an administrator of the project creates another."


class CredentialExpired(ValiantError):
    code, status, title = "credential_expired", 401, "The key has expired"
    remedy = "An administrator of the project creates another, or rotates keys before they expire."


class ScopeMissing(ValiantError):
    code, status, title = "scope_missing", 403, "The key may not do this"
    remedy = "Use a key that has a scope named in errors."


class ModelNotCovered(ValiantError):
    """The same whether or not there is such a model."""

    code, status, title = "model_not_covered", 403, "The key is for other models"
    remedy = "Use a key whose patterns of models match, or one for all models: GET /v1/me shows what a key is for."


class ProjectNotCovered(ValiantError):
    """The same whether or not there is such a project."""

    code, status, title = "project_not_covered", 403, "The credential is for other projects"
    remedy = "Name a project of the credential in the header Valiant-Project, or none if it has one only."


class AuthUnavailable(ValiantError):
    code, status, title = "auth_unavailable", 503, "The key cannot be checked at present"
    remedy = "Send the request again after the time in Retry-After."

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail, headers={"Retry-After": "1"})


class Pass:
    """The rights of a caller: one object for all requests with one credential, so that a change reaches them all."""

    __slots__ = (
        "ahead",
        "expires",
        "identity",
        "key",
        "live",
        "models",
        "project",
        "project_id",
        "rate",
        "scopes",
        "used",
    )

    def __init__(self, rate: "Allowance", project_id: "UUID" = DEFAULT_PROJECT, project: str = DEFAULT_NAME) -> None:
        """The caller of a service that needs no key. rate: that of the project."""
        self.rate, self.project_id, self.project = rate, project_id, project
        self.key: ApiKey | None = None
        self.identity: Identity | None = None
        self.scopes: frozenset[str] = ANY_SCOPE
        self.models: Sequence[str] | None = None
        """Patterns; None: all."""
        self.live, self.used, self.expires = True, False, math.inf
        self.ahead = 0
        """Requests that may pass before the next check, which is most of what a key costs."""

    @classmethod
    def of_key(cls, stored: "StoredKey", rate: "Allowance") -> "Pass":
        key = stored.key
        made = cls(rate, stored.project_id, key.project)
        made.scopes = frozenset(key.scopes)
        made.models = key.models
        made.update(key)
        return made

    @classmethod
    def of_identity(cls, identity: "Identity", project_id: "UUID", rate: "Allowance") -> "Pass":
        made = cls(rate, project_id, identity.project)
        made.identity, made.scopes, made.expires = identity, identity.scopes, identity.expires
        return made

    def update(self, key: ApiKey) -> None:
        """Take over that the key is revoked, and its expiry."""
        self.key, self.live, self.expires = key, key.revoked_at is None, key.expires_at.timestamp()
        self.ahead = 0

    @property
    def actor(self) -> str | None:
        """The id of the key, or the subject of the token, with which a change is recorded."""
        if self.identity is not None:
            return self.identity.subject
        return None if self.key is None else str(self.key.id)

    def described(self) -> Caller:
        scopes = sorted(self.scopes)
        if self.identity is not None:
            until = datetime.fromtimestamp(self.expires, UTC)
            return Caller(name=self.identity.subject, project=self.project, scopes=scopes, expires_at=until)
        if self.key is None:
            return Caller(project=self.project, scopes=scopes)
        key = self.key
        return Caller(
            key=key.id,
            name=key.name,
            project=self.project,
            scopes=scopes,
            models=key.models,
            expires_at=key.expires_at,
        )

    def allow(self, needs: frozenset[Scope], model: str | None) -> None:
        """needs: of these one; model: that of the route, None: it has none. Raises ScopeMissing, ModelNotCovered."""
        if self.scopes.isdisjoint(needs):
            faults = [Fault("/header/Authorization", f"The scope {scope} is needed.") for scope in sorted(needs)]
            raise ScopeMissing(faults=faults)
        if self.models is not None and needs != ANY_SCOPE and not (model and is_covered(model, self.models)):
            raise ModelNotCovered


def is_covered(model: str, patterns: Sequence[str]) -> bool:
    """True if the name fits one of the patterns, in which each `*` stands for any characters."""
    return len(model) <= MAX_MODEL_NAME_LENGTH and any(_fits(model, pattern) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    """Segment by segment, each at the first place where it can be: linear in the name for each of them."""
    first, *middle = pattern.split("*")
    if not middle:
        return name == pattern
    last = middle.pop()
    start, stop = len(first), len(name) - len(last)
    if start > stop or not (name.startswith(first) and name.endswith(last)):
        return False
    for segment in middle:
        start = name.find(segment, start, stop)
        if start < 0:
            return False
        start += len(segment)
    return True


def refusal(kind: type[ValiantError]) -> ValiantError:
    """A refusal of a credential that was sent."""
    return kind(headers={"WWW-Authenticate": 'Bearer realm="valiant", error="invalid_token"'})
