"""Train one algorithm on one dataset; the result is a new version of the model."""

from pydantic import Field

from app.ml.contract.model_reference import Name
from app.ml.contract.progress import Reporter
from app.ml.job import Checked, Inputs, JobContext, Kind, Needs, Outcome, Request
from app.ml.training.dry_run import TrainEstimate, estimate
from app.ml.training.plan import plan
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
    return Needs(datasets=(request.dataset,))


def check(request: TrainRequest, known: JobContext) -> Checked:
    (sheet,) = known.datasets
    planned = plan(request, sheet.columns, sheet.rows, known.memory_bytes)
    name = request.algorithm.name
    return Checked(request.model, name, (name,), estimate(planned, sheet.rows))


def run(request: TrainRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (source,) = inputs.datasets
    source = source.used_as(request.kinds)
    sheet = source.sheet
    planned = plan(request, sheet.columns, sheet.rows, inputs.memory_bytes)
    read = source.read_beside if planned.batch_rows else source.read
    trained = train(
        planned, read(), data_digest=sheet.digest, reading=sheet.reading, progress=progress, each=inputs.each
    )
    return Outcome(trained)


KIND = Kind(
    operation="train_model",
    dry_run="validate_training",
    request=TrainRequest,
    estimate=TrainEstimate,
    needs=needs,
    check=check,
    run=run,
)
