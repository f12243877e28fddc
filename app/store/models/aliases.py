"""Aliases: names that point at a version of a model, and their moves.

The row of the model is the lock: whoever moves an alias takes it first.
"""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.base.errors import AliasNotFound, VersionNotFound
from app.base.suggestions import no_such
from app.ml.contract.model_reference import VersionRef
from app.schemas.models import Alias, AliasHistory, AliasRecord
from app.store.base.paging import number, page_conditions
from app.store.models.model_tables import AliasMoveRow, AliasRow
from app.store.models.models import ModelRepository, alias_of
from app.store.models.pointer import CHAMPION, Pointer
from app.store.models.version_choice import statement


class AliasRepository:
    def __init__(self, session: Session, models: ModelRepository) -> None:
        self.session = session
        self._models = models

    # pointers and aliases

    def pointer(self, model: str, *, version: int | None = None, alias: str | None = None) -> Pointer:
        """The version that is meant: this version, this alias, else `champion` if there is one, else the newest."""
        chosen = statement(version=version is not None, alias=alias is not None)
        parameters = {"model": model, "version": version, "alias": alias or CHAMPION}
        row = self.session.execute(chosen, parameters).one_or_none()
        if row is None:
            raise self._models.absent(model, VersionNotFound() if alias is None else self._no_alias(model, alias))
        return Pointer.of(row)

    def latest(self, limit: int) -> list[VersionRef]:
        """Aliases that were moved last, as references."""
        rows = select(AliasRow.model, AliasRow.alias).order_by(AliasRow.updated_at.desc()).limit(limit)
        return [VersionRef(model, alias=alias) for model, alias in self.session.execute(rows)]

    def lock(self, model: str, alias: str) -> Alias | None:
        """The alias, locked against other movers until the end of the transaction; None if it is not set."""
        self._models.lock(model)
        row = self.session.get(AliasRow, (model, alias), populate_existing=True)
        return None if row is None else alias_of(row)

    def move(self, model: str, alias: str, version: int, *, request_id: str | None) -> Alias:
        """Set or move, and write it down. Call it under `lock`. Raises VersionNotFound."""
        self._models.demand(model, version)
        row = self.session.get(AliasRow, (model, alias))
        before = None if row is None else row.version
        # The record outlives the alias, so its length never repeats: an ETag of an earlier life matches nothing.
        revision = self._moves(model, alias) + 1
        now = self.session.scalars(select(func.clock_timestamp())).one()
        row = self.session.merge(AliasRow(model=model, alias=alias, version=version, revision=revision, updated_at=now))
        self.session.add(
            AliasMoveRow(model=model, alias=alias, version=version, previous_version=before, request_id=request_id)
        )
        self.session.flush()
        return alias_of(row)

    def _moves(self, model: str, alias: str) -> int:
        mine = select(func.count()).where(AliasMoveRow.model == model, AliasMoveRow.alias == alias)
        return self.session.scalars(mine).one()

    def history(self, model: str, alias: str, limit: int, cursor: str | None = None) -> AliasHistory:
        """Moves, newest first; also of an alias or a model that is gone. Raises AliasNotFound if it never was."""
        conditions, order = page_conditions([(AliasMoveRow.model, model), (AliasMoveRow.alias, alias)], AliasMoveRow.id)
        mine = select(AliasMoveRow).where(*conditions)
        if cursor is not None:
            mine = mine.where(AliasMoveRow.id < number(cursor))
        moves = self.session.scalars(mine.order_by(*order).limit(limit + 1)).all()
        if not moves and cursor is None:
            raise self._models.absent(model, self._no_alias(model, alias))
        return AliasHistory(
            items=[_record(move) for move in moves[:limit]],
            next_cursor=str(moves[limit - 1].id) if len(moves) > limit else None,
        )

    def _no_alias(self, model: str, alias: str) -> AliasNotFound:
        """With the closest of the aliases that the model has."""
        names = self.session.scalars(select(AliasRow.alias).where(AliasRow.model == model)).all()
        return AliasNotFound(no_such("The model has no alias", alias, names))


def _record(move: AliasMoveRow) -> AliasRecord:
    return AliasRecord(
        at=move.at, version=move.version, previous_version=move.previous_version, request_id=move.request_id
    )
