"""Models and their immutable versions.

A model exists while it has a version. Its row in `models` outlives the last one: it is the
counter, so that a number which meant something once never means anything else.
That row is also the lock of the model: whoever adds, deletes or moves takes it first.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Integer, case, delete, func, literal, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, defer
from sqlalchemy.sql.base import ExecutableOption

from app.base.errors import ModelNotFound, VersionInUse, VersionNotFound
from app.base.suggestions import no_such
from app.ml.evaluation.report import Report
from app.ml.models.header import read_header
from app.schemas.algorithms import output_cards
from app.schemas.models import Alias, Model, ModelPage, ModelVersion, VersionPage
from app.store.models.model_tables import AliasRow, ModelChunkRow, ModelRow, ModelVersionRow
from app.store.models.version_list import list_versions

NEIGHBOURS = 500
"""Names before and after one that does not exist, among which the closest is looked for."""

NAMED = 10
"""Versions that an error names."""


class ModelRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    # versions

    def add_version(
        self,
        *,
        model: str,
        job_id: UUID | None,
        dataset_id: UUID | None,
        session_id: UUID | None = None,
        blob: bytes,
        report: Report,
        golden: dict[str, Any],
        chunk_bytes: int = 4 << 20,
    ) -> ModelVersion:
        """The next version of `model`, which is made if missing. The rest is read from the header of `blob`."""
        header = read_header(blob)
        row = ModelVersionRow(
            model=model,
            version=self._next_number(model),
            job_id=job_id,
            dataset_id=dataset_id,
            session_id=session_id,
            dataset_digest=str(header.receipt["data_digest"]),
            algorithm=header.algorithm,
            task=str(header.task),
            parameters=header.parameters,
            target=header.target,
            classes=None if header.classes is None else list(header.classes),
            inputs=[column.model_dump(mode="json") for column in header.inputs],
            receipt=header.receipt,
            report=report.model_dump(mode="json"),
            golden=golden,
            digest=f"sha256:{hashlib.sha256(blob).hexdigest()}",
            size_bytes=len(blob),
        )
        self.session.add(row)
        self.session.flush()
        for seq, start in enumerate(range(0, len(blob), chunk_bytes)):
            chunk = {"model": model, "version": row.version, "seq": seq, "payload": blob[start : start + chunk_bytes]}
            self.session.execute(insert(ModelChunkRow), chunk)
        self.session.refresh(row, ["created_at"])
        return _version(row, row.report["test"] or row.report["train"], row.report["warnings"])

    def published(self, model: str, session_id: UUID, digest: str) -> ModelVersion | None:
        """The version with these bytes that was published from a session, if there is one."""
        query = select(ModelVersionRow.version).where(
            ModelVersionRow.model == model, ModelVersionRow.session_id == session_id, ModelVersionRow.digest == digest
        )
        version = self.session.scalar(query.order_by(ModelVersionRow.version).limit(1))
        return None if version is None else self.version(model, version)

    def _next_number(self, model: str) -> int:
        grown = insert(ModelRow).values(name=model, last_version=1)
        grown = grown.on_conflict_do_update(
            index_elements=[ModelRow.project_id, ModelRow.name], set_={"last_version": ModelRow.last_version + 1}
        )
        return self.session.execute(grown.returning(ModelRow.last_version)).scalar_one()

    def version(self, model: str, version: int) -> ModelVersion:
        """The record of a version, without the larger part of its report, which is not read."""
        return _version(*self._found(model, version, ModelVersionRow, *_SHOWN, options=_SLIM))

    def versions(self, limit: int, cursor: str | None, *, model: str | None, dataset: UUID | None) -> VersionPage:
        """Versions of all models, newest first, or those of a model, or of a dataset."""
        return list_versions(self.session, limit, cursor, model=model, dataset=dataset)

    def report(self, model: str, version: int) -> Report:
        return Report.model_validate(self._found(model, version, ModelVersionRow.report)[0])

    def golden(self, model: str, version: int) -> dict[str, Any]:
        """A few rows as a client would send them, and the predictions for them when the model was fitted."""
        golden: dict[str, Any] = self._found(model, version, ModelVersionRow.golden)[0]
        return golden

    def chunk(self, model: str, version: int, seq: int) -> bytes:
        """The `seq`-th chunk of the stored bytes. Raises VersionNotFound when it is gone."""
        payload = self.session.scalar(
            select(ModelChunkRow.payload).where(
                ModelChunkRow.model == model, ModelChunkRow.version == version, ModelChunkRow.seq == seq
            )
        )
        if payload is None:
            raise VersionNotFound
        return payload

    def delete_version(self, model: str, version: int) -> None:
        """Raises VersionInUse while an alias points at it, or a version has it as its projection or its start."""
        self.lock(model)
        self.demand(model, version)
        aliases = self.session.scalars(
            select(AliasRow.alias).where(AliasRow.model == model, AliasRow.version == version).order_by(AliasRow.alias)
        ).all()
        if aliases:
            raise VersionInUse(f"Aliases that point at it: {', '.join(aliases)}.")
        self._demand_unused({"model": model, "version": version})
        self.session.execute(delete(ModelVersionRow).where(*_at(model, version)))

    def _demand_unused(self, named: Mapping[str, str | int], *further: ColumnElement[bool]) -> None:
        """named: what receipts name it by. further: which versions may not use it; all of them if there is none."""
        row = ModelVersionRow
        uses = or_(*(row.receipt.contains({use: dict(named)}) for use in ("projection", "initialised_from")))
        used = self.session.execute(
            select(row.model, row.version).where(uses, *further).order_by(row.model, row.version).limit(NAMED)
        ).all()
        if used:
            names = ", ".join(f"{name}/{version}" for name, version in used)
            raise VersionInUse(f"Versions that have it as their projection or their start: {names}.")

    def demand(self, model: str, version: int) -> None:
        """Raises ModelNotFound or VersionNotFound unless it exists."""
        self._found(model, version, literal(1, Integer))

    def _found(self, model: str, version: int, *wanted: Any, options: Sequence[ExecutableOption] = ()) -> Sequence[Any]:
        """These columns of the version."""
        row = self.session.execute(select(*wanted).where(*_at(model, version)).options(*options)).one_or_none()
        if row is None:
            raise self.absent(model, VersionNotFound())
        return row

    # models

    def page(self, limit: int, cursor: str | None = None) -> ModelPage:
        """Models in alphabetical order; the cursor is the last name of the page before."""
        names = self.session.scalars(
            select(ModelRow.name)
            .where(ModelRow.name > (cursor or ""), _EXISTS)
            .order_by(ModelRow.name)
            .limit(limit + 1)
        ).all()
        items = self._described(names[:limit])
        return ModelPage(items=items, next_cursor=items[-1].name if len(names) > limit else None)

    def get(self, model: str) -> Model:
        models = self._described([model])
        if not models:
            raise self._not_found(model)
        return models[0]

    def delete(self, model: str) -> None:
        """All versions and aliases. The record of alias moves stays, and so does the counter of versions.

        Raises VersionInUse while a version of another model has one as its projection or its start.
        """
        self.lock(model)
        self._demand_unused({"model": model}, ModelVersionRow.model != model)
        self.session.execute(delete(AliasRow).where(AliasRow.model == model))
        gone = self.session.execute(delete(ModelVersionRow).where(ModelVersionRow.model == model))
        if not gone.rowcount:  # type: ignore[attr-defined] # the result of a DELETE is a CursorResult
            raise self._not_found(model)

    def _described(self, names: Sequence[str]) -> list[Model]:
        """In the order of `names`; those without a version are left out."""
        versions = self.session.execute(
            select(ModelVersionRow.model, ModelVersionRow.version)
            .where(ModelVersionRow.model.in_(names))
            .order_by(ModelVersionRow.version)
        ).all()
        aliases = self.session.scalars(select(AliasRow).where(AliasRow.model.in_(names)).order_by(AliasRow.alias)).all()
        made = dict(
            self.session.execute(select(ModelRow.name, ModelRow.created_at).where(ModelRow.name.in_(names))).all()
        )
        numbers: dict[str, list[int]] = {}
        for model, version in versions:
            numbers.setdefault(model, []).append(version)
        return [
            Model(
                name=name,
                created_at=made[name],
                latest_version=numbers[name][-1],
                versions=numbers[name],
                aliases=[alias_of(row) for row in aliases if row.model == name],
            )
            for name in names
            if name in numbers
        ]

    def lock(self, model: str) -> None:
        self.session.execute(select(ModelRow.name).where(ModelRow.name == model).with_for_update())

    def absent(self, model: str, within: Exception) -> Exception:
        """`within` if the model exists, else that the model does not."""
        there = self.session.scalar(select(ModelRow.name).where(ModelRow.name == model, _EXISTS))
        return within if there else self._not_found(model)

    def _not_found(self, model: str) -> ModelNotFound:
        """With the closest of the names that stand near it in alphabetical order."""
        sides = (ModelRow.name < model, ModelRow.name.desc()), (ModelRow.name > model, ModelRow.name)
        near = [select(ModelRow.name).where(side, _EXISTS).order_by(by).limit(NEIGHBOURS) for side, by in sides]
        names = [name for query in near for name in self.session.scalars(query)]
        return ModelNotFound(no_such("There is no model", model, names))


_EXISTS = (
    select(literal(1, Integer)).where(ModelVersionRow.model == ModelRow.name).limit(1).scalar_subquery().is_not(None)
)
"""No EXISTS, of which the planner makes a join that may read all versions of all models."""


_SLIM = defer(ModelVersionRow.report, raiseload=True), defer(ModelVersionRow.golden, raiseload=True)
_SHOWN = (
    case(
        (func.jsonb_array_length(ModelVersionRow.report["test"]) > 0, ModelVersionRow.report["test"]),
        else_=ModelVersionRow.report["train"],
    ),
    ModelVersionRow.report["warnings"],
)
"""Parts of the report in the record of a version: metrics, of test rows if there are any, and warnings."""


def _at(model: str, version: int) -> tuple[ColumnElement[bool], ...]:
    return ModelVersionRow.model == model, ModelVersionRow.version == version


def _version(row: ModelVersionRow, metrics: list[Any], warnings: list[str]) -> ModelVersion:
    return ModelVersion(
        model=row.model,
        version=row.version,
        created_at=row.created_at,
        algorithm=row.algorithm,
        task=row.task,
        parameters=row.parameters,
        target=row.target,
        classes=row.classes,
        inputs=row.inputs,
        outputs=output_cards(row.algorithm, row.task),
        metrics=metrics,
        dataset=row.dataset_id,
        dataset_digest=row.dataset_digest,
        job=row.job_id,
        session=row.session_id,
        receipt=row.receipt,
        digest=row.digest,
        size_bytes=row.size_bytes,
        warnings=warnings,
    )


def alias_of(row: AliasRow) -> Alias:
    revision = row.revision
    return Alias(
        alias=row.alias, version=row.version, revision=revision, updated_at=row.updated_at, etag=f'"{revision}"'
    )
