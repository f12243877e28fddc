"""From stored bytes to a model that has proved itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.base.errors import CorruptModel
from app.ml.models.golden import check_golden
from app.ml.models.model import Model, decode, digest
from app.ml.numerics.compiled_kernels import read_companions
from app.ml.numerics.jit import made
from app.ml.preparation.compiled import columns
from app.processes.process_memory import let_files_go
from app.services.predictions.prediction_counts import Level, Tally
from app.store.models.pointer import Pointer

if TYPE_CHECKING:
    from app.store.models.model_cache import Cache
    from app.store.unit_of_work import WorkFactory


def chunks(work: "WorkFactory", pointer: Pointer) -> Iterator[bytes]:
    """The stored bytes, chunk by chunk, each in a short transaction. Raises VersionNotFound when they are gone."""
    sent, seq = 0, 0
    while sent < pointer.size_bytes:
        with work() as w:
            chunk = w.models.chunk(pointer.model, pointer.version, seq)
        yield chunk
        sent, seq = sent + len(chunk), seq + 1


def stored(work: "WorkFactory", pointer: Pointer) -> bytes:
    """All of the stored bytes. Raises CorruptModel if they are not those that were stored."""
    blob = b"".join(chunks(work, pointer))
    if digest(blob) != pointer.digest:
        raise CorruptModel("The stored bytes do not have the digest they were stored under.")
    return blob


class StoredModels:
    """Models from Redis, else from Postgres."""

    def __init__(self, work: "WorkFactory", cache: "Cache", tally: Tally) -> None:
        self._work, self._cache, self._tally = work, cache, tally

    def load(self, pointer: Pointer) -> Model:
        """Raises VersionNotFound, CorruptModel, RetiredFormat, GoldenMismatch."""
        cached = self._cache.get(pointer.digest, pointer.size_bytes)
        self._tally.looked_up(Level.REDIS, is_hit=cached is not None)
        blob = self._stored(pointer) if cached is None else cached
        model = opened(self._work, pointer, blob)
        if cached is None:
            self._cache.put(pointer.digest, blob)
        return model

    def _stored(self, pointer: Pointer) -> bytes:
        is_stored = False
        try:
            blob = stored(self._work, pointer)
            is_stored = True
        finally:
            self._tally.looked_up(Level.POSTGRES, is_hit=is_stored)
        return blob


def opened(work: "WorkFactory", pointer: Pointer, blob: bytes) -> Model:
    """The model of these bytes. Raises CorruptModel, RetiredFormat, and GoldenMismatch if it predicts otherwise."""
    model = decode(blob, f"Version {pointer.version} of {pointer.model}")
    with work() as w:
        golden = w.models.golden(pointer.model, pointer.version)
    with compiled_meanwhile():
        check_golden(model, golden)  # which compiles what the model needs, so that no caller waits for it
    return model


@contextmanager
def compiled_meanwhile() -> Iterator[None]:
    """Around the first predictions of a model: the compiler's memory is given back."""
    before = made()
    yield
    if made() > before:
        columns.fetch()
        read_companions()
        let_files_go()  # the compiler's, which lies idle again
