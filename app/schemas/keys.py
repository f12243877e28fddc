"""Keys of the API on the wire: their scopes, and their ends."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, StringConstraints, model_validator

from app.base.wire import Body, Wire

Role = Literal["caller", "viewer", "editor", "admin", "operator"]
MOST_DAYS, DAYS = 365, 90
MOST_GRACE_SECONDS, GRACE_SECONDS = 604_800, 86_400
ModelPattern = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_*-]{1,100}$")]
ProjectName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,100}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,100}$")]
MODELS = (
    "Patterns of the models that the key may use, in which `*` stands for any characters, such as `fraud-*`. Such a "
    "key reaches only routes of a model. Null: all models."
)


class Scope(StrEnum):
    """A right that a key gives and a request needs."""

    PREDICT = "predict"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    OPERATOR = "operator"


ROLES: dict[Role, frozenset[Scope]] = {
    "caller": frozenset({Scope.PREDICT}),
    "viewer": frozenset({Scope.READ}),
    "editor": frozenset({Scope.READ, Scope.PREDICT, Scope.WRITE}),
    "admin": frozenset(Scope) - {Scope.OPERATOR},
    "operator": frozenset(Scope),
}


class KeySpec(Body):
    """A key to be created: a role, or scopes."""

    name: Name = Field(description="Name for people, such as that of the program that uses the key.")
    role: Role | None = Field(
        None,
        description="Scopes by a name: caller predicts; viewer reads; editor reads, predicts and writes; admin also "
        "manages keys; operator also manages projects, and the creating key must be one. Null: `scopes` lists them.",
    )
    scopes: list[Scope] | None = Field(
        None, min_length=1, max_length=len(Scope), description="Scopes of the key; null: those of its role."
    )
    project: ProjectName | None = Field(
        None,
        description="Name of the project that the key reaches; null: that of the creating key, which must be an "
        "operator's for another one.",
    )
    models: list[ModelPattern] | None = Field(None, min_length=1, max_length=100, description=MODELS)
    expires_in_days: int = Field(DAYS, ge=1, le=MOST_DAYS, description="Days until the key expires.")

    @model_validator(mode="after")
    def _either(self) -> Self:
        if (self.role is None) == (self.scopes is None):
            raise ValueError("Give either role or scopes.")
        return self

    def granted(self) -> frozenset[Scope]:
        if self.scopes is not None:
            return frozenset(self.scopes)
        assert self.role is not None  # noqa: S101  validated
        return ROLES[self.role]


class SignIn(Body):
    """A key that a browser will send."""

    key: str = Field(pattern=r"^[!#-+\--:<-~]{1,4096}$", description="The key; no character of it ends a cookie.")


class KeyRotation(Body):
    """Replacement of a key by a new one."""

    grace_seconds: int = Field(
        GRACE_SECONDS, ge=0, le=MOST_GRACE_SECONDS, description="Seconds for which the old key still works."
    )


class ApiKey(Wire):
    """A key of the API, without the key itself."""

    id: UUID = Field(description="Id of the key.")
    name: str = Field(description="Name for people.")
    prefix: str = Field(description="First characters of the key, by which one that was found is known again.")
    project: str = Field(description="Name of the project that the key reaches.")
    scopes: list[str] = Field(description="Scopes of the key.")
    models: list[str] | None = Field(None, description=MODELS)
    created_by: str | None = Field(
        None, description="Id of the key, or subject of the token, that created it; null: the command line."
    )
    created_at: datetime = Field(description="Time of its creation, in UTC.")
    expires_at: datetime = Field(description="Time from which on it is refused, in UTC.")
    revoked_at: datetime | None = Field(None, description="Time at which it was revoked, in UTC; null: it was not.")
    last_used_at: datetime | None = Field(
        None, description="Time of its last use, in UTC, to about a minute; null: it was never used."
    )


class CreatedKey(ApiKey):
    """A new key. Its secret is shown this once: what the service stores does not give it back."""

    secret: str = Field(description="The key: send it as `Authorization: Bearer …`.")


class KeyPage(Wire):
    """Page of a list of keys, newest first."""

    items: list[ApiKey] = Field(description="Keys of the project of the caller, revoked and expired ones too.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")


class Caller(Wire):
    """The caller, as the service knows it by its key."""

    key: UUID | None = Field(None, description="Id of the caller's key; null: it has a token, or needs no key.")
    name: str | None = Field(
        None, description="Name of the caller's key, or subject of its token; null: the service needs no keys."
    )
    project: str = Field(description="Name of the project that the caller reaches.")
    scopes: list[str] = Field(description="Scopes of the caller.")
    models: list[str] | None = Field(None, description=MODELS)
    expires_at: datetime | None = Field(None, description="Time from which on the key is refused, in UTC; null: never.")
