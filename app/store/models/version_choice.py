"""The version that predicts: one that the caller names, by its number or an alias, else `champion`, else the newest."""

from functools import lru_cache
from typing import Any

from sqlalchemy import Integer, Select, and_, bindparam, func, literal, select

from app.store.models.model_tables import AliasRow, ClusterNamesRow, ModelVersionRow


@lru_cache
def statement(*, version: bool, alias: bool) -> Select[tuple[str, int, str, int, int, dict[str, Any] | None]]:
    """The pointer, by what the caller names. Cached, because writing the statement takes longer than running it."""
    row, aliases = ModelVersionRow.__table__.c, AliasRow.__table__.c
    of_model = row.model == bindparam("model")
    names_columns = ClusterNamesRow.__table__.c
    names = select(names_columns.names).where(names_columns.model == row.model, names_columns.version == row.version)
    newest = names.order_by(names_columns.revision.desc()).limit(1).scalar_subquery()
    if version:
        required = select(row.model, row.version, row.digest, row.size_bytes, literal(0, Integer), newest)
        return required.where(of_model, row.version == bindparam("version"))
    named = and_(aliases.model == row.model, aliases.alias == bindparam("alias"))
    required = select(row.model, row.version, row.digest, row.size_bytes, func.coalesce(aliases.revision, 0), newest)
    required = required.outerjoin_from(ModelVersionRow.__table__, AliasRow.__table__, named).where(of_model)
    aimed = row.version == aliases.version
    required = required.where(aimed) if alias else required.order_by(func.coalesce(aimed, False).desc())
    return required.order_by(row.version.desc()).limit(1)
