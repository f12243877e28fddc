"""Cancelling."""

import pytest

from app.base.errors import Cancelled, JobNotFound
from app.schemas.jobs import JobState
from app.store.base.new_ids import uuid7


def states(job):
    return [line.state for line in job.transitions]


def test_cancelling_what_is_queued(world):
    job_id = world.submit()
    assert world.jobs.cancel(job_id).state is JobState.CANCELLED
    assert world.attempts.claim(job_id) is None
    assert world.jobs.cancel(job_id).state is JobState.CANCELLED


def test_cancelling_what_runs_is_reported_by_the_next_beat(world):
    claim = world.attempts.claim(world.submit())
    assert world.jobs.cancel(claim.job_id).state is JobState.CANCELLING
    assert world.jobs.cancel(claim.job_id).state is JobState.CANCELLING
    assert world.attempts.beat(claim, progress=0.1) is JobState.CANCELLING
    world.attempts.stop(claim)
    assert states(world.jobs.get(claim.job_id)) == ["queued", "running", "cancelling", "cancelled"]


def test_a_cancel_that_came_first_has_the_last_word(world, end):
    claim = world.attempts.claim(world.submit())
    world.jobs.cancel(claim.job_id)
    with pytest.raises(Cancelled):
        world.write(end, claim)
    assert world.state(claim.job_id) is JobState.CANCELLED
    assert world.models(claim.job_id) == 0


def test_cancelling_what_has_ended_changes_nothing(world):
    claim = world.attempts.claim(world.submit())
    world.attempts.succeed(claim, world.outcome)
    before = world.jobs.get(claim.job_id)
    assert world.jobs.cancel(claim.job_id) == before


def test_cancelling_what_is_not_there(world):
    with pytest.raises(JobNotFound):
        world.jobs.cancel(uuid7())
