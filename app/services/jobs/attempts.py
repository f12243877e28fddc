"""Attempts of a worker at a job: claimed, kept alive, ended.

Whatever ends an attempt is written under its lease; of two writers the second gets LeaseLost.
"""

import json
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from threading import Lock
from typing import Any, get_args
from uuid import UUID, uuid4

from app.base.errors import Cancelled, LeaseLost, TimedOut
from app.base.settings import Settings
from app.ml.catalogue.algorithm_files import every_entry
from app.ml.contract import file_formats
from app.ml.kinds.job import Outcome, Trained, WrittenTable
from app.ml.kinds.journal import StoredUnit
from app.ml.models.golden import check_golden
from app.ml.models.model import decode
from app.ml.operations import kinds
from app.schemas.datasets import FileFormat
from app.schemas.jobs import JobState
from app.schemas.problems import Problem
from app.services.jobs.partial_results import VersionOwner, add_version, publish_best
from app.store.base.new_ids import uuid7
from app.store.jobs.job_parts import PARTS
from app.store.jobs.job_records import NO_EFFORT, Capable, Claim, Effort
from app.store.unit_of_work import Work, WorkFactory

STAGE_BUCKETS: tuple[float, ...] = 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000
"""Upper bounds, in seconds, of the histogram of stages."""
END_SECONDS = 3600.0
"""So long the end of an attempt is kept in memory while the database is away or its disk is full."""


