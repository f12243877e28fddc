"""Keys of the service and projects, for who may manage them."""

from collections.abc import Sequence
from typing import Any

from .operation import M, operation
from .record import Record, items
from .steps import Steps


class ApiKey(Record[M]):
    """A key. Its `secret` is there only when it was just created."""

    id: str
    name: str
    prefix: str
    project: str
    scopes: list[str]
    models: list[str] | None
    created_by: str | None
    created_at: str
    expires_at: str
    revoked_at: str | None
    last_used_at: str | None
    secret: str | None

    def __repr__(self) -> str:
        return f"<ApiKey {self.prefix}… {self.name}>"

    @operation
    def revoke(self) -> Steps[None]:
        """End the key: within two seconds it is accepted nowhere."""
        yield from self._send("DELETE", "keys", self.id)

    @operation
    def rotate(self, grace_seconds: int | None = None) -> Steps["ApiKey[M]"]:
        """A new key that may do the same; the old one works for `grace_seconds` more. Not sent again if it is lost."""
        body = {} if grace_seconds is None else {"grace_seconds": grace_seconds}
        made = yield from self._json("POST", "keys", f"{self.id}:rotate", body=body, repeatable=False)
        return ApiKey(self.driver, made)


class AccessControl(Record[M]):
    """Management of keys and projects."""

    @operation
    def me(self) -> Steps[dict[str, Any]]:
        """The key that is sent, its project, and what it may do."""
        record: dict[str, Any] = yield from self._json("GET", "me")
        return record

    @operation
    def keys(self, limit: int | None = None) -> Steps[list[ApiKey[M]]]:
        """Keys of the project, newest first."""
        return [ApiKey(self.driver, each) for each in (yield from items(self.driver, "keys", limit=limit))]

    @operation
    def key(self, key_id: str) -> Steps[ApiKey[M]]:
        """A key by its id."""
        return ApiKey(self.driver, (yield from self._json("GET", "keys", key_id)))

    @operation
    def create_key(self, /, name: str, role: str | None = None, **spec: Any) -> Steps[ApiKey[M]]:
        """Create a key with a role, or with `scopes`; its `secret` is shown this once. Not sent again if it is lost."""
        body = {"name": name, **({} if role is None else {"role": role}), **spec}
        return ApiKey(self.driver, (yield from self._json("POST", "keys", body=body, repeatable=False)))

    @operation
    def audit(self, limit: int | None = None) -> Steps[list[dict[str, Any]]]:
        """Requests that changed something, or were refused to, newest first."""
        return (yield from items(self.driver, "audit", limit=limit))

    @operation
    def projects(self, limit: int | None = None) -> Steps[list[dict[str, Any]]]:
        """Projects of the service, newest first."""
        return (yield from items(self.driver, "projects", limit=limit))

    @operation
    def create_project(
        self, /, name: str, *, file_formats: Sequence[str] = (), **quotas: float | None
    ) -> Steps[dict[str, Any]]:
        """Create a project; `create_key` with `project` makes a key for it. Without quotas it has the standard ones.

        file_formats: formats of model files that it may import besides the standard ones.
        """
        body = {"name": name, "file_formats": list(file_formats), **({"quotas": quotas} if quotas else {})}
        made: dict[str, Any] = yield from self._json("POST", "projects", body=body)
        return made

    @operation
    def change_project(
        self, /, name: str, *, file_formats: Sequence[str] | None = None, **quotas: float | None
    ) -> Steps[dict[str, Any]]:
        """Change quotas of a project, of which None takes one away, or formats of files; what is left out stays."""
        body = {"quotas": quotas, **({} if file_formats is None else {"file_formats": list(file_formats)})}
        made: dict[str, Any] = yield from self._json("PATCH", "projects", name, body=body)
        return made

    @operation
    def usage(self) -> Steps[dict[str, Any]]:
        """The quotas of the project, and what it uses of them."""
        usage: dict[str, Any] = yield from self._json("GET", "usage")
        return usage
