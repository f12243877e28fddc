"""Projects, which operators of the service create."""

from fastapi import status

from app.api.edge.router import OPERATOR, Router
from app.api.params.common import PAGE, Cursor, Limit, ServicesDep
from app.schemas.projects import Project, ProjectPage, ProjectSpec

router = Router(needs=OPERATOR, prefix="/v1/projects", tags=["keys"])


@router.post("", status_code=status.HTTP_201_CREATED)
def create_project(body: ProjectSpec, services: ServicesDep) -> Project:
    """Create a project. A key for it is created with `POST /v1/keys`, which takes the name of the project."""
    return services.projects.create(body)


@router.get("")
def list_projects(services: ServicesDep, limit: Limit = PAGE, cursor: Cursor = None) -> ProjectPage:
    """List the projects of the service, newest first."""
    return services.projects.page(limit, cursor)
