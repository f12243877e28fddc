"""Keys of the API, found by the digest of what a caller sends."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from app.base.errors import ValiantError
from app.schemas.keys import ApiKey, KeyPage, Scope
from app.store.access.access_tables import KeyRow
from app.store.base.database_clock import time_of
from app.store.base.paging import id_in
from app.store.base.project_table import ProjectRow

MAX_TRANSACTION = timedelta(minutes=2)
"""Longer than any transaction: what changed since a read shows in the next one, even if it was committed late."""


class KeyNotFound(ValiantError):
    code, status, title = "key_not_found", 404, "No such key"


class StoredKey(NamedTuple):
    """A key, and the project that it reaches."""

    key: ApiKey
    project_id: UUID


class KeyRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(self, stored: StoredKey, digest: bytes) -> None:
        key = stored.key
        row = KeyRow(
            id=key.id,
            project_id=stored.project_id,
            name=key.name,
            prefix=key.prefix,
            digest=digest,
            scopes=sorted(key.scopes),
            models=key.models,
            created_by=key.created_by,
            created_at=key.created_at,
            expires_at=key.expires_at,
        )
        self.session.add(row)
        self.session.flush()

    def get(self, project_id: UUID, key_id: UUID) -> ApiKey:
        """Raises KeyNotFound."""
        return self._key(self._row(project_id, key_id))

    def page(self, project_id: UUID, limit: int, cursor: str | None) -> KeyPage:
        """Newest first; the cursor is the last id of the page before."""
        conditions = [KeyRow.project_id == project_id]
        if cursor is not None:
            conditions.append(KeyRow.id < id_in(cursor))
        rows = self.session.scalars(select(KeyRow).where(*conditions).order_by(KeyRow.id.desc()).limit(limit + 1)).all()
        items = [self._key(row) for row in rows[:limit]]
        return KeyPage(items=items, next_cursor=str(items[-1].id) if len(rows) > limit else None)

    def revoke(self, project_id: UUID, key_id: UUID) -> None:
        """The first time counts. Raises KeyNotFound."""
        row = self._row(project_id, key_id, lock=True)
        if row.revoked_at is None:
            row.revoked_at = row.changed_at = self.now()

    def shorten(self, project_id: UUID, key_id: UUID, seconds: int) -> ApiKey:
        """The key, which expires after so many seconds at the latest. Raises KeyNotFound."""
        row, now = self._row(project_id, key_id, lock=True), self.now()
        row.expires_at, row.changed_at = min(row.expires_at, now + timedelta(seconds=seconds)), now
        return self._key(row)

    def find(self, digest: bytes) -> StoredKey | None:
        row = self.session.scalars(select(KeyRow).where(KeyRow.digest == digest)).one_or_none()
        return None if row is None else StoredKey(self._key(row), row.project_id)

    def changed(self, since: datetime | None) -> Sequence[tuple[ApiKey, bytes]]:
        """Keys that have changed since a time, and some that changed shortly before, with digests; None: all."""
        changed = [] if since is None else [KeyRow.changed_at > since - MAX_TRANSACTION]
        return [(self._key(row), row.digest) for row in self.session.scalars(select(KeyRow).where(*changed))]

    def used(self, ids: Collection[UUID]) -> None:
        noted = update(KeyRow).where(KeyRow.id.in_(ids)).values(last_used_at=func.clock_timestamp())
        self.session.execute(noted, execution_options={"synchronize_session": False})

    def is_bound_by_policies(self) -> bool:
        """False if a role of the service passes the policies that keep projects apart."""
        passes = text("select bool_or(rolsuper or rolbypassrls) from pg_roles where rolname = any(:roles)")
        return not self.session.scalar(passes, {"roles": ["valiant_app", "valiant_queue"]})

    def now(self) -> datetime:
        """By the clock of the database, which all processes share."""
        return time_of(self.session)

    def _row(self, project_id: UUID, key_id: UUID, *, lock: bool = False) -> KeyRow:
        query = select(KeyRow).where(KeyRow.project_id == project_id, KeyRow.id == key_id)
        row = self.session.scalars(query.with_for_update() if lock else query).one_or_none()
        if row is None:
            raise KeyNotFound
        return row

    def _key(self, row: KeyRow) -> ApiKey:
        project = self.session.get_one(ProjectRow, row.project_id)
        return ApiKey(
            id=row.id,
            name=row.name,
            prefix=row.prefix,
            project=project.name,
            scopes=[Scope(scope) for scope in row.scopes],
            models=row.models,
            created_by=row.created_by,
            created_at=row.created_at,
            expires_at=row.expires_at,
            revoked_at=row.revoked_at,
            last_used_at=row.last_used_at,
        )
