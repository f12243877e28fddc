"""Train one algorithm on one dataset; the result is a new version of the model."""

from collections.abc import Callable, Sequence

import pyarrow as pa
from pydantic import Field

from app.ml.contract.model_reference import Name
from app.ml.contract.progress import Reporter
from app.ml.job import Checked, Inputs, JobContext, Kind, Needs, Outcome, Request, Sheet, Trained
from app.ml.training.dry_run import TrainEstimate, estimate
from app.ml.training.edge_rows import edges_of, plan_edges, read_edge_rows
from app.ml.training.plan import Plan, plan
from app.ml.training.projection import Projection
from app.ml.training.related_table import RelatedTable
from app.ml.training.train import train
from app.ml.training.train_spec import TrainSpec
from app.references import DatasetReference


class TrainRequest(TrainSpec, Request):
    """Train one algorithm on one dataset; the result is a new version of the model."""

    model: Name = Field(description="The model that gets a new version; made if it does not exist.")
    dataset: DatasetReference | None = Field(
        None,
        description="The id of an uploaded dataset, or its name: the newest dataset of that name. Null: the rows are "
        "the items of the edges in `relations`, and the model predicts by item.",
    )


def needs(request: TrainRequest) -> Needs:
    wanted, relations = request.preprocessing.projection, request.relations
    own = () if request.dataset is None else (request.dataset,)
    related = () if relations is None or relations.form == "square" else (relations.dataset,)
    return Needs((*own, *related), () if wanted is None else (wanted.wanted,))


def check(request: TrainRequest, known: JobContext) -> Checked:
    rows, planned = _checked(request, known)
    name = request.algorithm.name
    names = dict.fromkeys([name, *(version.header.algorithm for version in known.models)])
    return Checked(request.model, name, tuple(names), estimate(planned, rows))


def _checked(request: TrainRequest, known: JobContext) -> tuple[int, Plan]:
    """Rows and plan of the training."""
    if request.dataset is None:
        edges_of(request)
        (sheet,) = known.datasets
        planned = plan_edges(request, RelatedTable(sheet.digest, sheet.columns), sheet.rows, known.memory_bytes)
        return planned.rows, planned
    sheet, *others = known.datasets
    related = [RelatedTable(one.digest, one.columns) for one in others]
    models = (Projection(*one) for one in known.models)
    return sheet.rows, _planned(request, sheet, related, known.memory_bytes, *models)


def run(request: TrainRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    source, *others = inputs.datasets
    if request.dataset is None:
        related = RelatedTable(source.sheet.digest, source.sheet.columns)
        planned, table = read_edge_rows(request, related, source.read(), inputs.memory_bytes)
        return Outcome(_trained(planned, lambda: table, source.sheet, inputs, progress))
    source = source.used_as(request.kinds)
    fitted = (Projection(*loaded.version, loaded.model) for loaded in inputs.models)
    others_read = [RelatedTable(one.sheet.digest, one.sheet.columns, one.read) for one in others]
    planned = _planned(request, source.sheet, others_read, inputs.memory_bytes, *fitted)
    read = source.read_beside if planned.batch_rows else source.read
    return Outcome(_trained(planned, read, source.sheet, inputs, progress))


def _trained(planned: Plan, read: Callable[[], pa.Table], sheet: Sheet, inputs: Inputs, progress: Reporter) -> Trained:
    """read: the rows, to which nothing else keeps a reference."""
    return train(planned, read(), data_digest=sheet.digest, reading=sheet.reading, progress=progress, each=inputs.each)


def _planned(
    request: TrainRequest,
    sheet: Sheet,
    related: Sequence[RelatedTable],
    memory_bytes: float,
    projection: Projection | None = None,
) -> Plan:
    """related: the dataset that the relations name, if they name one."""
    named = next(iter(related), None)
    planned = plan(request, sheet.columns, sheet.rows, memory_bytes, projection=projection, related=named)
    more = () if projection is None else projection.warnings(sheet.digest)
    return planned._replace(warnings=(*planned.warnings, *more))


KIND = Kind(
    operation="train_model",
    dry_run="validate_training",
    request=TrainRequest,
    estimate=TrainEstimate,
    needs=needs,
    check=check,
    run=run,
)
