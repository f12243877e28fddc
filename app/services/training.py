"""Accepting work: everything that can be known to be wrong is said before a job exists."""

import hashlib
import json
import math
from collections.abc import Callable
from functools import partial
from uuid import UUID

from app.errors import Fault, IdempotencyConflict, InvalidRequest, QueueFull
from app.ml.planning import Plan, algorithm_name, plan
from app.ml.schema import TableColumn
from app.schemas.datasets import Dataset
from app.schemas.jobs import Job, TrainEstimate, TrainRequest
from app.settings import Settings
from app.store.claims import NewJob
from app.store.identifiers import uuid7
from app.store.work import Work, WorkFactory

KIND = "train"


class Training:
    def __init__(self, work: WorkFactory, announce: Callable[[UUID], object], settings: Settings) -> None:
        self._work = work
        self._announce = announce
        self._settings = settings

    def submit(
        self, request: TrainRequest, *, idempotency_key: str | None = None, request_id: str | None = None
    ) -> tuple[Job, bool]:
        """The job, committed and announced; with True when the same key and body were accepted before.

        Raises DatasetNotFound, InvalidRequest with every fault, IdempotencyConflict, QueueFull.
        """
        written = request.model_dump(mode="json")
        new = NewJob(
            id=uuid7(),
            kind=KIND,
            request=written,
            request_hash=_fingerprint(written),
            request_id=request_id,
            idempotency_key=idempotency_key,
            dataset_id=request.dataset,
            model=request.model,
            algorithm=algorithm_name(request),
            warnings=[],
            max_attempts=self._settings.max_attempts,
            time_limit_seconds=request.time_limit_seconds,
        )
        job, replayed = self._work.retry(partial(self._accept, request=request, new=new), seconds=5)
        if not replayed:
            self._announce(job.id)
        return job, replayed

    def validate(self, request: TrainRequest) -> TrainEstimate:
        """What `submit` would say, and what the job would take. Raises DatasetNotFound, InvalidRequest."""
        with self._work() as w:
            dataset = w.datasets.get(request.dataset)
        planned = self._plan(request, dataset)
        return TrainEstimate(
            task=planned.task,
            features=list(planned.features),
            rows=dataset.rows,
            memory_bytes=planned.memory_bytes,
            seconds=planned.seconds,
            warnings=list(planned.warnings),
        )

    def _accept(self, w: Work, *, request: TrainRequest, new: NewJob) -> tuple[Job, bool]:
        """Safe to repeat: a job whose commit was not heard of is found again by its id or its key."""
        if replay := self._replay(w, new):
            return replay, True
        w.jobs.hold_dataset(request.dataset)
        planned = self._plan(request, w.datasets.get(request.dataset))
        w.jobs.lock_queue()
        if replay := self._replay(w, new):  # of those who waited for the lock, one has come first
            return replay, True
        if accepted := w.jobs.find(new.id):
            return accepted, False
        if w.jobs.waiting() >= self._settings.max_queued_jobs:
            pause = math.ceil(self._settings.republish_seconds)
            raise QueueFull(headers={"Retry-After": str(pause)})
        return w.jobs.add(new._replace(warnings=list(planned.warnings))), False

    def _replay(self, w: Work, new: NewJob) -> Job | None:
        kept = w.jobs.kept(new.idempotency_key) if new.idempotency_key is not None else None
        if kept is None:
            return None
        if kept.request_hash != new.request_hash:
            raise IdempotencyConflict
        return kept.first_answer

    def _plan(self, request: TrainRequest, dataset: Dataset) -> Plan:
        faults = self._limit_faults(request)
        try:
            planned = plan(request, _columns(dataset), dataset.rows)
        except InvalidRequest as error:
            raise InvalidRequest(error.detail, faults=(*error.faults, *faults)) from None
        if faults:
            raise InvalidRequest(faults=faults)
        return planned

    def _limit_faults(self, request: TrainRequest) -> list[Fault]:
        longest = self._settings.max_time_limit_seconds
        if request.time_limit_seconds <= longest:
            return []
        return [Fault("/time_limit_seconds", f"The longest limit here is {longest:g} seconds.", "too_large")]


def _columns(dataset: Dataset) -> list[TableColumn]:
    return [
        TableColumn(column.name, column.kind, column.missing, column.distinct, column.identifier_like)
        for column in dataset.columns
    ]


def _fingerprint(request: object) -> str:
    """The same for the same request, however its JSON was laid out."""
    canonical = json.dumps([KIND, request], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
