"""Quotas of the unit of work's project: what it has is counted where it grows, in the same transaction.

Nothing is counted twice or forgotten, since no counter is kept.
"""

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from app.base.errors import ValiantError
from app.base.faults import Fault
from app.base.project_context import PROJECT
from app.schemas.jobs import JobState
from app.schemas.projects import ProjectQuotas, Usage
from app.store.base.database_clock import NOW, time_of
from app.store.base.project_table import ProjectRow
from app.store.datasets.dataset_tables import DatasetRow, FileRow
from app.store.datasets.upload_tables import UploadRow
from app.store.jobs.job_states import LEASED
from app.store.jobs.job_tables import JobRow, JobTransitionRow
from app.store.models.model_tables import ModelVersionRow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NOUNS = {
    "storage_bytes": "bytes",
    "model_versions": "model versions",
    "queued_jobs": "jobs that wait",
    "run_seconds_per_day": "seconds of jobs since the day began",
}
QUEUE_SECONDS = 5
"""Time after which a job may have left a full queue."""
MAX_ATTEMPT = timedelta(days=7)
"""Longer than any attempt."""


class QuotaExceeded(ValiantError):
    code, status, title = "quota_exceeded", 403, "The project has no room left"
    remedy = "Delete what is no longer needed, or have an operator raise the quota: GET /v1/usage shows both."


class QuotaReached(ValiantError):
    code, status, title = "quota_reached", 429, "The project has to wait"
    remedy = "Send the request again after the time in Retry-After, or have an operator raise the quota."


class QuotaRepository:
    def __init__(self, session: Session) -> None:
        self.session = session
        self._count: Mapping[str, Callable[[], float]] = {
            "storage_bytes": self._storage,
            "model_versions": lambda: self._number(ModelVersionRow.version),
            "queued_jobs": lambda: self._number(JobRow.id, JobRow.state == JobState.QUEUED),
            "running_jobs": lambda: self._number(JobRow.id, JobRow.state.in_(LEASED)),
            "run_seconds_per_day": self._run_seconds,
        }

    def demand(self, **further: float) -> None:
        """Room for so much more, until the end of the transaction: one at a time counts and adds.

        Raises QuotaExceeded, QuotaReached.
        """
        limits = self._quotas().model_dump(include=set(further), exclude_none=True)
        if not limits:
            return
        self.session.execute(select(ProjectRow.id).where(_own()).with_for_update(key_share=True))
        used = {name: self._count[name]() for name in limits}
        over = [name for name, limit in limits.items() if used[name] + further[name] > limit]
        if not over:
            return
        faults = [
            Fault("", f"The project has {used[name]:.15g} of {limits[name]:.15g} {NOUNS[name]}.") for name in over
        ]
        if {"storage_bytes", "model_versions"}.isdisjoint(over):
            pause = self._seconds_left() if "run_seconds_per_day" in over else QUEUE_SECONDS
            raise QuotaReached(faults=faults, headers={"Retry-After": str(pause)})
        raise QuotaExceeded(faults=faults)

    def usage(self) -> Usage:
        name, quotas = self.session.execute(select(ProjectRow.name, ProjectRow.quotas).where(_own())).one()
        used: dict[str, Any] = {quota: count() for quota, count in self._count.items()}
        return Usage(project=name, quotas=ProjectQuotas(**quotas), **used)

    def _quotas(self) -> ProjectQuotas:
        return ProjectQuotas(**self.session.scalars(select(ProjectRow.quotas).where(_own())).one())

    def _number(self, column: InstrumentedAttribute[Any], *conditions: ColumnElement[bool]) -> int:
        return self.session.scalars(select(func.count(column)).where(*conditions)).one()

    def _storage(self) -> int:
        """Bytes of what is there, and of what is announced by uploads that are no datasets yet."""
        sizes = (DatasetRow.size_bytes, FileRow.size_bytes, ModelVersionRow.size_bytes)
        announced = select(func.coalesce(func.sum(UploadRow.size_bytes), 0)).where(UploadRow.dataset_id.is_(None))
        sums = [announced, *(select(func.coalesce(func.sum(size), 0)) for size in sizes)]
        return sum(int(self.session.scalars(total).one()) for total in sums)

    def _run_seconds(self) -> float:
        """From the record of states: an attempt lasts from one running to the next other state of its job."""
        begun, ended, day = aliased(JobTransitionRow), aliased(JobTransitionRow), _day_of(time_of(self.session))
        end = (
            select(func.min(ended.at))
            .where(ended.job_id == begun.job_id, ended.id > begun.id, ended.state.not_in(LEASED))
            .scalar_subquery()
        )
        seconds = func.extract("epoch", func.coalesce(end, NOW) - func.greatest(begun.at, day))
        lasted = select(func.coalesce(func.sum(func.greatest(seconds, 0)), 0))
        lasted = lasted.where(begun.state == JobState.RUNNING, begun.at > day - MAX_ATTEMPT)
        return float(self.session.scalars(lasted).one())

    def _seconds_left(self) -> int:
        now = time_of(self.session)
        return math.ceil((_day_of(now) + timedelta(days=1) - now).total_seconds())


def _day_of(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _own() -> ColumnElement[bool]:
    return ProjectRow.id == PROJECT.get()
