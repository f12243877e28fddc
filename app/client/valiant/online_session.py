"""Online sessions: rounds that are played once each, and the model that is published from them."""

from typing import Any

from . import frames
from .model_version import Version
from .operation import M, operation
from .record import Record
from .steps import Steps


class OnlineSession(Record[M]):
    """An online session as it was when it was read."""

    id: str
    name: str | None
    created_at: str
    updated_at: str
    revision: int
    learner: str
    target: str
    labels: list[Any] | None
    counts: dict[str, Any]
    spec: dict[str, Any] | None
    theorem: str | None
    curve: dict[str, Any] | None
    open_rounds: list[Any] | None
    summary: dict[str, Any] | None

    def __repr__(self) -> str:
        return f"<OnlineSession {self.name or self.id}: {self.learner}, revision {self.revision}>"

    @operation
    def play(self, /, rows: Any, revision: int | None = None, **body: Any) -> Steps[dict[str, Any]]:
        """Play rounds in order, exactly once also when the connection is lost: the predictions before each label."""
        whole = {**frames.rows_of(rows), "revision": revision, **body}
        response: dict[str, Any] = yield from self._json("POST", "sessions", self.id, "rounds", body=whole)
        return response

    @operation
    def refresh(self) -> Steps["OnlineSession[M]"]:
        """Read the session again, into this object."""
        self.fields = yield from self._json("GET", "sessions", self.id)
        return self

    @operation
    def publish(self, /, model: str, **body: Any) -> Steps[Version[M]]:
        """Make a version of a model from a hypothesis of the session."""
        made = yield from self._json("POST", "sessions", self.id, "publish", body={"model": model, **body})
        return Version(self.driver, made["version"])

    @operation
    def delete(self) -> Steps[None]:
        """Delete the session; versions that were published from it stay."""
        yield from self._send("DELETE", "sessions", self.id)
