"""Turns of uploads at the parsers, shared by projects: no project's uploads keep those of another waiting.

A project may have all turns while no other wants one. One turn more is there for a project none of whose uploads is
being parsed, so that it need not wait for the end of a long file of another. Of those who wait, the one begins whose
project has the fewest running, and of these the one who came first.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple
from uuid import UUID

from app.base.errors import Overloaded

RESERVED_TURNS = 1
MAX_WAITING_UPLOADS = 64
"""Limit on the uploads of one project that wait."""
RETRY_SECONDS = "5"


class _Upload(NamedTuple):
    number: int
    project: UUID


class Turns:
    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._changed = threading.Condition()
        self._numbers = count()
        self._waiting: list[_Upload] = []
        self._running: Counter[UUID] = Counter()

    @contextmanager
    def turn(self, project: UUID) -> Iterator[None]:
        """Blocks until an upload of the project may be parsed. Raises Overloaded where too many of it wait."""
        upload = _Upload(next(self._numbers), project)
        with self._changed:
            if sum(other.project == project for other in self._waiting) >= MAX_WAITING_UPLOADS:
                raise Overloaded("Too many uploads are waiting.", headers={"Retry-After": RETRY_SECONDS})
            self._waiting.append(upload)
            self._changed.wait_for(lambda: self._next() == upload)
            self._waiting.remove(upload)
            self._running[project] += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._running -= Counter({project: 1})
                self._changed.notify_all()

    def _next(self) -> _Upload | None:
        """The upload that may begin; None if all have to wait."""
        upload = min(self._waiting, key=lambda upload: (self._running[upload.project], upload.number))
        reserved = 0 if self._running[upload.project] else RESERVED_TURNS
        return upload if self._running.total() < self._at_once + reserved else None
