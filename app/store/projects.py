"""Projects: owners of everything else."""

from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.errors import ValiantError
from app.schemas.projects import STANDARD, Project, ProjectPage, ProjectQuotas, Quotas
from app.store.access_tables import ProjectRow
from app.store.new_ids import uuid7
from app.store.paging import id_in


class ProjectNotFound(ValiantError):
    code, status, title = "project_not_found", 404, "No such project"


class ProjectExists(ValiantError):
    code, status, title = "project_exists", 409, "There is a project of this name"


class ProjectRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(self, name: str, quotas: Quotas) -> Project:
        """Raises ProjectExists."""
        if not self._insert(name, quotas):
            raise ProjectExists
        return self.get(name)

    def ensure(self, name: str) -> Project:
        """The project of this name, created with the standard quotas if there is none."""
        self._insert(name, STANDARD)
        return self.get(name)

    def change(self, name: str, quotas: Quotas) -> Project:
        """Quotas that are not given stay. Raises ProjectNotFound."""
        changed = ProjectRow.quotas.concat(quotas.model_dump(exclude_unset=True))
        self.session.execute(update(ProjectRow).where(ProjectRow.name == name).values(quotas=changed))
        return self.get(name)

    def request_rates(self) -> dict[UUID, float]:
        """Requests a second of the projects that have a limit of them."""
        rate = ProjectRow.quotas["requests_per_second"].as_float()
        return {row.id: row.rate for row in self.session.execute(select(ProjectRow.id, rate.label("rate"))) if row.rate}

    def get(self, name: str) -> Project:
        """Raises ProjectNotFound."""
        row = self.session.scalars(select(ProjectRow).where(ProjectRow.name == name)).one_or_none()
        if row is None:
            raise ProjectNotFound
        return _project(row)

    def page(self, limit: int, cursor: str | None) -> ProjectPage:
        """Newest first; the cursor is the last id of the page before."""
        before = [] if cursor is None else [ProjectRow.id < id_in(cursor)]
        query = select(ProjectRow).where(*before).order_by(ProjectRow.id.desc()).limit(limit + 1)
        rows = self.session.scalars(query).all()
        items = [_project(row) for row in rows[:limit]]
        return ProjectPage(items=items, next_cursor=str(items[-1].id) if len(rows) > limit else None)

    def _insert(self, name: str, quotas: Quotas) -> UUID | None:
        """None if there is one of this name."""
        added = insert(ProjectRow).values(id=uuid7(), name=name, quotas=quotas.model_dump())
        added = added.on_conflict_do_nothing(index_elements=["name"])
        return self.session.scalar(added.returning(ProjectRow.id))


def _project(row: ProjectRow) -> Project:
    return Project(id=row.id, name=row.name, quotas=ProjectQuotas(**row.quotas), created_at=row.created_at)
