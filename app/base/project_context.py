"""The project in which a request or a job runs: what is read and written belongs to it."""

from contextvars import ContextVar
from uuid import UUID

DEFAULT_PROJECT = UUID(int=0)
"""The project of a service without keys, and of what was stored before there were projects."""
PROJECT: ContextVar[UUID] = ContextVar("project", default=DEFAULT_PROJECT)
"""Set when a request is admitted, and around an attempt at a job. Every unit of work reads it."""
