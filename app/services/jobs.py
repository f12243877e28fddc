"""Jobs as clients see them: read, listed, cancelled."""

from uuid import UUID

from app.schemas.jobs import Job, JobPage, JobState
from app.store.unit_of_work import WorkFactory


class Jobs:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work

    def get(self, job: UUID | str) -> Job:
        """By its id, or the newest of a name. Raises JobNotFound."""
        with self._work() as w:
            return w.jobs.get(w.jobs.identify(job))

    def page(
        self, limit: int, cursor: str | None = None, *, state: JobState | None = None, name: str | None = None
    ) -> JobPage:
        with self._work() as w:
            return w.jobs.page(limit, cursor, state=state, name=name)

    def cancel(self, job: UUID | str) -> Job:
        """Idempotent: a second time, or too late, it changes nothing. Raises JobNotFound."""
        return self._work.retry(lambda w: w.jobs.cancel(w.jobs.identify(job)), seconds=5)
