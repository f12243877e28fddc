"""Operations on models, their versions and aliases."""

from collections.abc import Iterator
from itertools import count

from app.errors import PreconditionFailed
from app.schemas.models import Alias, AliasHistory, Model, ModelPage, ModelVersion, Report
from app.services.model_loading import chunks, opened, stored
from app.services.version_pointers import Pointers
from app.store.aliases import Pointer
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
            w.after_commit(lambda: self._pointers.deleted(model))

    def version(self, model: str, version: int) -> ModelVersion:
        with self._work() as w:
            return w.models.version(model, version)

    def report(self, model: str, version: int) -> Report:
        with self._work() as w:
            return w.models.report(model, version)

    def delete_version(self, model: str, version: int) -> None:
        """Raises VersionInUse while an alias points at it, or a version has it as its projection or its start."""
        with self._work() as w:
            w.models.delete_version(model, version)
            w.after_commit(lambda: self._pointers.deleted(model, version))

    def pointer(self, model: str, version: int) -> Pointer:
        with self._work() as w:
            return w.aliases.pointer(model, version=version)

    def artifact(self, pointer: Pointer) -> Iterator[bytes]:
        """The stored bytes, chunk by chunk."""
        return chunks(self._work, pointer)

    def training_rows(self, pointer: Pointer) -> Iterator[bytes]:
        """The hashes of its training rows, chunk by chunk; nothing for versions of earlier releases."""
        for seq in count():
            with self._work() as w:
                chunk = w.training_rows.chunk(pointer.model, pointer.version, seq)
            if chunk is None:
                return
            yield chunk

    def move_alias(
        self, model: str, alias: str, version: int, *, if_match: str | None, request_id: str | None
    ) -> tuple[Alias, bool]:
        """Point the alias at a version that reproduces its golden rows; whether the alias is new.

        An alias that points there already stays as it is, so that a repeated request changes nothing.

        Raises PreconditionFailed when `if_match` is another state of the alias, VersionNotFound,
        CorruptModel and GoldenMismatch.
        """
        pointer = self.pointer(model, version)
        opened(self._work, pointer, stored(self._work, pointer))
        with self._work() as w:
            w.after_commit(lambda: self._pointers.alias_moved(model, alias))
            before = w.aliases.lock(model, alias)
            _demand(if_match, before)
            if before is not None and before.version == version:
                return before, False
            return w.aliases.move(model, alias, version, request_id=request_id), before is None

    def history(self, model: str, alias: str, limit: int, cursor: str | None = None) -> AliasHistory:
        with self._work() as w:
            return w.aliases.history(model, alias, limit, cursor)


def _demand(if_match: str | None, alias: Alias | None) -> None:
    """RFC 9110, 13.1.1: the strong comparison, so a weak tag matches nothing."""
    if if_match is None:
        return
    if alias is None:
        raise PreconditionFailed("The alias is not set.")
    tags = [tag.strip() for tag in if_match.split(",")]
    if tags != ["*"] and alias.etag not in tags:
        raise PreconditionFailed(f"The alias is at {alias.etag} now.", headers={"ETag": alias.etag})
