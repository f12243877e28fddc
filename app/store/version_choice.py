"""The version that predicts: one that the caller names, by its number or an alias, else `champion`, else the newest."""

from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Integer, Select, and_, bindparam, func, literal, select

from app.store.tables import AliasRow, ModelVersionRow

CHAMPION = "champion"


class Pointer(NamedTuple):
    """Reference to the bytes of a model version. The bytes of a version never change; the version of an alias may."""

    model: str
    version: int
    digest: str
    size_bytes: int
    revision: int = 0
    """Moves so far of the alias that led here; 0 if none did."""


@lru_cache
def statement(*, version: bool, alias: bool) -> Select[tuple[str, int, str, int, int]]:
    """The pointer, by what the caller names. Cached, because writing the statement takes longer than running it."""
    row, aliases = ModelVersionRow.__table__.c, AliasRow.__table__.c
    of_model = row.model == bindparam("model")
    if version:
        required = select(row.model, row.version, row.digest, row.size_bytes, literal(0, Integer))
        return required.where(of_model, row.version == bindparam("version"))
    named = and_(aliases.model == row.model, aliases.alias == bindparam("alias"))
    required = select(row.model, row.version, row.digest, row.size_bytes, func.coalesce(aliases.revision, 0))
    required = required.outerjoin_from(ModelVersionRow.__table__, AliasRow.__table__, named).where(of_model)
    aimed = row.version == aliases.version
    required = required.where(aimed) if alias else required.order_by(func.coalesce(aimed, False).desc())
    return required.order_by(row.version.desc()).limit(1)
