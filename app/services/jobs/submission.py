"""Submission of jobs of any kind: every fault that can be known is reported before a job exists."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from app.base.errors import IdempotencyConflict, InvalidRequest, QueueFull
from app.base.faults import Fault
from app.base.settings import Settings
from app.ml.catalogue.algorithm_files import seconds_to_compile
from app.ml.contract.algorithm import JSON
from app.ml.contract.columns import TableColumn
from app.ml.kinds.job import Checked, Estimate, JobContext, Request, Sheet, Source, Version
from app.ml.models.header import Header
from app.ml.operations import kind_of, kind_records, kinds
from app.ml.tables.csv_dialect import BLANK, DELIMITERS
from app.ml.tables.data_sheet import Column
from app.processes.disk_space import demand_room
from app.schemas.datasets import Dataset
from app.schemas.jobs import Job
from app.schemas.models import ModelVersion
from app.services.datasets.datasets import at_hand, sampled_rows
from app.services.jobs.partial_check import further_faults
from app.services.jobs.row_check import RowCheck
from app.store.base.new_ids import uuid7
from app.store.jobs.job_records import NewJob, Pinned
from app.store.unit_of_work import Work, WorkFactory

DATASET_FIELDS = "dataset", "reference", "current"
"""Fields of requests that refer to datasets."""


class _Understood(NamedTuple):
    """A request without faults, and what it rests on."""

    request: Request
    """With the ids of datasets in place of their names."""
    checked: Checked
    pinned: Pinned
    rows: RowCheck | None = None
    """Rows that are still to be checked; None: there are none."""
    datasets: tuple[Dataset, ...] = ()


class Submission:
    def __init__(self, work: WorkFactory, announce: Callable[[UUID], object], settings: Settings) -> None:
        self._work = work
        self._announce = announce
        self._settings = settings

    def submit(
        self,
        request: Request,
        *,
        idempotency_key: str | None = None,
        request_id: str | None = None,
        traceparent: str | None = None,
    ) -> tuple[Job, bool]:
        """The job, committed and announced; with True when the same key and body were accepted before.

        Raises InvalidRequest with every fault, IdempotencyConflict, QueueFull, QuotaReached, QuotaExceeded,
        StorageFull, and that what it needs is not found.
        """
        entry = kind_of(request)
        new = NewJob(
            id=uuid7(),
            kind=entry.name,
            name=request.name,
            request={},
            request_hash=_fingerprint(entry.name, request.model_dump(mode="json", exclude_defaults=True)),
            request_id=request_id,
            traceparent=traceparent,
            idempotency_key=idempotency_key,
            dataset_id=None,
            model=None,
            algorithm=None,
            warnings=[],
            max_attempts=self._settings.max_attempts,
            time_limit_seconds=request.time_limit_seconds,
        )
        accepted = self._work.retry(partial(self._accept, request=request, new=new), seconds=5)
        if isinstance(accepted, RowCheck):
            accepted.demand()
            accept = partial(self._accepted, request=accepted.request, new=new)
            job, replayed = self._work.retry(accept, seconds=5)
        else:
            job, replayed = accepted
        if not replayed:
            self._announce(job.id)
        return job, replayed

    def validate(self, request: Request) -> Estimate:
        """The cost of the job. Raises what `submit` would raise of the request."""
        with self._work() as w:
            understood = self._understand(w, request)
            look, datasets = understood.checked.look, understood.datasets
            sample = None if look is None else sampled_rows(w, datasets[0])
            left = w.workers.count(self._settings.lease_seconds).kernels_left_seconds
        if understood.rows is not None:
            understood.rows.demand()
        checked = understood.checked
        if look is not None and sample is not None:
            checked = checked.with_warnings(look(Source(sheet(datasets[0]), iter([sample()]))))
        return _cold(checked.estimate, min(left, seconds_to_compile(checked.algorithms)) if left else 0.0)

    def further_faults(self, kind: type[Request], body: object, faults: Sequence[Fault]) -> list[Fault]:
        """Faults of a body beyond those of its schema, `faults`."""
        return further_faults(kind, body, faults, self.validate)

    def _accept(self, w: Work, *, request: Request, new: NewJob) -> tuple[Job, bool] | RowCheck:
        """The job, or rows to be checked before it is accepted.

        Safe to repeat: a job whose commit was not confirmed is found again by its id or its key.
        """
        if replay := self._replay(w, new):
            return replay, True
        understood = self._understand(w, request)
        return understood.rows or self._added(w, understood, new)

    def _accepted(self, w: Work, *, request: Request, new: NewJob) -> tuple[Job, bool]:
        """The job, whose rows have been checked. Safe to repeat, too."""
        if replay := self._replay(w, new):
            return replay, True
        return self._added(w, self._understand(w, request), new)

    def _added(self, w: Work, understood: _Understood, new: NewJob) -> tuple[Job, bool]:
        demand_room(self._settings)
        w.jobs.lock_queue()
        if replay := self._replay(w, new):  # of those who waited for the lock, one has come first
            return replay, True
        if accepted := w.jobs.find(new.id):
            return accepted, False
        if w.jobs.waiting() >= self._settings.max_queued_jobs:
            pause = math.ceil(self._settings.republish_seconds)
            raise QueueFull(headers={"Retry-After": str(pause)})
        versions = {} if understood.checked.model is None else {"model_versions": 1}
        w.quotas.demand(queued_jobs=1, run_seconds_per_day=0, **versions)
        w.audit.note_created(f"/v1/jobs/{new.id}")
        return w.jobs.add(_completed(new, understood)), False

    def _replay(self, w: Work, new: NewJob) -> Job | None:
        earlier = w.jobs.kept(new.idempotency_key) if new.idempotency_key is not None else None
        if earlier is None:
            return None
        if earlier.request_hash != new.request_hash:
            raise IdempotencyConflict
        return earlier.first_response

    def _understand(self, w: Work, request: Request) -> _Understood:
        """Found, held until the end of the transaction, and checked but for `rows`.

        Raises InvalidRequest with every fault.
        """
        kind, request = kind_of(request).kind, _identified(w, request)
        needs = kind.needs(request)
        datasets = tuple(map(w.datasets.identify, needs.datasets))
        for dataset_id in datasets:
            w.jobs.hold_dataset(dataset_id)
        for file_id in needs.files:
            w.files.hold(file_id)
            w.files.get(file_id)
        described = [w.datasets.get(dataset_id) for dataset_id in datasets]
        pointers = [w.aliases.pointer(model.model, version=model.version, alias=model.alias) for model in needs.models]
        versions = tuple(_version(w.models.version(pointer.model, pointer.version)) for pointer in pointers)
        faults = [*self._limit_faults(request), *_name_faults(request)]
        try:
            job_context = JobContext(
                tuple(map(sheet, described)),
                versions,
                self._settings.job_memory_bytes,
                kinds=kind_records(),
                file_formats=w.projects.file_formats() if needs.files else (),
            )
            checked = _warned(kind.check(request, job_context), request.time_limit_seconds)
        except InvalidRequest as error:
            raise InvalidRequest(error.detail, faults=(*error.faults, *faults)) from None
        rows = None
        if checked.check_rows is not None:
            tables = tuple(at_hand(w, dataset) for dataset in described)
            rows = RowCheck(request, checked.check_rows, job_context.datasets, tables, tuple(faults))
        elif faults:
            raise InvalidRequest(faults=faults)
        pins = tuple((pointer.model, pointer.version) for pointer in pointers)
        return _Understood(
            request, checked, Pinned(datasets, pins, checked.algorithms, needs.files), rows, tuple(described)
        )

    def _limit_faults(self, request: Request) -> list[Fault]:
        longest = self._settings.max_time_limit_seconds
        if request.time_limit_seconds <= longest:
            return []
        return [Fault("/time_limit_seconds", f"The longest limit here is {longest:g} seconds.", "too_large")]


def _cold(estimate: Estimate, seconds: float) -> Estimate:
    """With the time for what a worker has not compiled, and a warning of it."""
    if round(seconds) < 1:
        return estimate
    late = f"First use: +{seconds:.0f} s, because a worker compiles what the job needs, once on its machine."
    return estimate.model_copy(update={"cold_seconds": round(seconds, 1), "warnings": [*estimate.warnings, late]})


def _warned(checked: Checked, limit: float) -> Checked:
    """With a warning where the estimate is above the limit of the job, which is too rough to refuse it."""
    estimate = checked.estimate
    seconds = dict(estimate).get("seconds", 0.0)
    if seconds <= limit:
        return checked
    late = f"The job is estimated to take {seconds:.3g} seconds, and time_limit_seconds is {limit:g}."
    return checked.with_warnings([late])


def _name_faults(request: Request) -> Iterator[Fault]:
    """A name whose address is that of a kind of job."""
    if request.name in kinds():
        detail = f"/v1/jobs/{request.name} is the address of a kind of job, where no job is found: take another name."
        yield Fault("/name", detail, "reserved_name")


def _identified(w: Work, request: Request) -> Request:
    """The request with the ids of the datasets that it names: what is stored means the same for ever."""
    changes = _dataset_id(w, request)
    for part in ("relations", "check"):
        holder = getattr(request, part, None)
        if holder is not None and (identifier := _dataset_id(w, holder)):
            changes[part] = holder.model_copy(update=identifier)
    return request.model_copy(update=changes) if changes else request


def _dataset_id(w: Work, holder: object) -> dict[str, object]:
    """The fields of datasets as ids, where they hold names."""
    names = {field: getattr(holder, field, None) for field in DATASET_FIELDS}
    return {field: w.datasets.identify(name) for field, name in names.items() if isinstance(name, str)}


def _completed(new: NewJob, understood: _Understood) -> NewJob:
    request, checked, pinned, *_ = understood
    return new._replace(
        request=request.model_dump(mode="json"),
        inputs=pinned.written(),
        dataset_id=next(iter(pinned.datasets), None),
        model=checked.model,
        algorithm=checked.algorithm,
        warnings=checked.estimate.warnings,
    )


def sheet(dataset: Dataset) -> Sheet:
    """The description of a dataset for the core."""
    return Sheet(dataset.digest, dataset.rows, tuple(map(_column, dataset.columns)), _unusual(dataset))


def _unusual(dataset: Dataset) -> dict[str, JSON]:
    """The reading options by which another file of the same origin is read alike, where they are not the usual ones."""
    reading = dataset.reading
    if reading is None:
        return {}
    options: dict[str, JSON] = {
        "encoding": None if reading.encoding == "utf-8" else reading.encoding,
        "missing": reading.missing or None,
        "comment": reading.comment,
        "decimal": reading.decimal,
        "delimiter": reading.delimiter if reading.delimiter not in {*DELIMITERS, BLANK} else None,
    }
    if not reading.quoted:
        options["quoted"] = False
    if reading.header is False:
        options |= {"header": False, "columns": len(dataset.columns)}
    return {name: value for name, value in options.items() if value is not None}


def _column(described: Column) -> TableColumn:
    low, high = (end if isinstance(end, float) else None for end in (described.minimum, described.maximum))
    facts = (
        described.missing,
        described.distinct,
        described.identifier_like,
        low,
        high,
        described.notation,
        described.mostly_numbers,
    )
    levels = tuple(level.value for level in described.top_levels or ())
    column = TableColumn(described.name, described.kind, *facts, levels=levels)
    return column._replace(other_notation=described.other_notation, cell_texts=described.cell_texts)


def _version(model_version: ModelVersion) -> Version:
    header = Header(
        algorithm=model_version.algorithm,
        task=model_version.task,
        parameters=model_version.parameters,
        target=model_version.target,
        classes=None if model_version.classes is None else tuple(model_version.classes),
        inputs=tuple(model_version.inputs),
        receipt=model_version.receipt,
    )
    return Version(model_version.model, model_version.version, model_version.digest, header)


def _fingerprint(kind: str, request: object) -> str:
    """The same for the same request, however its JSON was laid out, and in a release with one more optional field."""
    canonical = json.dumps([kind, request], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
