"""Names that a person gives to the clusters of a model version: all revisions, of which the newest applies.

The row of the model is the lock: whoever changes names takes it first.
"""

from collections.abc import Mapping

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from app.schemas.cluster_names import ClusterNames, ClusterNamesHistory, ClusterNamesRecord, NamedCluster
from app.store.base.paging import number
from app.store.models.model_tables import ClusterNamesRow
from app.store.models.models import ModelRepository


class ClusterNameRepository:
    def __init__(self, session: Session, models: ModelRepository) -> None:
        self.session = session
        self._models = models

    def current(self, model: str, version: int) -> ClusterNames:
        """Raises ModelNotFound, VersionNotFound."""
        self._models.demand(model, version)
        newest = select(ClusterNamesRow).where(*_of(model, version)).order_by(ClusterNamesRow.revision.desc())
        row = self.session.scalars(newest.limit(1)).one_or_none()
        revision = 0 if row is None else row.revision
        return ClusterNames(
            model=model,
            version=version,
            names=[] if row is None else _listed(row),
            revision=revision,
            updated_at=None if row is None else row.at,
            etag=f'"{revision}"',
        )

    def lock(self, model: str, version: int) -> ClusterNames:
        """The names, locked against other writers until the end of the transaction. Raises as `current` does."""
        self._models.lock(model)
        return self.current(model, version)

    def add(self, before: ClusterNames, names: Mapping[int, str], *, request_id: str | None) -> ClusterNames:
        """The next revision. Call it under `lock`. before: what `lock` returned."""
        row = ClusterNamesRow(
            model=before.model,
            version=before.version,
            revision=before.revision + 1,
            names={str(cluster): name for cluster, name in names.items()},
            request_id=request_id,
        )
        self.session.add(row)
        self.session.flush()
        return self.current(before.model, before.version)

    def history(self, model: str, version: int, limit: int, cursor: str | None = None) -> ClusterNamesHistory:
        """Changes, newest first. Raises as `current` does, and InvalidRequest for what is no cursor."""
        self._models.demand(model, version)
        query = select(ClusterNamesRow).where(*_of(model, version))
        if cursor is not None:
            query = query.where(ClusterNamesRow.revision < number(cursor))
        rows = self.session.scalars(query.order_by(ClusterNamesRow.revision.desc()).limit(limit + 1)).all()
        items = [
            ClusterNamesRecord(at=row.at, revision=row.revision, names=_listed(row), request_id=row.request_id)
            for row in rows[:limit]
        ]
        return ClusterNamesHistory(items=items, next_cursor=str(items[-1].revision) if len(rows) > limit else None)


def _of(model: str, version: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return ClusterNamesRow.model == model, ClusterNamesRow.version == version


def _listed(row: ClusterNamesRow) -> list[NamedCluster]:
    named = sorted((int(cluster), name) for cluster, name in row.names.items())
    return [NamedCluster(cluster=cluster, name=name) for cluster, name in named]
