"""The version that predicts: one that the caller names, by its number or an alias, else `champion`, else the newest."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from sqlalchemy import Integer, Select, and_, bindparam, func, literal, select

from app.store.annotation_tables import ClusterNamesRow
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
    names: Mapping[int, str] = MappingProxyType({})
    """Names that a person has given to clusters of the version, by their numbers."""

    @classmethod
    def of(cls, row: tuple[str, int, str, int, int, dict[str, Any] | None]) -> Self:
        """The pointer of a row of `statement`."""
        model, version, digest, size_bytes, revision, names = row
        pointer = cls(model, version, digest, size_bytes, revision)
        return pointer if names is None else pointer._replace(names={int(key): name for key, name in names.items()})


@lru_cache
def statement(*, version: bool, alias: bool) -> Select[tuple[str, int, str, int, int, dict[str, Any] | None]]:
    """The pointer, by what the caller names. Cached, because writing the statement takes longer than running it."""
    row, aliases = ModelVersionRow.__table__.c, AliasRow.__table__.c
    of_model = row.model == bindparam("model")
    given = ClusterNamesRow.__table__.c
    names = select(given.names).where(given.model == row.model, given.version == row.version)
    newest = names.order_by(given.revision.desc()).limit(1).scalar_subquery()
    if version:
        required = select(row.model, row.version, row.digest, row.size_bytes, literal(0, Integer), newest)
        return required.where(of_model, row.version == bindparam("version"))
    named = and_(aliases.model == row.model, aliases.alias == bindparam("alias"))
    required = select(row.model, row.version, row.digest, row.size_bytes, func.coalesce(aliases.revision, 0), newest)
    required = required.outerjoin_from(ModelVersionRow.__table__, AliasRow.__table__, named).where(of_model)
    aimed = row.version == aliases.version
    required = required.where(aimed) if alias else required.order_by(func.coalesce(aimed, False).desc())
    return required.order_by(row.version.desc()).limit(1)
