"""Jobs: accepted, read, cancelled, announced again."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from app.base.errors import JobNotFound
from app.schemas.jobs import Job, JobPage, JobState
from app.store.base.database_clock import NOW, time_of
from app.store.base.paging import id_in, newest, page_conditions
from app.store.datasets.dataset_tables import DatasetRow
from app.store.jobs.job_descriptions import read_jobs
from app.store.jobs.job_records import Accepted, Kept, NewJob, pinned_of
from app.store.jobs.job_states import PLAIN, READY, cancel, record
from app.store.jobs.job_tables import JobRow

_QUEUE_LOCK = 0x7175657565  # "queue"


class JobRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    # accepting

    def hold_dataset(self, dataset_id: UUID) -> None:
        """Keep a dataset from being deleted until the end of the transaction; by then the job shows."""
        self.session.execute(
            select(DatasetRow.id).where(DatasetRow.id == dataset_id).with_for_update(key_share=True, read=True)
        )

    def lock_queue(self) -> None:
        """One submission at a time counts the queue and joins it, so the cap cannot be raced."""
        self.session.execute(select(func.pg_advisory_xact_lock(_QUEUE_LOCK)))

    def waiting(self) -> int:
        return self.session.scalars(select(func.count()).where(JobRow.state == JobState.QUEUED)).one()

    def kept(self, idempotency_key: str) -> Kept | None:
        columns = select(JobRow.request_hash, JobRow.first_response)
        row = self.session.execute(columns.where(JobRow.idempotency_key == idempotency_key)).one_or_none()
        return None if row is None else Kept(row[0], Job.model_validate(row[1]))

    def add(self, new: NewJob) -> Job:
        """Queued, and with its first response stored if it came with a key."""
        row = JobRow(**new._asdict(), state=JobState.QUEUED)
        row.published_at = time_of(self.session)
        self.session.add(row)
        self.session.flush()
        record(self.session, new.id, JobState.QUEUED, 0)
        job = self.get(new.id)
        if new.idempotency_key is not None:
            row.first_response = job.model_dump(mode="json")
            self.session.flush()
        return job

    # reading

    def find(self, job_id: UUID) -> Job | None:
        jobs = read_jobs(self.session, JobRow.id == job_id, order=(), limit=1, whole=True)
        return jobs[0] if jobs else None

    def get(self, job_id: UUID) -> Job:
        job = self.find(job_id)
        if job is None:
            raise JobNotFound
        return job

    def accepted(self, job_id: UUID) -> Accepted | None:
        """Its request, whatever became of it."""
        columns = select(JobRow.kind, JobRow.request, JobRow.inputs, JobRow.dataset_id)
        row = self.session.execute(columns.where(JobRow.id == job_id)).one_or_none()
        return None if row is None else Accepted(row[0], row[1], pinned_of(row[2], row[3]))

    def identify(self, reference: UUID | str) -> UUID:
        """The id itself, or that of the newest job of this name. Raises JobNotFound."""
        job_id = newest(self.session, reference, JobRow.name, JobRow.id)
        if job_id is None:
            raise JobNotFound
        return job_id

    def page(
        self, limit: int, cursor: str | None = None, *, state: JobState | None = None, name: str | None = None
    ) -> JobPage:
        """Newest first; the cursor is the last id of the page before."""
        filters = [
            (column, value) for column, value in ((JobRow.name, name), (JobRow.state, state)) if value is not None
        ]
        conditions, order = page_conditions(
            filters[:1], JobRow.id
        )  # a name has few jobs: of these, the state is looked at one by one
        also = [column == value for column, value in filters[1:]]
        if cursor is not None:
            also.append(JobRow.id < id_in(cursor))
        jobs = read_jobs(self.session, *conditions, *also, order=order, limit=limit + 1)
        return JobPage(items=jobs[:limit], next_cursor=str(jobs[limit - 1].id) if len(jobs) > limit else None)

    # changing

    def cancel(self, job_id: UUID) -> Job:
        """Cancel it, as far as its state allows. Raises JobNotFound."""
        cancel(self.session, job_id)
        return self.get(job_id)

    def forgotten(self, held: int, seconds: float, limit: int = 1000) -> list[UUID]:
        """Queued jobs to announce again: those last announced `seconds` ago, or never since they came back.

        No more than there are beyond the `held` messages that the broker still has: a long queue is not
        a forgotten one. They count as announced now, so that other sweepers leave them alone.
        """
        ready = self.session.scalars(select(func.count()).where(*READY)).one()
        stale = or_(JobRow.published_at.is_(None), JobRow.published_at < NOW - timedelta(seconds=seconds))
        oldest = select(JobRow.id).where(*READY, stale).order_by(JobRow.id)
        chosen = oldest.limit(max(0, min(limit, ready - held))).with_for_update(skip_locked=True)
        marked = update(JobRow).where(JobRow.id.in_(chosen.scalar_subquery())).values(published_at=NOW)
        return sorted(self.session.scalars(marked.returning(JobRow.id), execution_options=PLAIN))
