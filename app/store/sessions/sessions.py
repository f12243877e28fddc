"""Online sessions: one row each, written by compare-and-set on its revision."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session as Connection

from app.ml.sessions.session_errors import SessionNotFound
from app.store.base.paging import id_in
from app.store.sessions.session_tables import SessionRow


class StoredSession(NamedTuple):
    """A session without its state."""

    id: UUID
    name: str | None
    created_at: Any
    updated_at: Any
    spec: Mapping[str, Any]
    revision: int
    tally: Mapping[str, Any]


class HeldSession(NamedTuple):
    """Parts of a session that a request with rounds needs."""

    spec: Mapping[str, Any]
    revision: int
    state: bytes
    keys: Mapping[str, Any]
    last_hash: str | None
    last_response: Mapping[str, Any] | None


class Advance(NamedTuple):
    """A session after a request."""

    state: bytes
    tally: Mapping[str, Any]
    keys: Mapping[str, Any]
    last_hash: str
    last_response: Mapping[str, Any]


class SessionRepository:
    def __init__(self, session: Connection) -> None:
        self.session = session

    def add(
        self,
        session_id: UUID,
        *,
        spec: Mapping[str, Any],
        tally: Mapping[str, Any],
        state: bytes,
        request_hash: str,
        key: str | None,
    ) -> StoredSession:
        """key: its Idempotency-Key."""
        row = SessionRow(
            id=session_id, name=spec["name"], spec=dict(spec), tally=dict(tally), state=state,
            request_hash=request_hash, idempotency_key=key,
        )  # fmt: skip
        self.session.add(row)
        self.session.flush()
        return self.get(session_id)

    def lock_key(self, key: str) -> None:
        """One request with this key at a time, until the end of the transaction."""
        self.session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"session {key}", 0))))

    def opened(self, key: str) -> tuple[UUID, str] | None:
        """Id and hash of the request of the session that was opened with this key."""
        row = self.session.execute(
            select(SessionRow.id, SessionRow.request_hash).where(SessionRow.idempotency_key == key)
        ).one_or_none()
        return None if row is None else (row[0], row[1])

    def get(self, session_id: UUID) -> StoredSession:
        """Raises SessionNotFound."""
        row = self.session.get(SessionRow, session_id)
        if row is None:
            raise SessionNotFound
        self.session.refresh(row, ["created_at", "updated_at", "revision"])
        return _stored(row)

    def held(self, session_id: UUID, *, locked: bool = False) -> HeldSession:
        """locked: against writers, until the end of the transaction. Raises SessionNotFound."""
        columns = (
            *(SessionRow.spec, SessionRow.revision, SessionRow.state),
            *(SessionRow.keys, SessionRow.last_hash, SessionRow.last_response),
        )
        query = select(*columns).where(SessionRow.id == session_id)
        row = self.session.execute(query.with_for_update() if locked else query).one_or_none()
        if row is None:
            raise SessionNotFound
        return HeldSession(*row)

    def advance(self, session_id: UUID, revision: int, to: Advance) -> bool:
        """The next revision, if it still has this one; else nothing changes."""
        changed = update(SessionRow).where(SessionRow.id == session_id, SessionRow.revision == revision)
        values = {
            name: value if isinstance(value, str | bytes) else dict(value) for name, value in to._asdict().items()
        }
        done = self.session.execute(
            changed.values(**values, revision=revision + 1, updated_at=func.clock_timestamp()),
            execution_options={"synchronize_session": False},
        )
        return bool(done.rowcount)  # type: ignore[attr-defined] # the result of an UPDATE is a CursorResult

    def page(self, limit: int, cursor: str | None = None) -> tuple[list[StoredSession], str | None]:
        """Newest first; the cursor is the last id of the page before."""
        query = select(SessionRow).order_by(SessionRow.id.desc()).limit(limit + 1)
        if cursor is not None:
            query = query.where(SessionRow.id < id_in(cursor))
        rows = self.session.scalars(query).all()
        return [_stored(row) for row in rows[:limit]], str(rows[limit - 1].id) if len(rows) > limit else None

    def delete(self, session_id: UUID) -> None:
        """Raises SessionNotFound."""
        gone = self.session.execute(delete(SessionRow).where(SessionRow.id == session_id))
        if not gone.rowcount:  # type: ignore[attr-defined] # as above
            raise SessionNotFound


def _stored(row: SessionRow) -> StoredSession:
    return StoredSession(row.id, row.name, row.created_at, row.updated_at, row.spec, row.revision, row.tally)
