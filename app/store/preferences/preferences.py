"""Preferences: candidates, and the comparisons of a person, each appended exactly once."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session as Connection
from sqlalchemy.orm import undefer

from app.base.errors import PreferenceNotFound
from app.store.base.database_clock import time_of
from app.store.base.paging import id_in
from app.store.preferences.preference_tables import PreferenceRow


class StoredPreference(NamedTuple):
    id: UUID
    name: str | None
    created_at: datetime
    updated_at: datetime
    goals: Sequence[Mapping[str, Any]]
    l2: float
    optimise: Mapping[str, Any] | None
    candidates: Sequence[tuple[int, Mapping[str, Any]]]
    """Each with the revision that added it."""
    comparisons: Sequence[tuple[int, Mapping[str, Any]]]
    revision: int

    def at(self, revision: int) -> "StoredPreference":
        """The same, up to this revision."""
        return self._replace(
            revision=revision,
            candidates=[candidate for candidate in self.candidates if candidate[0] <= revision],
            comparisons=[comparison for comparison in self.comparisons if comparison[0] <= revision],
        )


class KeptRequests(NamedTuple):
    """Traces of the last requests."""

    keys: Mapping[str, Sequence[Any]]
    """By Idempotency-Key: the revision it made, and the hash of its body."""
    last_hash: str | None


class PreferenceRepository:
    def __init__(self, session: Connection) -> None:
        self.session = session

    def add(
        self,
        preference_id: UUID,
        *,
        name: str | None,
        goals: Sequence[Mapping[str, Any]],
        l2: float,
        optimise: Mapping[str, Any] | None,
        candidates: Sequence[Mapping[str, Any]],
        request_hash: str,
        key: str | None,
    ) -> StoredPreference:
        """key: its Idempotency-Key."""
        row = PreferenceRow(
            id=preference_id, name=name, goals=[*goals], l2=l2, optimise=None if optimise is None else dict(optimise),
            candidates=[[0, candidate] for candidate in candidates], request_hash=request_hash, idempotency_key=key,
        )  # fmt: skip
        self.session.add(row)
        self.session.flush()
        self.session.refresh(row)
        return _stored(row)

    def lock_key(self, key: str) -> None:
        """One request with this key at a time, until the end of the transaction."""
        self.session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"preference {key}", 0))))

    def opened(self, key: str) -> tuple[UUID, str] | None:
        """Id and hash of the request of the preferences that were opened with this key."""
        row = self.session.execute(
            select(PreferenceRow.id, PreferenceRow.request_hash).where(PreferenceRow.idempotency_key == key)
        ).one_or_none()
        return None if row is None else (row[0], row[1])

    def get(self, preference_id: UUID) -> StoredPreference:
        """Raises PreferenceNotFound."""
        return _stored(self._row(preference_id))

    def locked(self, preference_id: UUID) -> tuple[StoredPreference, KeptRequests]:
        """Against other writers, until the end of the transaction. Raises PreferenceNotFound."""
        row = self._row(preference_id, lock=True)
        return _stored(row), KeptRequests(row.keys, row.last_hash)

    def append(
        self,
        preference_id: UUID,
        candidates: Sequence[Mapping[str, Any]],
        comparisons: Sequence[Mapping[str, Any]],
        requests: KeptRequests,
    ) -> StoredPreference:
        """The next revision. The caller has locked it."""
        row = self._row(preference_id, lock=True)
        row.revision += 1
        row.candidates = [*row.candidates, *([row.revision, candidate] for candidate in candidates)]
        row.comparisons = [*row.comparisons, *([row.revision, comparison] for comparison in comparisons)]
        row.keys, row.last_hash = dict(requests.keys), requests.last_hash
        row.updated_at = time_of(self.session)
        self.session.flush()
        return _stored(row)

    def page(self, limit: int, cursor: str | None = None) -> tuple[list[StoredPreference], str | None]:
        """Newest first; the cursor is the last id of the page before."""
        query = select(PreferenceRow).order_by(PreferenceRow.id.desc()).limit(limit + 1)
        if cursor is not None:
            query = query.where(PreferenceRow.id < id_in(cursor))
        rows = self.session.scalars(query).all()
        return [_stored(row) for row in rows[:limit]], str(rows[limit - 1].id) if len(rows) > limit else None

    def delete(self, preference_id: UUID) -> None:
        """Raises PreferenceNotFound."""
        gone = self.session.execute(delete(PreferenceRow).where(PreferenceRow.id == preference_id))
        if not gone.rowcount:  # type: ignore[attr-defined] # the result of a DELETE is a CursorResult
            raise PreferenceNotFound

    def _row(self, preference_id: UUID, *, lock: bool = False) -> PreferenceRow:
        query = select(PreferenceRow).where(PreferenceRow.id == preference_id)
        if lock:
            request_columns = undefer(PreferenceRow.keys), undefer(PreferenceRow.last_hash)
            query = query.with_for_update().options(*request_columns)
        row = self.session.scalars(query).one_or_none()
        if row is None:
            raise PreferenceNotFound
        return row


def _stored(row: PreferenceRow) -> StoredPreference:
    return StoredPreference(
        row.id, row.name, row.created_at, row.updated_at, row.goals, row.l2, row.optimise,
        [(revision, candidate) for revision, candidate in row.candidates],
        [(revision, comparison) for revision, comparison in row.comparisons],
        row.revision,
    )  # fmt: skip
