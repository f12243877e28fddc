"""Jobs as clients see them."""

import asyncio

import pytest

from app.base.errors import InvalidRequest
from app.ml.contract.model_reference import VersionRef
from app.schemas.jobs import JobState
from app.services.jobs.jobs import Jobs
from app.services.predictions.pointer_cache import Pointers


def test_pages_go_from_the_newest_to_the_oldest(world):
    ids = [world.submit() for _ in range(5)]
    first = world.jobs.page(2)
    second = world.jobs.page(2, first.next_cursor)
    third = world.jobs.page(2, second.next_cursor)
    assert [job.id for page in (first, second, third) for job in page.items] == ids[::-1]
    assert third.next_cursor is None


def test_a_page_of_one_state(world):
    claim = world.attempts.claim(world.submit())
    world.submit()
    assert [job.id for job in world.jobs.page(10, state=JobState.RUNNING).items] == [claim.job_id]


def test_a_foreign_cursor_is_a_fault(world):
    with pytest.raises(InvalidRequest) as raised:
        world.jobs.page(2, "next please")
    assert raised.value.faults[0].pointer == "/query/cursor"


def test_the_place_in_the_queue(world):
    ids = [world.submit() for _ in range(3)]
    assert [world.jobs.get(job_id).queue_position for job_id in ids] == [0, 1, 2]
    world.attempts.claim(ids[0])
    assert [world.jobs.get(job_id).queue_position for job_id in ids] == [None, 0, 1]


def test_a_result_of_a_later_release_is_left_out(world):
    job_id = world.submit(kind="of_tomorrow", algorithm=None)
    world.run(
        "update jobs set state = 'succeeded', finished_at = clock_timestamp(), result = '{\"kind\": \"of_tomorrow\"}'"
    )
    job = world.jobs.get(job_id)
    assert (job.kind, job.state, job.result) == ("of_tomorrow", JobState.SUCCEEDED, None)


def test_a_process_predicts_with_each_version_that_it_reported(world):
    pointers = Pointers(world.work, 3600.0)
    jobs, newest = Jobs(world.work, pointers), VersionRef("read-back")

    def train():
        claim = world.attempts.claim(world.submit(model="read-back"))
        world.attempts.succeed(claim, world.outcome)
        return claim.job_id

    reads = (jobs.get, lambda _: jobs.page(1).items[0], jobs.cancel)
    first = jobs.get(train())
    assert asyncio.run(pointers.current(newest)).pointer.version == first.version
    for read in reads:
        job_id, before = train(), pointers.at_hand(newest)
        assert before is not None, "the pointer is fresh, and older than the version"
        job = read(job_id)
        assert job.version == before.pointer.version + 1
        assert asyncio.run(pointers.current(newest)).pointer.version == job.version
        read(job_id)
        assert pointers.at_hand(newest).pointer.version == job.version, "reported again, it costs no read"
