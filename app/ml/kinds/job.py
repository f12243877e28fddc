"""The contract of a kind of job.

A file of `app/ml/jobs/` defines a request, plain functions of it, and states them in one `KIND` record. The file's
name is the kind's name. Everything else (the route, the queue, idempotency, lease, cancel, limits, the child process
and its frames, the result on the wire) follows from that record.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa
from pydantic import ConfigDict, Field

from app.base.references import DatasetReference, JobName
from app.base.wire import Body, Wire
from app.ml.contract.algorithm import JSON, Each, Matrix, in_turn
from app.ml.contract.columns import TableColumn
from app.ml.contract.model_file_options import ModelFileOptions
from app.ml.contract.model_reference import VersionRef
from app.ml.contract.progress import Reporter
from app.ml.contract.stage_clock import timed
from app.ml.contract.task import Task
from app.ml.contract.timed_tasks import EachWithin, in_turn_within
from app.ml.evaluation.guarantees import without_holdout
from app.ml.evaluation.holdout_reuse import optimism
from app.ml.evaluation.report import Report, Reuse
from app.ml.kinds.journal import Journal, NoJournal, StoredParts
from app.ml.models.header import Header
from app.ml.models.model import Model
from app.ml.models.parsed_model import ParsedModel
from app.ml.models.seen_rows import SeenRows
from app.ml.monitoring.reference import Reference
from app.ml.tables.casting import KindUsed, recast_columns, recast_table
from app.ml.tables.data_sheet import Column, Remark

NAME = (
    "A name for the job, by which `/v1/jobs/{job}` finds it as by its id: 1 to 100 characters of a-z, 0-9, _ and -, "
    "but not the name of a kind of job. Of several jobs with one name it means the newest. Null: the job has no name."
)
WARNINGS = "Sentences on what a careful reader should know; empty where there is none."


class Request(Body):
    """Fields of every job request. A kind's own request is one of these."""

    name: JobName | None = Field(None, description=NAME)
    time_limit_seconds: float = Field(3600, gt=0, description="The job ends as timed_out when it runs longer.")


class Result(Wire):
    """The result of a finished job besides a model. Its field `kind` is a required literal: the kind's name."""

    model_config = ConfigDict(extra="forbid")

    reuse: Reuse | None = Field(None, description="Reuse of the evaluated rows; null: no row was evaluated.")
    warnings: list[str] = Field([], description=WARNINGS)


class Estimate(Wire):
    """Result of a dry run that found no problem."""

    warnings: list[str] = Field([], description=WARNINGS)
    cold_seconds: float = Field(
        0.0,
        description="Rough time in seconds that the job takes longer because a worker has not compiled yet what it "
        "needs, which it does once on its machine; 0 where all is compiled.",
    )


class Needs(NamedTuple):
    """The datasets and versions of a request. Each must exist, and stays what it is until the job has ended."""

    datasets: tuple[DatasetReference, ...] = ()
    models: tuple[VersionRef, ...] = ()
    files: tuple[UUID, ...] = ()
    """Uploaded files."""


class Sheet(NamedTuple):
    """Facts of a dataset before a row of it is read."""

    digest: str
    rows: int
    columns: tuple[TableColumn, ...]
    reading: Mapping[str, JSON] = {}
    """Options with which its file was read, where not the default: its `encoding`, markers of `missing` values."""


class Version(NamedTuple):
    """Facts of a version before its arrays are read."""

    model: str
    version: int
    digest: str
    header: Header


class JobContext(NamedTuple):
    """The facts of all `Needs`, in its order."""

    datasets: tuple[Sheet, ...] = ()
    models: tuple[Version, ...] = ()
    memory_bytes: float = math.inf
    """Limits of the process of a job."""
    kinds: "Mapping[str, Kind[Any]]" = MappingProxyType({})
    """All kinds of job by name."""
    file_formats: tuple[str, ...] = ()
    """Formats of files that the project may import besides the standard ones; only where files are needed."""
    in_doubt: Task | None = None
    """Task of a target of 0 and 1 of which the request names none: that of a version to be made again."""


