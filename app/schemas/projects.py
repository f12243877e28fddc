"""Projects on the wire."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from app.base.settings import GiB
from app.base.validated_copy import ValidatedCopy
from app.base.wire import Body, Wire
from app.ml.contract.file_formats import GuardedFormat
from app.schemas.keys import ProjectName

DEFAULT_NAME = "default"


class _Limits(ValidatedCopy, BaseModel):
    storage_bytes: int | None = Field(None, ge=0, description="Bytes of its datasets, files and models; null: any.")
    model_versions: int | None = Field(None, ge=0, description="Number of its model versions; null: any.")
    queued_jobs: int | None = Field(None, ge=0, description="Number of its jobs that wait; null: any.")
    running_jobs: int | None = Field(
        None, ge=0, description="Number of its jobs that run at a time, beyond which others wait; null: any."
    )
    run_seconds_per_day: float | None = Field(
        None, ge=0, description="Seconds that its jobs run within a day, in UTC; null: any."
    )
    requests_per_second: float | None = Field(
        None, gt=0, le=1e9, description="Requests a second with its keys, on average over a second; null: any."
    )


class Quotas(Body, _Limits):
    """Limits that a project is to have; null: no limit."""


class ProjectQuotas(Wire, _Limits):
    """Limits of a project; one that is absent is no limit."""


STANDARD = Quotas(
    storage_bytes=50 * GiB,
    model_versions=1000,
    queued_jobs=100,
    running_jobs=4,
    run_seconds_per_day=86_400,
)
"""Those of a new project. The project `default` has none."""


FORMATS = (
    "Formats of model files that the project may import besides the standard ones: `onnx`, whose graphs are read and "
    "computed by onnxruntime, a large library in C++; `valiant`, artifacts of this service, whose arrays its compiled "
    "loops trust. Both predict in the processes that serve all projects."
)


class ProjectSpec(Body):
    """A project to be created."""

    name: ProjectName = Field(description="Name of the project: no other has it.")
    quotas: Quotas = Field(STANDARD, description="Limits of the project.")
    file_formats: list[GuardedFormat] = Field([], max_length=10, description=FORMATS)


class ProjectChange(Body):
    """A change of a project."""

    quotas: Quotas = Field(Quotas(), description="Limits that change; those left out stay.")
    file_formats: list[GuardedFormat] | None = Field(None, max_length=10, description=f"{FORMATS} Null: as they are.")


class Project(Wire):
    """Owner of datasets, jobs and models: what one project stores no key of another reaches."""

    id: UUID = Field(description="Id of the project.")
    name: str = Field(description="Name of the project.")
    quotas: ProjectQuotas = Field(description="Limits of the project.")
    file_formats: list[GuardedFormat] = Field(description=FORMATS)
    created_at: datetime = Field(description="Time of its creation, in UTC.")


class ProjectPage(Wire):
    """Page of a list of projects, newest first."""

    items: list[Project] = Field(description="Projects of the service.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")


class Usage(Wire):
    """The caller's project beside its limits."""

    project: str = Field(description="Name of the project.")
    quotas: ProjectQuotas = Field(description="Limits of the project.")
    storage_bytes: int = Field(description="Bytes of its datasets and files, as they were uploaded, and of its models.")
    model_versions: int = Field(description="Number of its model versions.")
    queued_jobs: int = Field(description="Number of its jobs that wait.")
    running_jobs: int = Field(description="Number of its jobs that run.")
    run_seconds_per_day: float = Field(description="Seconds that its jobs have run since the day began, in UTC.")
