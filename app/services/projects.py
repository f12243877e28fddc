"""Projects: created and listed by operators of the service."""

from app.schemas.projects import Project, ProjectPage, ProjectSpec
from app.store.unit_of_work import WorkFactory


class Projects:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work

    def create(self, spec: ProjectSpec) -> Project:
        """Raises ProjectExists."""
        with self._work() as w:
            return w.projects.add(spec.name)

    def page(self, limit: int, cursor: str | None) -> ProjectPage:
        with self._work() as w:
            return w.projects.page(limit, cursor)
