import asyncio
import time
from uuid import UUID

import pytest

from app.api.edge.shared_reads import SECONDS, SharedReads
from app.base.project_context import PROJECT

ONE, OTHER = UUID(int=1), UUID(int=2)


def counted():
    calls = []

    def get(job):
        time.sleep(0.02)
        calls.append(job)
        return f"{job.int} read {len(calls)}"

    return get, calls


def test_those_who_watch_a_job_share_a_read_and_the_next_one_is_fresh():
    async def watch():
        reads, (get, calls) = SharedReads(), counted()
        first = await asyncio.gather(*(reads(get, ONE) for _ in range(20)), reads(get, OTHER))
        assert first == [first[0]] * 20 + [first[-1]]
        assert sorted(calls) == [ONE, OTHER]
        await asyncio.sleep(2 * SECONDS)
        assert await reads(get, ONE) == "1 read 3"
        await asyncio.sleep(2 * SECONDS)
        assert reads._reads == {}

    asyncio.run(watch())


def test_projects_share_nothing():
    async def watch():
        reads, (get, calls) = SharedReads(), counted()
        await reads(get, ONE)
        token = PROJECT.set(OTHER)
        await reads(get, ONE)
        PROJECT.reset(token)
        assert calls == [ONE, ONE]

    asyncio.run(watch())


def test_who_leaves_ends_the_read_of_nobody_else_and_a_failed_read_is_not_kept():
    async def watch():
        reads, (get, _) = SharedReads(), counted()
        leaving, staying = (asyncio.ensure_future(reads(get, ONE)) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        assert await staying == "1 read 1"

        def fail(job):
            raise LookupError

        with pytest.raises(LookupError):
            await reads(fail, OTHER)
        await asyncio.sleep(2 * SECONDS)
        assert await reads(get, OTHER) == "2 read 2"

    asyncio.run(watch())
