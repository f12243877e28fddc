"""Jobs as clients see them: read, listed, cancelled."""

from uuid import UUID

from app.schemas.jobs import Job, JobPage, JobState
from app.services.predictions.pointer_cache import Pointers
from app.store.unit_of_work import WorkFactory


class Jobs:
    def __init__(self, work: WorkFactory, pointers: Pointers) -> None:
        """pointers: those of the predictions of this process, which see each version that was reported."""
        self._work = work
        self._pointers = pointers

    def get(self, job: UUID | str) -> Job:
        """By its id, or the newest of a name. Raises JobNotFound."""
        with self._work() as w:
            return self._reported(w.jobs.get(w.jobs.identify(job)))

    def page(
        self, limit: int, cursor: str | None = None, *, state: JobState | None = None, name: str | None = None
    ) -> JobPage:
        with self._work() as w:
            page = w.jobs.page(limit, cursor, state=state, name=name)
        for job in page.items:
            self._reported(job)
        return page

    def cancel(self, job: UUID | str) -> Job:
        """Idempotent: a second time, or too late, it changes nothing. Raises JobNotFound."""
        return self._reported(self._work.retry(lambda w: w.jobs.cancel(w.jobs.identify(job)), seconds=5))

    def _reported(self, job: Job) -> Job:
        """The job. Predictions of the process use the version that it reports."""
        if job.state is JobState.SUCCEEDED and job.model is not None and job.version is not None:
            self._pointers.version_reported(job.model, job.version)
        return job
