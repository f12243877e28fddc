"""Projects, which operators of the service create and limit."""

from typing import Annotated

from fastapi import Path, status

from app.api.edge.router import OPERATOR, READ, Router
from app.api.params.common import PAGE, Cursor, Limit, ServicesDep
from app.schemas.keys import ProjectName
from app.schemas.projects import Project, ProjectChange, ProjectPage, ProjectSpec, Usage

router = Router(needs=OPERATOR, prefix="/v1/projects", tags=["keys"])
of_project = Router(needs=READ, tags=["keys"])


@router.post("", status_code=status.HTTP_201_CREATED)
def create_project(body: ProjectSpec, services: ServicesDep) -> Project:
    """Create a project. A key for it is created with `POST /v1/keys`, which takes the name of the project."""
    return services.projects.create(body)


@router.get("")
def list_projects(services: ServicesDep, limit: Limit = PAGE, cursor: Cursor = None) -> ProjectPage:
    """List the projects of the service, newest first."""
    return services.projects.page(limit, cursor)


@router.patch("/{project}")
def change_project(
    project: Annotated[ProjectName, Path(description="Name of the project.")],
    body: ProjectChange,
    services: ServicesDep,
) -> Project:
    """Change the quotas of a project. They hold for what comes after: nothing that is there goes."""
    return services.projects.change(project, body)


@of_project.get("/v1/usage")
def get_usage(services: ServicesDep) -> Usage:
    """The quotas of the caller's project, and what it uses of them."""
    return services.projects.usage()


router.take(of_project)
