"""Train one algorithm on one dataset; the result is a new version of the model."""

from collections.abc import Sequence

from pydantic import Field

from app.ml.contract.model_reference import Name
from app.ml.contract.progress import Reporter
from app.ml.job import Checked, Inputs, JobContext, Kind, Needs, Outcome, Request, Sheet
from app.ml.training.dry_run import TrainEstimate, estimate
from app.ml.training.plan import Plan, plan
from app.ml.training.projection import Projection
from app.ml.training.related_table import RelatedTable
from app.ml.training.train import train
from app.ml.training.train_spec import TrainSpec
from app.references import DatasetReference


class TrainRequest(TrainSpec, Request):
    """Train one algorithm on one dataset; the result is a new version of the model."""

    model: Name = Field(description="The model that gets a new version; made if it does not exist.")
    dataset: DatasetReference = Field(
        description="The id of an uploaded dataset, or its name: the newest dataset of that name."
    )


def needs(request: TrainRequest) -> Needs:
    wanted, relations = request.preprocessing.projection, request.relations
    related = () if relations is None or relations.form == "square" else (relations.dataset,)
    return Needs((request.dataset, *related), () if wanted is None else (wanted.wanted,))


def check(request: TrainRequest, known: JobContext) -> Checked:
    sheet, *others = known.datasets
    related = [RelatedTable(one.digest, one.columns) for one in others]
    planned = _planned(request, sheet, related, known.memory_bytes, *(Projection(*one) for one in known.models))
    name = request.algorithm.name
    names = dict.fromkeys([name, *(version.header.algorithm for version in known.models)])
    return Checked(request.model, name, tuple(names), estimate(planned, sheet.rows))


def run(request: TrainRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    source, *others = inputs.datasets
    source = source.used_as(request.kinds)
    sheet = source.sheet
    fitted = (Projection(*loaded.version, loaded.model) for loaded in inputs.models)
    related = [RelatedTable(one.sheet.digest, one.sheet.columns, one.read) for one in others]
    planned = _planned(request, sheet, related, inputs.memory_bytes, *fitted)
    read = source.read_beside if planned.batch_rows else source.read
    trained = train(
        planned, read(), data_digest=sheet.digest, reading=sheet.reading, progress=progress, each=inputs.each
    )
    return Outcome(trained)


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
