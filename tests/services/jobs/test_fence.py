"""Nobody writes to a job without its lease."""

import pytest
from sqlalchemy.exc import IntegrityError

from app.base.errors import LeaseLost
from app.schemas.jobs import JobState


def lost_lease(world):
    """A claim whose lease ran out and whose job somebody else runs now."""
    job_id = world.submit()
    old = world.attempts.claim(job_id)
    world.expire(job_id)
    world.recovery.sweep(held=0)
    world.hasten()
    return old, world.attempts.claim(job_id)


def test_no_write_passes_the_fence_without_the_lease(world, write):
    old, new = lost_lease(world)
    before = world.jobs.get(new.job_id)
    with pytest.raises(LeaseLost):
        world.write(write, old)
    assert world.jobs.get(new.job_id) == before
    assert world.models(new.job_id) == 0


def test_of_two_ends_the_second_is_refused(world, end):
    claim = world.attempts.claim(world.submit())
    world.attempts.succeed(claim, world.outcome)
    with pytest.raises(LeaseLost):
        world.write(end, claim)
    assert world.state(claim.job_id) is JobState.SUCCEEDED
    assert world.models(claim.job_id) == 1


def test_the_owner_of_a_lease_that_ran_out_unseen_may_renew_it(world):
    claim = world.attempts.claim(world.submit())
    world.expire(claim.job_id)
    assert world.attempts.beat(claim, progress=0.2) is JobState.RUNNING
    assert world.recovery.sweep(held=0).recovered == 0


def test_rows_the_graph_does_not_know_are_refused_by_the_database(world):
    job_id = world.submit()
    for wrong in ("state = 'running'", "state = 'succeeded'", "state = 'dreaming'", "version = 1"):
        with pytest.raises(IntegrityError):
            world.run(f"update jobs set {wrong} where id = :id", id=job_id)
