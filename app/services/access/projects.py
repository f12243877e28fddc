"""Projects: created and listed by operators of the service."""

from app.schemas.projects import Project, ProjectChange, ProjectPage, ProjectSpec, Usage
from app.store.unit_of_work import WorkFactory


class Projects:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work

    def create(self, spec: ProjectSpec) -> Project:
        """Raises ProjectExists."""
        with self._work() as w:
            return w.projects.add(spec)

    def change(self, name: str, change: ProjectChange) -> Project:
        """Raises ProjectNotFound."""
        with self._work() as w:
            return w.projects.change(name, change)

    def usage(self) -> Usage:
        """Usage of the project of the request, beside its limits."""
        with self._work() as w:
            return w.quotas.usage()

    def page(self, limit: int, cursor: str | None) -> ProjectPage:
        with self._work() as w:
            return w.projects.page(limit, cursor)
