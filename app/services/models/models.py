"""Operations on models and their versions."""

from collections.abc import Iterator
from uuid import UUID

from app.schemas.models import Model, ModelPage, ModelVersion, Report, VersionPage
from app.services.predictions.model_loading import chunks
from app.services.predictions.pointer_cache import Pointers
from app.store.models.pointer import Pointer
from app.store.unit_of_work import WorkFactory


class Models:
    def __init__(self, work: WorkFactory, pointers: Pointers) -> None:
        """pointers: those of the predictions of this process, which see each change at once."""
        self._work = work
        self._pointers = pointers

    def page(self, limit: int, cursor: str | None = None) -> ModelPage:
        with self._work() as w:
            return w.models.page(limit, cursor)

    def get(self, model: str) -> Model:
        with self._work() as w:
            return w.models.get(model)

    def delete(self, model: str) -> None:
        """All versions and aliases; the record of alias moves stays. Raises VersionInUse as the store does."""
        with self._work() as w:
            w.models.delete(model)
            w.after_commit(lambda: self._pointers.changed(model))

    def version(self, model: str, version: int) -> ModelVersion:
        with self._work() as w:
            return w.models.version(model, version)

    def versions(self, limit: int, cursor: str | None, *, model: str | None, dataset: UUID | None) -> VersionPage:
        with self._work() as w:
            return w.models.versions(limit, cursor, model=model, dataset=dataset)

    def report(self, model: str, version: int) -> Report:
        with self._work() as w:
            return w.models.report(model, version)

    def delete_version(self, model: str, version: int) -> None:
        """Raises VersionInUse while an alias points at it, or a version has it as its projection or its start."""
        with self._work() as w:
            w.models.delete_version(model, version)
            w.after_commit(lambda: self._pointers.changed(model, version))

    def pointer(self, model: str, version: int) -> Pointer:
        with self._work() as w:
            return w.aliases.pointer(model, version=version)

    def artifact(self, pointer: Pointer) -> Iterator[bytes]:
        """The stored bytes, chunk by chunk."""
        return chunks(self._work, pointer)

    def training_rows(self, pointer: Pointer) -> Iterator[bytes]:
        """The hashes of its training rows, chunk by chunk; nothing for versions of earlier releases."""
        return self._work.chunks(lambda w, seq: w.training_rows.chunk(pointer.model, pointer.version, seq))

    def reference(self, pointer: Pointer) -> bytes:
        """The distributions of its training rows; empty where none are stored."""
        with self._work() as w:
            return w.version_references.find(pointer.model, pointer.version)