@dataclass
class StageTimes:
    """Times of a stage: how many are at most each of STAGE_BUCKETS and above the one before, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(STAGE_BUCKETS) + 1))
    total: float = 0.0


class AttemptCounts:
    """Counts of attempts that this process began, and of how they ended."""

    def __init__(self) -> None:
        self.lost = 0
        """Attempts of any process whose lease ran out, as this one found."""
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._stages: defaultdict[tuple[str, str], StageTimes] = defaultdict(StageTimes)
        self._lock = Lock()

    def count(self, kind: str, event: str, reason: str = "") -> None:
        with self._lock:
            self._counts[kind, event, reason] += 1

    def count_stages(self, kind: str, effort: Effort) -> None:
        with self._lock:
            for stage, seconds in (effort.stages or {}).items():
                times = self._stages[kind, stage]
                times.counts[bisect_left(STAGE_BUCKETS, seconds)] += 1
                times.total += seconds

    def stages(self) -> dict[tuple[str, str], StageTimes]:
        """Times of the stages of attempts that succeeded, by kind of job and stage."""
        with self._lock:
            return {key: StageTimes([*times.counts], times.total) for key, times in self._stages.items()}

    def counts(self) -> dict[tuple[str, str, str], int]:
        """By kind of job, event (`started`, or the state in which the attempt left the job) and reason."""
        with self._lock:
            return dict(self._counts)


class Attempts:
    def __init__(self, work: WorkFactory, announce: Callable[[UUID], object], settings: Settings) -> None:
        self._work = work
        self._announce = announce
        self._settings = settings
        self.counts = AttemptCounts()
        self.holder = uuid4()
        """This process, as the holder of its leases."""

    def claim(self, job_id: UUID) -> Claim | None:
        """Begin an attempt: counted from now on, whatever becomes of it. None: there is nothing to run."""
        token = uuid4()
        lease, holder = self._settings.lease_seconds, self.holder
        claimed = self._work.across_projects.retry(lambda w: w.leases.claim(job_id, token, lease, _capable(), holder))
        if claimed is not None:
            self.counts.count(claimed.kind, "started")
        return claimed

    def claim_next(self) -> Claim | None:
        """Begin an attempt of the job whose turn it is. None: there is nothing to run."""
        while job_id := self._work.across_projects.retry(lambda w: w.leases.next(_capable())):
            if claimed := self.claim(job_id):
                return claimed
        return None  # else another worker has taken that one, and the next is looked for

    def announce_held_back(self, claim: Claim) -> None:
        """A job of the same project that its quota kept from running, now that this one has ended."""
        project_id = claim.project_id
        job_id = self._work.across_projects.retry(lambda w: w.leases.held_back(project_id))
        if job_id is not None:
            self._announce(job_id)

    def beat(
        self,
        claim: Claim,
        *,
        progress: float,
        message: str = "",
        curves: Mapping[str, Sequence[float]] | None = None,
        effort: Effort = NO_EFFORT,
    ) -> JobState:
        """Renew the lease and publish the progress. Cancelling means: stop. Raises LeaseLost."""
        with self._work() as w:
            seconds = self._settings.lease_seconds
            return w.leases.beat(claim, seconds, progress, message, curves=_lists(curves), effort=effort)

    def keep(self, claim: Claim, seq: int, first_row: int, rows: int, *, payload: bytes) -> None:
        """Store a chunk of the table that the attempt makes. Raises LeaseLost, also when a cancel came first."""

        def write(w: Work) -> None:
            w.leases.hold(claim)
            w.job_chunks.add(claim.job_id, seq, first_row=first_row, rows=rows, payload=payload)

        self._work.retry(write)

    def keep_unit(self, claim: Claim, unit: StoredUnit) -> None:
        """Store a unit of work. Raises as `keep`."""

        def write(w: Work) -> None:
            w.leases.hold(claim)
            w.job_parts.add_unit(claim.job_id, unit.outcome, unit.payload)

        self._work.retry(write)

    def stored_units(self, claim: Claim) -> Iterator[StoredUnit]:
        """Units of earlier attempts, in their order."""
        for seq in count():
            with self._work() as w:
                unit = w.job_parts.unit(claim.job_id, seq)
            if unit is None:
                return
            yield StoredUnit(*unit)

    def keep_checkpoint(self, claim: Claim, trained: Trained, note: Mapping[str, Any]) -> None:
        """Store a model in place of the one before. Raises GoldenMismatch, and as `keep`."""
        check_golden(decode(trained.blob), trained.golden)
        head = {"report": trained.report.model_dump(mode="json"), "golden": trained.golden, "note": dict(note)}
        contents = json.dumps(head).encode(), trained.blob, trained.seen, trained.reference
        parts = dict(zip(PARTS, contents, strict=True))

        def write(w: Work) -> None:
            w.leases.hold(claim)
            w.job_parts.replace_checkpoint(claim.job_id, parts, self._settings.chunk_bytes)

        self._work.retry(write)

    def count_kept(self, claim: Claim) -> int:
        """Chunks that earlier attempts have stored."""
        return self._work.retry(lambda w: w.job_chunks.count(claim.job_id))

    def kept(self, claim: Claim, count: int) -> Iterator[bytes]:
        """Their payloads, in order."""
        for seq in range(count):
            with self._work() as w:
                payload = w.job_chunks.chunk(claim.job_id, seq)
            if payload is None:
                raise LeaseLost
            yield payload

    def succeed(
        self,
        claim: Claim,
        outcome: Outcome,
        *,
        curves: Mapping[str, Sequence[float]] | None = None,
        effort: Effort = NO_EFFORT,
    ) -> None:
        """The outcome and the job's success, both or neither: a version, a result, or both. effort: until now.

        Raises GoldenMismatch when the bytes do not predict what was promised, Cancelled, LeaseLost.
        """
        begun = time.monotonic()

        def effort_now() -> Effort:
            return effort.also(storing=time.monotonic() - begun) if effort.stages else effort

        if outcome.trained is not None:
            check_golden(decode(outcome.trained.blob), outcome.trained.golden)

        dataset_id = uuid7()

        def publish(w: Work) -> None:
            w.leases.hold(claim)
            result = outcome if outcome.evaluation_rows is None else outcome.used(w.uses.count(outcome.evaluation_rows))
            trained, owner = result.trained, self._owner(claim)
            version = None if trained is None else add_version(w, owner, trained, effort_now())
            job_result = result.result
            if result.written is not None and job_result is not None:
                self._add_dataset(w, claim, dataset_id, result.written)
                job_result = job_result.model_copy(update={"result_dataset": dataset_id})
            w.leases.succeed(
                claim,
                version=version,
                result=job_result,
                warnings=result.warnings,
                curves=_lists(curves),
                effort=effort_now(),
            )

        self._end(claim, publish, "succeeded")
        self.counts.count_stages(claim.kind, effort_now())

    def _add_dataset(self, w: Work, claim: Claim, dataset_id: UUID, written: WrittenTable) -> None:
        w.datasets.add(
            dataset_id,
            name=written.name,
            file_format=FileFormat.ARROW,
            size_bytes=written.size_bytes,
            rows=written.rows,
            digest=written.digest,
            columns=written.columns,
            warnings=[],
        )
        w.job_chunks.move(claim.job_id, dataset_id, written.chunks, written.rows)
        w.quotas.demand(storage_bytes=0)

    def fail(self, claim: Claim, error: Problem, *, retry: bool = False) -> None:
        """End the job, or with `retry` queue it again while attempts are left. Raises Cancelled, LeaseLost."""
        if retry and claim.attempt < claim.max_attempts:
            pause = backoff(self._settings, claim.attempt)
            self._end(claim, lambda w: w.leases.requeue(claim, reason=error.code, seconds=pause), "queued", error.code)
        else:
            self._end(claim, partial(self._fail, claim, JobState.FAILED, error), "failed", error.code)

    def time_out(self, claim: Claim) -> None:
        """Raises Cancelled, LeaseLost."""
        late = TimedOut(f"It ran for {claim.time_limit_seconds:g} seconds.")
        error = Problem.of(late, request_id=claim.request_id)
        self._end(claim, partial(self._fail, claim, JobState.TIMED_OUT, error), "timed_out", error.code)

    def _fail(self, claim: Claim, state: JobState, error: Problem, w: Work) -> None:
        w.leases.hold(claim)
        w.leases.fail(claim, state, error, self._best(w, claim, state))

    def _best(self, w: Work, claim: Claim, state: JobState) -> Mapping[str, Any]:
        """Columns that a job which ends so keeps."""
        return publish_best(w, claim.job_id, state, self._settings.chunk_bytes)

    def _owner(self, claim: Claim) -> VersionOwner:
        dataset_id = None if claim.pinned.files else claim.dataset_id  # that is of a check
        return VersionOwner(claim.job_id, claim.model, dataset_id, self._settings.chunk_bytes)

    def stop(self, claim: Claim) -> None:
        """The attempt of a job in cancelling is over. Raises LeaseLost."""
        self._work.retry(lambda w: w.leases.finish_cancel(claim, self._best(w, claim, JobState.CANCELLED)))
        self.counts.count(claim.kind, "cancelled")

    def release(self, claim: Claim) -> None:
        """Give the job back because the worker stops; the attempt does not count. Raises Cancelled, LeaseLost."""
        reason = "worker_stopped"
        self._end(claim, lambda w: w.leases.requeue(claim, reason=reason, charged=False), "queued", reason)
        self._announce(claim.job_id)

    def postpone(self, claim: Claim, error: Problem) -> None:
        """Give the job back for a while because the worker cannot run it now. Raises as `release`."""
        reason, pause = error.code, self._settings.republish_seconds

        def requeue(w: Work) -> None:
            w.leases.requeue(claim, reason=reason, seconds=pause, charged=False)

        self._end(claim, requeue, "queued", reason)

    def _end(self, claim: Claim, write: Callable[[Work], None], outcome: str, reason: str = "") -> None:
        """Write the end of an attempt and count it; a cancel that came first has the last word."""
        try:
            self._work.retry(write, seconds=END_SECONDS, until_room=True)
        except LeaseLost:
            self.stop(claim)
            raise Cancelled from None
        self.counts.count(claim.kind, outcome, reason)


def backoff(settings: Settings, attempt: int) -> float:
    """Seconds before the attempt after this one: doubled each time, capped at 64 times the first."""
    return settings.retry_backoff_seconds * 2.0 ** min(attempt - 1, 6)


def _capable() -> Capable:
    return Capable(tuple(kinds()), (*every_entry(), *get_args(file_formats.FileFormat)))


def _lists(curves: Mapping[str, Sequence[float]] | None) -> dict[str, list[float]]:
    return {name: list(values) for name, values in (curves or {}).items()}
