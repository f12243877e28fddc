"""Train one algorithm on one dataset; the result is a new version of the model."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.references import DatasetReference
from app.ml.contract.model_reference import ModelRef, Name
from app.ml.contract.progress import Reporter
from app.ml.contract.task import Task
from app.ml.kinds.job import Checked, Inputs, JobContext, Kind, Needs, Outcome, Request, Sheet, Source, Trained
from app.ml.training.dry_run import TrainEstimate, estimate, row_look
from app.ml.training.planning.counts import scaling_faults
from app.ml.training.planning.edge_rows import edges_of, plan_edges, read_edge_rows
from app.ml.training.planning.plan import Plan, plan
from app.ml.training.planning.projection import Projection
from app.ml.training.planning.related_table import RelatedTable
from app.ml.training.planning.start import AT, Start, start_faults
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.related_rows import check_relations
from app.ml.training.train import train

Versions: TypeAlias = tuple[Projection | None, Start | None]
"""Those that a request names."""


class TrainRequest(TrainSpec, Request):
    """Train one algorithm on one dataset; the result is a new version of the model."""

    model: Name = Field(description="The model that gets a new version; made if it does not exist.")
    dataset: DatasetReference | None = Field(
        None,
        description="The id of an uploaded dataset, or its name: the newest dataset of that name. Null: the rows are "
        "the items of the edges in `relations`, and the model predicts by item.",
    )
    initialise_from: ModelRef | None = Field(
        None,
        description="A version of a model of the same algorithm, columns, classes and preprocessing, from which the "
        "fit starts: from its centres in place of random draws for `kmeans`, with as many clusters, and from its "
        "coefficients in place of zeros for `linear_sgd`, `logistic` and `perceptron`. Scales are learned anew, and "
        "the numbers converted. The version is kept while one that started from it exists. Null: the fit starts anew.",
    )


def needs(request: TrainRequest) -> Needs:
    relations = request.relations
    models = tuple(one.wanted for one in (request.preprocessing.projection, request.initialise_from) if one)
    own = () if request.dataset is None else (request.dataset,)
    related = () if relations is None or relations.form == "square" else (relations.dataset,)
    return Needs((*own, *related), models)


def check(request: TrainRequest, known: JobContext) -> Checked:
    faults = [*scaling_faults(request.preprocessing, [request.algorithm])]
    versions = _versions(request, [(*one, None) for one in known.models])
    try:
        rows, planned = _checked(request, known, versions)
    except InvalidRequest as error:
        raise InvalidRequest(error.detail, faults=(*error.faults, *faults)) from None
    if faults:
        raise InvalidRequest(faults=faults)
    name = request.algorithm.name
    names = dict.fromkeys([name, *(version.header.algorithm for version in known.models)])
    related = None if request.relations is None else partial(_check_rows, request, known, versions)
    look = None if request.dataset is None else row_look(planned, request.kinds)
    return Checked(request.model, name, tuple(names), estimate(planned, rows), related, look)


def _checked(request: TrainRequest, known: JobContext, versions: Versions) -> tuple[int, Plan]:
    """Rows and plan of the training."""
    if request.dataset is None:
        edges_of(request)
        (sheet,) = known.datasets
        related = RelatedTable(sheet.digest, sheet.columns)
        planned = _started(request, versions[1], lambda: plan_edges(request, related, sheet.rows, known.memory_bytes))
        rows = planned.rows
    else:
        sheet, *others = known.datasets
        found = [RelatedTable(one.digest, one.columns) for one in others]
        planned, rows = _planned(request, sheet, found, known, versions), sheet.rows
    return rows, planned


def _check_rows(request: TrainRequest, known: JobContext, versions: Versions, sources: Sequence[Source]) -> None:
    """Reads the relations. Raises InvalidRequest, naming cells, as the job would."""
    planned, read = _rows(request, sources, known, versions)
    check_relations(planned, read())


def _rows(
    request: TrainRequest, sources: Sequence[Source], limits: JobContext | Inputs, versions: Versions
) -> tuple[Plan, Callable[[], pa.Table]]:
    """The plan, and what reads the rows; only once."""
    source, *others = sources
    if request.dataset is None:
        related = RelatedTable(source.sheet.digest, source.sheet.columns)
        planned, table = read_edge_rows(request, related, source.read(), limits.memory_bytes)
        return planned, lambda: table
    source = source.used_as(request.kinds)
    found = [RelatedTable(one.sheet.digest, one.sheet.columns, one.read) for one in others]
    planned = _planned(request, source.sheet, found, limits, versions)
    return planned, source.read_beside if planned.batch_rows else source.read


def run(request: TrainRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    versions = _versions(request, [(*loaded.version, loaded.model) for loaded in inputs.models])
    planned, read = _rows(request, inputs.datasets, inputs, versions)
    return Outcome(_trained(planned, read, inputs, progress))


def _versions(request: TrainRequest, found: Sequence[tuple[Any, ...]]) -> Versions:
    """The versions that the request names, each with its fields. found: in the order of `needs`."""
    rest = iter(found)
    projection = None if request.preprocessing.projection is None else Projection(*next(rest))
    return projection, None if request.initialise_from is None else Start(*next(rest))


def _trained(planned: Plan, read: Callable[[], pa.Table], inputs: Inputs, progress: Reporter) -> Trained:
    """read: the rows, to which nothing else keeps a reference."""
    source = inputs.datasets[0]
    return train(
        planned,
        read(),
        data_digest=source.sheet.digest,
        reading=source.sheet.reading,
        progress=progress,
        each=inputs.each,
        spool_rows=source.spool_rows,
    )


def _planned(
    request: TrainRequest,
    sheet: Sheet,
    related: Sequence[RelatedTable],
    context: JobContext | Inputs,
    versions: Versions,
) -> Plan:
    """related: the dataset that the relations name, if they name one."""
    named = next(iter(related), None)
    projection, start = versions
    in_doubt = context.in_doubt if start is None else Task(start.header.task)

    def make() -> Plan:
        return plan(
            request,
            sheet.columns,
            sheet.rows,
            context.memory_bytes,
            projection=projection,
            related=named,
            in_doubt=in_doubt,
        )

    planned = _started(request, start, make)
    more = [warning for one in (projection, start) if one for warning in one.warnings(sheet.digest)]
    return planned._replace(warnings=(*planned.warnings, *more))


def _started(request: TrainRequest, start: Start | None, make: Callable[[], Plan]) -> Plan:
    """The plan with the version that it starts from. Raises InvalidRequest with every fault of both."""
    if start is None or request.initialise_from is None:
        return make()
    faults = [*request.initialise_from.choice_faults(AT)]
    try:
        planned = make()
    except InvalidRequest as error:
        raise InvalidRequest(faults=(*error.faults, *faults, *start_faults(request, start, None))) from None
    if faults := [*faults, *start_faults(request, start, planned)]:
        raise InvalidRequest(faults=faults)
    return planned._replace(start=start)


KIND = Kind(
    operation="train_model",
    dry_run="validate_training",
    request=TrainRequest,
    estimate=TrainEstimate,
    needs=needs,
    check=check,
    run=run,
)
