"""Model versions as files for other programs, one at a time."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version as release_of
from typing import NamedTuple

from app.base.errors import Overloaded
from app.ml.exports.export import ExportFormat, export_model
from app.services.predictions.predictions import Served
from app.store.unit_of_work import WorkFactory

MAX_WAITING = 4
"""Exports that may wait for the one that is made; further ones are refused."""
RETRY_SECONDS = "5"


class Export(NamedTuple):
    content: bytes
    digest: str
    """`sha256:` and the hexadecimal hash of the content."""


class Exports:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work
        self._turn = threading.Lock()
        self._places = threading.BoundedSemaphore(1 + MAX_WAITING)

    def make(self, served: Served, export_format: ExportFormat) -> Export:
        """The file, with the proof of its predictions. Raises Overloaded where too many wait, and as `export_model`."""
        pointer = served.pointer
        with self._work() as w:
            golden = w.models.golden(pointer.model, pointer.version)
        origin = {
            "model": pointer.model,
            "version": pointer.version,
            "digest": pointer.digest,
            "valiant": release_of("valiant"),
        }
        with self._in_turn():
            content = export_model(served.model, export_format, golden, origin).content
        return Export(content, f"sha256:{hashlib.sha256(content).hexdigest()}")

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise Overloaded("Too many exports are waiting.", headers={"Retry-After": RETRY_SECONDS})
        try:
            with self._turn:
                yield
        finally:
            self._places.release()