class Checked(NamedTuple):
    """The plan of a request without faults."""

    model: str | None = None
    """The model the job is about, as the list of jobs shows it."""
    algorithm: str | None = None
    """Only of a training: earlier releases claim whatever has one they know, as a training."""
    algorithms: tuple[str, ...] = ()
    """A worker that lacks one of these algorithms, or formats of model files, leaves the job to others."""
    estimate: Estimate = Estimate()
    check_rows: "Callable[[list[Source]], None] | None" = None
    """Raises InvalidRequest for what is wrong with rows: those of all datasets, in the order of `Needs`. It runs before
    the job exists if each is small enough, without a transaction; None: rows are read by the job only."""
    look: "RowLook | None" = None
    """Warnings of a dry run about the rows of the first dataset, or some of them; None: there are none."""

    def with_warnings(self, warnings: Iterable[str]) -> "Checked":
        update = {"warnings": [*self.estimate.warnings, *warnings]}
        return self._replace(estimate=self.estimate.model_copy(update=update))


def stacked(parts: Iterator[Matrix]) -> Matrix:
    """The rows of all parts in memory."""
    return np.concatenate([*parts])


class Source(NamedTuple):
    """A dataset on its way: its rows come once, in order. Read the sources in the order of `Needs`."""

    sheet: Sheet
    batches: Iterator[pa.Table]
    beside: Callable[[Iterator[pa.Table]], pa.Table] = pa.concat_tables
    """Puts them where they take no memory."""
    spool_rows: Callable[[Iterator[Matrix]], Matrix] = stacked
    """Puts prepared rows where they take no memory."""

    def used_as(self, kinds: Mapping[str, KindUsed]) -> "Source":
        """With columns as the kinds that they are used as."""
        columns = recast_columns(self.sheet.columns, kinds)
        return self._replace(
            sheet=self.sheet._replace(columns=tuple(columns)),
            batches=(recast_table(batch, columns) for batch in self.batches),
        )

    def read(self, columns: Collection[str] | None = None) -> pa.Table:
        """All rows; with `columns`, no others of these are kept in memory."""
        with timed("reading"):
            batches = self.batches if columns is None else (batch.select([*columns]) for batch in self.batches)
            return pa.concat_tables(batches)

    def read_beside(self) -> pa.Table:
        """All rows, to be looked at in parts: in a mapped file."""
        with timed("reading"):
            return self.beside(self.batches)


RowLook: TypeAlias = Callable[[Source], list[str]]
"""Maps rows of a dataset, all or a sample, to warnings about them."""


class Loaded(NamedTuple):
    """A version and its model."""

    version: Version
    model: Model
    seen: tuple[SeenRows, ...] | None = None
    """Its training rows; None: not known."""
    reference: Reference | None = None
    """Distributions for later comparisons; None: none is stored."""


class UploadedFile(NamedTuple):
    """The file of a model."""

    digest: str
    content: Callable[[], bytes]
    parse: Callable[[str, ModelFileOptions], ParsedModel]
    """Its model, of a format, from a process of its own. Raises InvalidData and ImportUnsupported."""


class Inputs(NamedTuple):
    """The sources of all `Needs`, in its order."""

    datasets: tuple[Source, ...] = ()
    models: tuple[Loaded, ...] = ()
    files: tuple[UploadedFile, ...] = ()
    memory_bytes: float = math.inf
    """Limits of the process."""
    written: Iterator[pa.Table] = iter(())
    """Batches of the result that earlier attempts have written; to be read before the datasets."""
    each: Each = in_turn
    """Runs tasks, at once where the worker has processes to spare; the results are the same."""
    kinds: "Mapping[str, Kind[Any]]" = MappingProxyType({})
    """All kinds of job by name."""
    in_doubt: Task | None = None
    each_within: EachWithin = in_turn_within
    """Runs tasks that are ended when their time is up, where there are processes for them."""
    journal: Journal = NoJournal()
    """Stores units of work, and models that could be served."""


