"""The project in which a request or a job runs: what is read and written belongs to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import UUID

DEFAULT_PROJECT = UUID(int=0)
"""The project of a service without keys, and of what was stored before there were projects."""
PROJECT: ContextVar[UUID] = ContextVar("project", default=DEFAULT_PROJECT)
"""Set when a request is admitted, and around an attempt at a job. Every unit of work reads it."""


@contextmanager
def in_project(project: UUID) -> Iterator[None]:
    """Run the block in this project, and what follows in the one before."""
    token = PROJECT.set(project)
    try:
        yield
    finally:
        PROJECT.reset(token)
