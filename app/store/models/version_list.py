"""Versions of all models, newest first, without what is large: inputs, receipt, and metrics of single classes."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, case, cast, func, select, tuple_
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH
from sqlalchemy.orm import Session

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.schemas.models import VersionPage, VersionSummary
from app.store.models.model_tables import AliasRow, ModelVersionRow

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
CURSOR_MICROSECONDS, CURSOR_VERSION = re.compile("[0-9]{1,16}"), re.compile("[0-9]{1,9}")
"""Parts of a cursor: a time of this or the next two centuries, and a version."""


class VersionKey(NamedTuple):
    """Place of a version in the list."""

    created_at: datetime
    model: str
    version: int

    @property
    def cursor(self) -> str:
        return f"{(self.created_at - EPOCH) // MICROSECOND}.{self.model}.{self.version}"


def read_cursor(cursor: str) -> VersionKey:
    """The place of the last version of the page before. Raises InvalidRequest."""
    microseconds, _, rest = cursor.partition(".")
    model, _, version = rest.partition(".")
    if not (CURSOR_MICROSECONDS.fullmatch(microseconds) and model and CURSOR_VERSION.fullmatch(version)):
        raise InvalidRequest(faults=[Fault("/query/cursor", "This is not a cursor of a former page.")])
    return VersionKey(EPOCH + int(microseconds) * MICROSECOND, model, int(version))


def list_versions(
    session: Session, limit: int, cursor: str | None, *, model: str | None, dataset: UUID | None
) -> VersionPage:
    """A page of versions. model, dataset: only those of it; None: of all."""
    row = ModelVersionRow
    conditions: list[ColumnElement[bool]] = []
    if model is not None:
        conditions.append(row.model == model)
    if dataset is not None:
        conditions.append(row.dataset_id == dataset)
    columns = row.created_at, row.model, row.version
    if cursor is not None:
        conditions.append(tuple_(*columns) < tuple_(*read_cursor(cursor)))
    # Two statements: with the metrics in the first, those of all versions would be read before they are sorted.
    ordered = select(*columns).where(*conditions).order_by(*(column.desc() for column in columns)).limit(limit + 1)
    keys = [VersionKey(*key) for key in session.execute(ordered)]
    shown = keys[:limit]
    return VersionPage(items=_read(session, shown), next_cursor=shown[-1].cursor if len(keys) > limit else None)


def _read(session: Session, keys: Sequence[VersionKey]) -> list[VersionSummary]:
    """In the order of the keys; those that have been deleted since are left out."""
    if not keys:
        return []
    row = ModelVersionRow
    names = [(key.model, key.version) for key in keys]
    aliased = select(AliasRow.model, AliasRow.version, AliasRow.alias).where(
        tuple_(AliasRow.model, AliasRow.version).in_(names)
    )
    aliases: dict[tuple[str, int], list[str]] = {}
    for model, version, alias in session.execute(aliased.order_by(AliasRow.alias)):
        aliases.setdefault((model, version), []).append(alias)
    statement = select(
        row.model,
        row.version,
        row.created_at,
        row.algorithm,
        row.task,
        row.parameters,
        row.target,
        row.dataset_id.label("dataset"),
        row.job_id.label("job"),
        row.session_id.label("session"),
        row.size_bytes,
        _METRICS.label("metrics"),
        row.report["stages"].label("stages"),
    ).where(tuple_(row.model, row.version).in_(names))
    summaries = {
        (part["model"], part["version"]): VersionSummary(
            **part, aliases=aliases.get((part["model"], part["version"]), [])
        )
        for part in session.execute(statement).mappings()
    }
    return [summaries[name] for name in names if name in summaries]


_RANKED = case(
    (func.jsonb_array_length(ModelVersionRow.report["test"]) > 0, ModelVersionRow.report["test"]),
    else_=ModelVersionRow.report["train"],
)
_WITHOUT_LABEL = cast("$[*] ? (!exists(@.label) || @.label == null)", JSONPATH)
_METRICS = func.jsonb_path_query_array(_RANKED, _WITHOUT_LABEL, type_=JSONB)
"""Metrics of all classes at once, of test rows if there are any."""
