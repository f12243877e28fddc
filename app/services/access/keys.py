"""Keys of the API: created, listed, rotated and revoked. A key is shown once, when it is created."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from uuid import UUID

from app.base.errors import ValiantError
from app.base.faults import Fault
from app.schemas.keys import ApiKey, CreatedKey, KeyPage, KeyRotation, KeySpec, Scope
from app.services.access.key_tokens import PREFIX_LENGTH, digest_of, new_token
from app.services.access.passes import Pass, ScopeMissing
from app.store.access.keys import StoredKey
from app.store.base.new_ids import uuid7
from app.store.unit_of_work import Work, WorkFactory


class KeyRevoked(ValiantError):
    code, status, title = "key_revoked", 409, "The key was revoked"
    remedy = "Create a new key."


class Keys:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work.across_projects

    def create(self, spec: KeySpec, by: Pass) -> CreatedKey:
        """A key of the caller's project, or of one that an operator names. Raises ScopeMissing, ProjectNotFound."""
        granted, own_project = spec.granted(), by.project
        _demand(granted if spec.project in {None, own_project} else {*granted, Scope.OPERATOR}, by)
        with self._work() as w:
            project = w.projects.get(spec.project or own_project)
            return _add(w, project.id, _described(spec, project.name, granted, by.actor))

    def create_first(self, spec: KeySpec, project: str) -> CreatedKey:
        """A key of a project, which is created if there is none of that name: by whoever has the database."""
        with self._work() as w:
            owner = w.projects.ensure(project)
            return _add(w, owner.id, _described(spec, project, spec.granted(), None))

    def get(self, key_id: UUID, by: Pass) -> ApiKey:
        """Raises KeyNotFound."""
        with self._work() as w:
            return w.keys.get(by.project_id, key_id)

    def page(self, limit: int, cursor: str | None, by: Pass) -> KeyPage:
        with self._work() as w:
            return w.keys.page(by.project_id, limit, cursor)

    def revoke(self, key_id: UUID, by: Pass) -> None:
        """Raises KeyNotFound."""
        with self._work() as w:
            w.keys.revoke(by.project_id, key_id)

    def rotate(self, key_id: UUID, rotation: KeyRotation, by: Pass) -> CreatedKey:
        """A new key that may do the same for as long; the old one expires.

        Raises KeyNotFound, KeyRevoked, ScopeMissing.
        """
        with self._work() as w:
            old = w.keys.get(by.project_id, key_id)
            _demand(old.scopes, by)
            if old.revoked_at is not None:
                raise KeyRevoked
            w.keys.shorten(by.project_id, key_id, rotation.grace_seconds)
            now = datetime.now(UTC)
            new = {"id": uuid7(), "created_by": by.actor, "created_at": now, "last_used_at": None}
            lasting = {"expires_at": now + (old.expires_at - old.created_at)}
            return _add(w, by.project_id, old.model_copy(update=new | lasting))


def _demand(granted: Collection[str], by: Pass) -> None:
    """Raises ScopeMissing: nobody gives more than they have."""
    if beyond := sorted({*granted} - by.scopes):
        faults = [Fault("/scopes", f"The creating key has no scope {scope} to give.") for scope in beyond]
        raise ScopeMissing(faults=faults)


def _described(spec: KeySpec, project: str, scopes: Collection[Scope], created_by: str | None) -> ApiKey:
    now = datetime.now(UTC)
    return ApiKey(
        id=uuid7(),
        name=spec.name,
        prefix="",
        project=project,
        scopes=sorted(scopes),
        models=spec.models,
        created_by=created_by,
        created_at=now,
        expires_at=now + timedelta(days=spec.expires_in_days),
    )


def _add(w: Work, project_id: UUID, described: ApiKey) -> CreatedKey:
    secret = new_token()
    key = described.model_copy(update={"prefix": secret[:PREFIX_LENGTH]})
    w.keys.add(StoredKey(key, project_id), digest_of(secret.encode()))
    w.audit.note_created(f"/v1/keys/{key.id}")
    return CreatedKey(**key.model_dump(), secret=secret)