class Trained(NamedTuple):
    """A model that is ready to become a version."""

    blob: bytes
    """The model, as `app.ml.models.model.encode` wrote it."""
    report: Report
    golden: dict[str, Any]
    """{"columns": […], "data": [[…]], "predictions": […], "probabilities": [[…]]?}: rows as a client sends them."""
    seen: bytes = b""
    """Hashes of the training rows, as `app.ml.models.seen_rows.encode` wrote them; empty: not known."""
    reference: bytes = b""
    """Distributions for later comparisons, as `app.ml.monitoring.reference` wrote them; empty: none."""


class Table(NamedTuple):
    """A table on its way to become a dataset: its batches are written, one after the other, when `run` has returned."""

    name: str
    """Name of the dataset."""
    batches: Iterator[pa.Table]
    """Deterministic, boundaries too: those that an earlier attempt has written come first, from `Inputs.written`."""
    remarks: Mapping[str, Remark] = {}
    """By column, for the data sheet."""


class WrittenTable(Wire):
    """A table whose chunks are written: what else makes it a dataset."""

    name: str
    rows: int
    chunks: int
    size_bytes: int
    digest: str
    columns: list[Column]


class Outcome(NamedTuple):
    """The outcome of a job: a model, a result, a table, or several of them."""

    trained: Trained | None = None
    result: Result | None = None
    table: Table | None = None
    """To be written; the result's field `result_dataset` will hold its id."""
    written: WrittenTable | None = None

    @property
    def warnings(self) -> list[str]:
        return [warning for part in self._parts for warning in part.warnings]

    @property
    def evaluation_rows(self) -> Reuse | None:
        """The rows that evaluated it."""
        return next((part.reuse for part in self._parts if part.reuse is not None), None)

    def used(self, times: int) -> "Outcome":
        """The same, with the number of times these rows have evaluated models by now."""
        trained = self.trained and self.trained._replace(report=_used(self.trained.report, times))
        return self._replace(trained=trained, result=self.result and _used(self.result, times))

    @property
    def _parts(self) -> list[Report | Result]:
        return [part for part in (self.trained and self.trained.report, self.result) if part is not None]


Part = TypeVar("Part", Report, Result)


def _used(result: Part, times: int) -> Part:
    if result.reuse is None:
        return result
    reuse = result.reuse.model_copy(update={"uses": times})
    update = {"reuse": reuse, "warnings": [*result.warnings, *optimism(times)]}
    if isinstance(result, Report) and result.guarantees is not None and times > 1:
        update["guarantees"] = without_holdout(result.guarantees, times)
    return result.model_copy(update=update)


R = TypeVar("R", bound=Request)


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[R]):
    """One kind of work, as its file states it."""

    operation: str
    """Name in SDKs of the route that submits it: verb_noun."""
    request: type[R]
    needs: Callable[[R], Needs]
    check: Callable[[R, JobContext], Checked]
    """Before the job exists. Raises InvalidRequest with every fault, each with its pointer into the request."""
    run: Callable[[R, Inputs, Reporter], Outcome]
    """Pure; in a process of its own. Its exceptions of `app.base.errors` reach the client."""
    result: type[Result] | None = None
    estimate: type[Estimate] = Estimate
    dry_run: str | None = None
    """Name in SDKs of the route that returns the estimate; without it there is none."""
    name: str | None = None
    """Its name, where a file cannot have it; None: that of its file."""
    partial: Callable[[R, StoredParts], Result] | None = None
    """The result of a job that ended before its end, from what was stored; None: such a job has none."""
    from_version: bool = False
    """The service makes its requests, from a stored version: the kind has no route of its own."""
