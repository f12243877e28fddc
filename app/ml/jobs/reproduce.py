"""Make a version again from its receipt and compare the bytes.

The job that made the version runs again, on the same data and versions. It succeeds if the bytes are the same; else
its error names what differs.
"""

from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from app.base.errors import InvalidRequest, NotReproduced
from app.base.faults import summary
from app.ml.contract.model_reference import Name, VersionRef
from app.ml.contract.progress import Reporter
from app.ml.contract.task import Task
from app.ml.kinds.job import Checked, Estimate, Inputs, JobContext, Kind, Needs, Outcome, Request, Result
from app.ml.models.difference import differences
from app.ml.models.model import digest
from app.ml.preparation.request import Preprocessing
from app.ml.training.reporting.receipt import libraries


class ReproduceRequest(Request):
    """A stored version, and the job that made it."""

    model: Name = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    made_by: str = Field(description="Kind of the job that made the version.")
    request: dict[str, Any] = Field(description="Request of this job.")
    datasets: list[UUID] = Field(description="Ids of the datasets of this job, in the order of its needs.")
    models: list[VersionRef] = Field(description="Versions that this job rested on, in the order of its needs.")


class ReproduceResult(Result):
    """Proof that a version was made again, byte by byte."""

    kind: Literal["reproduce"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version that was made again, counted from 1.")
    made_by: str = Field(description="Kind of the job that made the version, and that has run again.")
    digest: str = Field(description="sha256: of the bytes, of both.")
    size_bytes: int = Field(description="Size of the model, in bytes.")


def needs(request: ReproduceRequest) -> Needs:
    models = (VersionRef(*one) for one in request.models)
    return Needs(tuple(request.datasets), (VersionRef(request.model, request.version), *models))


def check(request: ReproduceRequest, known: JobContext) -> Checked:
    version, *models = known.models
    kind = known.kinds.get(request.made_by)
    if kind is None:
        raise InvalidRequest(f"This release has no kind of job {request.made_by}.")
    original = kind.request.model_validate(request.request)
    for _, how in original:
        if isinstance(how, Preprocessing):
            how.model_fields_set.clear()  # a stored request names all defaults
    checked = kind.check(original, known._replace(models=tuple(models), in_doubt=Task(version.header.task)))
    used = version.header.receipt.get("libraries", {})
    others = [name for name, release in libraries().items() if used.get(name) != release]
    changed = f"Other releases than in the receipt: {', '.join(others)}. The bytes may differ for that alone."
    return checked._replace(
        model=request.model, algorithm=None, estimate=Estimate(warnings=[changed] if others else [])
    )


def run(request: ReproduceRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    stored, *models = inputs.models
    kind, version = inputs.kinds[request.made_by], stored.version
    context = inputs._replace(models=tuple(models), in_doubt=Task(version.header.task))
    made = kind.run(kind.request.model_validate(request.request), context, progress)
    if made.trained is None:
        raise NotReproduced("The job made no model this time.")
    blob = made.trained.blob
    if digest(blob) != version.digest:
        found = differences(stored.model, blob)
        raise NotReproduced(summary(found, "differences") or "The bytes differ.", faults=found)
    result = ReproduceResult(
        kind="reproduce",
        model=version.model,
        version=version.version,
        made_by=request.made_by,
        digest=version.digest,
        size_bytes=len(blob),
    )
    return Outcome(result=result)


KIND = Kind(
    operation="reproduce_model_version",
    request=ReproduceRequest,
    needs=needs,
    check=check,
    run=run,
    result=ReproduceResult,
    from_version=True,
)
