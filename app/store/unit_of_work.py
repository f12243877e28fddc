"""The unit of work: one transaction around one decision.

    with work() as w:
        w.jobs.add(...)
        w.after_commit(lambda: publish(id))

Leaving the block commits, an exception rolls back, and only then do the promises made
with `after_commit` run. No transaction is open while numpy runs.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import TracebackType
from typing import Literal, Self, TypeVar

from psycopg.errors import DiskFull
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import ORMExecuteState, Session, UOWTransaction

from app.base.project_context import PROJECT
from app.store.access.audit import PENDING, AuditRepository
from app.store.access.keys import KeyRepository
from app.store.access.projects import ProjectRepository
from app.store.access.quotas import QuotaRepository
from app.store.datasets.datasets import DatasetRepository
from app.store.datasets.files import FileRepository
from app.store.datasets.uploads import UploadRepository
from app.store.jobs.job_chunks import JobChunkRepository
from app.store.jobs.job_counts import Census
from app.store.jobs.job_parts import JobPartRepository
from app.store.jobs.jobs import JobRepository
from app.store.jobs.leases import LeaseRepository
from app.store.jobs.worker_registry import WorkerRepository
from app.store.models.aliases import AliasRepository
from app.store.models.cluster_names import ClusterNameRepository
from app.store.models.holdout_uses import UseRepository
from app.store.models.models import ModelRepository
from app.store.models.training_rows import TrainingRowRepository
from app.store.monitoring.alarms import AlarmRepository
from app.store.monitoring.monitors import MonitorRepository
from app.store.monitoring.version_references import VersionReferenceRepository
from app.store.preferences.preferences import PreferenceRepository
from app.store.reviews.reviews import ReviewRepository
from app.store.sessions.sessions import SessionRepository

T = TypeVar("T")
Role = Literal["valiant_app", "valiant_queue"]
"""Roles of the database: whoever has logged in, superuser or owner, is one of them from here on, and no policy lets it
pass."""
QUEUE: Role = "valiant_queue"
CHANGED = text("select pg_current_xact_id_if_assigned() is not null")
"""False of a transaction whose statements have found no row to change."""
ENTER = text("select set_config('role', :role, true), set_config('valiant.project', :project, true)")


class WritingSession(Session):
    """A session that knows whether it has changed rows."""

    has_written = False


@event.listens_for(WritingSession, "do_orm_execute")
def _note_statement(state: ORMExecuteState) -> None:
    if state.is_insert or state.is_update or state.is_delete:
        state.session.has_written = True  # type: ignore[attr-defined]  # it is a `WritingSession`


@event.listens_for(WritingSession, "after_flush")
def _note_rows(session: WritingSession, _: UOWTransaction) -> None:
    session.has_written = session.has_written or bool(session.new or session.dirty or session.deleted)


class Work:
    """One open transaction and the repositories that share it."""

    def __init__(self, engine: Engine, role: Role = "valiant_app") -> None:
        self._role = role
        self.session = WritingSession(engine, expire_on_commit=False)
        self.datasets = DatasetRepository(self.session)
        self.files = FileRepository(self.session)
        self.jobs = JobRepository(self.session)
        self.leases = LeaseRepository(self.session)
        self.job_chunks = JobChunkRepository(self.session)
        self.job_parts = JobPartRepository(self.session)
        self.keys = KeyRepository(self.session)
        self.models = ModelRepository(self.session)
        self.aliases = AliasRepository(self.session, self.models)
        self.audit = AuditRepository(self.session)
        self.cluster_names = ClusterNameRepository(self.session, self.models)
        self.preferences = PreferenceRepository(self.session)
        self.projects = ProjectRepository(self.session)
        self.quotas = QuotaRepository(self.session)
        self.reviews = ReviewRepository(self.session)
        self.sessions = SessionRepository(self.session)
        self.training_rows = TrainingRowRepository(self.session)
        self.alarms = AlarmRepository(self.session)
        self.monitors = MonitorRepository(self.session)
        self.version_references = VersionReferenceRepository(self.session)
        self.uploads = UploadRepository(self.session)
        self.uses = UseRepository(self.session)
        self.workers = WorkerRepository(self.session)
        self.census = Census(self.session)
        self._afterwards: list[Callable[[], object]] = []

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A failure within undoes what was done within, and nothing else of the transaction."""
        with self.session.begin_nested():
            yield

    def after_commit(self, action: Callable[[], object]) -> None:
        self._afterwards.append(action)

    def __enter__(self) -> Self:
        """Until the end of the transaction, and so behind a pooler too, Postgres shows the rows of one project."""
        try:
            self._enter(self._role)
        except BaseException:
            self.session.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        with self.session:
            if kind is None:
                self._commit()
        if kind is None:
            for action in self._afterwards:
                action()

    def _enter(self, role: Role) -> None:
        project = "" if role == QUEUE else str(PROJECT.get())
        self.session.execute(ENTER, {"role": role, "project": project})

    def _commit(self) -> None:
        """With the audit entry of the request, if this is its change: both stand, or neither does."""
        self.session.flush()
        entry = PENDING.get()
        if entry is None or entry.stored or not (self.session.has_written and self.session.scalar(CHANGED)):
            self.session.commit()
            return
        if self._role == QUEUE:  # the log is of one project
            self._enter("valiant_app")
        self.audit.add(entry)
        entry.uncertain = True
        self.session.commit()
        entry.stored, entry.uncertain = True, False


class WorkFactory:
    """`work()` opens a unit of work; `work.retry(f)` runs a whole one again when the database blinked."""

    def __init__(self, engine: Engine, role: Role = "valiant_app") -> None:
        self.engine, self._role = engine, role

    @property
    def across_projects(self) -> "WorkFactory":
        """For the queue of jobs, keys, and what is swept: no project's policy hides a row of those tables."""
        return WorkFactory(self.engine, QUEUE)

    def __call__(self) -> Work:
        return Work(self.engine, self._role)

    def chunks(self, read: Callable[[Work, int], bytes | None]) -> Iterator[bytes]:
        """`read(w, 0)`, `read(w, 1)` and so on until there is none; one transaction for each."""
        for seq in count():
            with self() as w:
                chunk = read(w, seq)
            if chunk is None:
                return
            yield chunk

    def retry(self, decision: Callable[[Work], T], *, seconds: float = 30.0, until_room: bool = False) -> T:
        """Run `decision` in a unit of work, again after each lost connection, for up to `seconds`.

        until_room: again, too, while the disk of the database is full.

        The decision must be safe to repeat: the commit of a lost connection may have happened.
        """
        pause, end = 0.05, time.monotonic() + seconds
        while True:
            try:
                with self() as w:
                    return decision(w)
            except DBAPIError as error:
                if not (_transient(error) or (until_room and _full(error))) or time.monotonic() + pause > end:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 2.0)


def _transient(error: DBAPIError) -> bool:
    return error.connection_invalidated or (isinstance(error, OperationalError | InterfaceError) and not _full(error))


def _full(error: DBAPIError) -> bool:
    return isinstance(error.orig, DiskFull)
