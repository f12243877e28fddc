"""Projects: owners of everything else."""

from collections.abc import Sequence
from typing import Any, get_args
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.base.errors import ValiantError
from app.base.project_context import PROJECT
from app.ml.contract.file_formats import GuardedFormat
from app.schemas.projects import Project, ProjectChange, ProjectPage, ProjectQuotas, ProjectSpec
from app.store.base.new_ids import uuid7
from app.store.base.paging import id_in
from app.store.base.project_table import ProjectRow


class ProjectNotFound(ValiantError):
    code, status, title = "project_not_found", 404, "No such project"


class ProjectExists(ValiantError):
    code, status, title = "project_exists", 409, "There is a project of this name"


class ProjectRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(self, spec: ProjectSpec) -> Project:
        """Raises ProjectExists."""
        if not self._insert(spec):
            raise ProjectExists
        return self.get(spec.name)

    def ensure(self, name: str) -> Project:
        """The project of this name, created with the standard quotas if there is none."""
        self._insert(ProjectSpec(name=name))
        return self.get(name)

    def change(self, name: str, change: ProjectChange) -> Project:
        """Leaves what is not given as it is. Raises ProjectNotFound."""
        values: dict[str, Any] = {"quotas": ProjectRow.quotas.concat(change.quotas.model_dump(exclude_unset=True))}
        if change.file_formats is not None:
            values["file_formats"] = _once(change.file_formats)
        self.session.execute(update(ProjectRow).where(ProjectRow.name == name).values(values))
        return self.get(name)

    def file_formats(self) -> tuple[str, ...]:
        """Formats that the project of the unit of work may import besides the standard ones."""
        query = select(ProjectRow.file_formats).where(ProjectRow.id == PROJECT.get())
        return tuple(self.session.scalars(query).one())

    def request_rates(self) -> dict[UUID, float]:
        """Requests a second of the projects that have a limit of them."""
        rate = ProjectRow.quotas["requests_per_second"].as_float()
        return {row.id: row.rate for row in self.session.execute(select(ProjectRow.id, rate.label("rate"))) if row.rate}

    def ids(self) -> Sequence[UUID]:
        """Ids of all projects, the newest last."""
        return self.session.scalars(select(ProjectRow.id).order_by(ProjectRow.id)).all()

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

    def _insert(self, spec: ProjectSpec) -> UUID | None:
        """None if there is one of this name."""
        values = {"quotas": spec.quotas.model_dump(), "file_formats": _once(spec.file_formats)}
        added = insert(ProjectRow).values(id=uuid7(), name=spec.name, **values)
        added = added.on_conflict_do_nothing(index_elements=["name"])
        return self.session.scalar(added.returning(ProjectRow.id))


def _once(formats: Sequence[str]) -> list[str]:
    return sorted(set(formats))


def _project(row: ProjectRow) -> Project:
    quotas = ProjectQuotas(**row.quotas)
    return Project(
        id=row.id, name=row.name, quotas=quotas, file_formats=_known(row.file_formats), created_at=row.created_at
    )


def _known(formats: Sequence[str]) -> list[GuardedFormat]:
    """A later release may have stored others."""
    return [file_format for file_format in get_args(GuardedFormat) if file_format in formats]
