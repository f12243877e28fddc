"""Jobs as they were a moment ago: all who watch one on this process share its reads."""

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

from fastapi.concurrency import run_in_threadpool

from app.base.project_context import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.schemas.jobs import Job

SECONDS = 0.1
"""A read is shared by those who come this long after its end."""


class SharedReads:
    def __init__(self) -> None:
        self._reads: dict[tuple[UUID, UUID], asyncio.Task[Job]] = {}

    async def __call__(self, get: "Callable[[UUID], Job]", job: UUID) -> "Job":
        key = PROJECT.get(), job
        if key not in self._reads:
            self._reads[key] = task = asyncio.create_task(run_in_threadpool(get, job))
            task.add_done_callback(lambda _: asyncio.get_running_loop().call_later(SECONDS, self._reads.pop, key))
        return await asyncio.shield(self._reads[key])  # a client that disconnects does not cancel it for others
