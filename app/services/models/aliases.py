"""Aliases of a model: moved to a version that proves itself, by one writer of several with the same ETag."""

from app.schemas.models import Alias, AliasHistory
from app.services.models.preconditions import demand
from app.services.predictions.model_loading import opened, stored
from app.services.predictions.pointer_cache import Pointers
from app.store.unit_of_work import WorkFactory


class Aliases:
    def __init__(self, work: WorkFactory, pointers: Pointers) -> None:
        """pointers: those of the predictions of this process, which see each move at once."""
        self._work = work
        self._pointers = pointers

    def move(
        self, model: str, alias: str, version: int, *, if_match: str | None, request_id: str | None
    ) -> tuple[Alias, bool]:
        """Point the alias at a version that reproduces its golden rows; whether the alias is new.

        An alias that points there already stays as it is, so that a repeated request changes nothing.

        Raises PreconditionFailed when `if_match` is another state of the alias, VersionNotFound,
        CorruptModel and GoldenMismatch.
        """
        with self._work() as w:
            pointer = w.aliases.pointer(model, version=version)
        opened(self._work, pointer, stored(self._work, pointer))
        with self._work() as w:
            w.after_commit(lambda: self._pointers.alias_moved(model, alias))
            before = w.aliases.lock(model, alias)
            demand(if_match, None if before is None else before.etag, "The alias")
            if before is not None and before.version == version:
                return before, False
            if before is None:
                w.audit.note_created(f"/v1/models/{model}/aliases/{alias}")
            return w.aliases.move(model, alias, version, request_id=request_id), before is None

    def history(self, model: str, alias: str, limit: int, cursor: str | None = None) -> AliasHistory:
        with self._work() as w:
            return w.aliases.history(model, alias, limit, cursor)
