"""Projects on the wire."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from app.schemas.keys import ProjectName
from app.wire import Body, Wire

DEFAULT_NAME = "default"


class ProjectSpec(Body):
    """A project to be created."""

    name: ProjectName = Field(description="Name of the project: no other has it.")


class Project(Wire):
    """Owner of datasets, jobs and models: what one project stores no key of another reaches."""

    id: UUID = Field(description="Id of the project.")
    name: str = Field(description="Name of the project.")
    created_at: datetime = Field(description="Time of its creation, in UTC.")


class ProjectPage(Wire):
    """Page of a list of projects, newest first."""

    items: list[Project] = Field(description="Projects of the service.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")
