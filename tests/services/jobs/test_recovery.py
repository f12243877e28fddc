"""Expired leases and forgotten jobs are taken up."""

import pytest
from sqlalchemy import text

from app.schemas.jobs import JobState
from app.services.jobs.attempts import AttemptCounts
from app.services.jobs.recovery import Recovery
from app.store.jobs.leases import LeaseRepository


def test_a_lease_that_ran_out_is_another_attempt_and_then_the_end(world):
    job_id = world.submit()
    for _ in range(3):
        world.attempts.claim(job_id)
        world.expire(job_id)
        assert world.recovery.sweep(held=0).recovered == 1
        world.hasten()
    job = world.jobs.get(job_id)
    assert (job.state, job.error.code, job.attempt) == (JobState.FAILED, "worker_lost", 3)
    assert {line.reason for line in job.transitions if line.state != "running"} == {None, "worker_lost"}


def sign(world, seconds):
    """The worker of these attempts is seen so many seconds after its lease ran out."""
    with world.work() as w:
        w.workers.seen("here", world.attempts.holder)
    sql = "update workers set seen_at = (select max(lease_until) from jobs) + make_interval(secs => :seconds)"
    world.run(sql, seconds=seconds)


def test_an_attempt_does_not_count_whose_worker_was_seen_after_its_lease_ran_out(world):
    job_id = world.submit(max_attempts=1)
    for _ in range(3):
        assert world.attempts.claim(job_id).attempt == 1
        world.expire(job_id)
        sign(world, 0.1)
        assert world.recovery.sweep(held=0).recovered == 1
        world.hasten()
    job = world.jobs.get(job_id)
    assert (job.state, job.attempt) == (JobState.QUEUED, 0)
    assert {line.reason for line in job.transitions if line.state != "running"} == {None, "worker_starved"}


@pytest.mark.parametrize("why", ["it was seen before", "another process has its name", "all its time is over"])
def test_an_attempt_counts_whose_worker_may_be_gone(world, why):
    claim = world.attempts.claim(world.submit(max_attempts=1))
    world.expire(claim.job_id)
    sign(world, -0.1 if why == "it was seen before" else 0.1)
    if why == "another process has its name":
        world.run("update workers set holder = gen_random_uuid()")
    if why == "all its time is over":
        world.run("update jobs set started_at = started_at - interval '61 s'")
    assert world.recovery.sweep(held=0).recovered == 1
    assert world.state(claim.job_id) is JobState.FAILED


def test_a_lost_worker_cannot_keep_a_job_in_cancelling(world):
    claim = world.attempts.claim(world.submit())
    world.jobs.cancel(claim.job_id)
    world.expire(claim.job_id)
    world.recovery.sweep(held=0)
    assert world.state(claim.job_id) is JobState.CANCELLED


def test_a_live_lease_is_left_alone(world):
    claim = world.attempts.claim(world.submit())
    assert world.recovery.sweep(held=0).recovered == 0
    assert world.state(claim.job_id) is JobState.RUNNING


def test_a_sweep_acts_on_what_is_not_on_what_it_saw(world):
    claim = world.attempts.claim(world.submit())
    world.expire(claim.job_id)
    with world.work() as w:
        (seen,) = w.leases.expired(0)
    world.attempts.beat(claim, progress=0.5)
    with world.work() as w:
        assert not w.leases.recover(seen, grace_seconds=0, seconds=0, error=world.crash)
    assert world.state(claim.job_id) is JobState.RUNNING


def test_after_a_restart_of_the_database_the_living_may_renew_first(world):
    claim = world.attempts.claim(world.submit())
    world.expire(claim.job_id)
    uptime = float(world.run("select extract(epoch from clock_timestamp() - pg_postmaster_start_time())").scalar())
    settings = world.settings.model_copy(update={"beat_seconds": uptime})
    assert Recovery(world.work, world.announced.append, settings, AttemptCounts()).sweep(held=0).recovered == 0
    assert world.attempts.beat(claim, progress=0.5) is JobState.RUNNING


def test_forgotten_ids_are_announced_once_in_a_while(world):
    job_id = world.submit()
    world.recovery.sweep(held=0)
    assert world.announced == []  # the submission itself has just announced it
    world.hasten()
    world.recovery.sweep(held=0)
    world.recovery.sweep(held=0)
    assert world.announced == [job_id]


def test_a_job_that_came_back_is_announced_when_its_pause_is_over(world):
    claim = world.attempts.claim(world.submit())
    world.attempts.fail(claim, world.crash, retry=True)
    world.recovery.sweep(held=0)
    assert world.announced == []
    world.run("update jobs set not_before = clock_timestamp()")
    world.recovery.sweep(held=0)
    assert world.announced == [claim.job_id]


def test_a_long_queue_is_not_a_forgotten_one(world):
    ids = [world.submit() for _ in range(5)]
    world.hasten()
    assert world.recovery.sweep(held=5).announced == 0
    assert world.recovery.sweep(held=3).announced == 2
    assert world.announced == ids[:2]


def test_with_the_broker_silent_nothing_is_marked_as_announced(world):
    job_id = world.submit()
    world.hasten()
    world.recovery.sweep(held=None)
    world.recovery.sweep(held=0)
    assert world.announced == [job_id]


def test_a_database_that_blinks_leaves_the_row_to_the_next_sweep(world, monkeypatch):
    claims = [world.attempts.claim(world.submit()) for _ in range(2)]
    for claim in claims:
        world.expire(claim.job_id)
    recover, broken = LeaseRepository.recover, []

    def blink(self, lease, **how):
        if not broken:
            broken.append(lease)
            self.session.execute(text("select pg_terminate_backend(pg_backend_pid())"))
        return recover(self, lease, **how)

    monkeypatch.setattr(LeaseRepository, "recover", blink)
    assert world.recovery.sweep(held=0).recovered == 1
    assert world.recovery.sweep(held=0).recovered == 1
    assert {world.state(claim.job_id) for claim in claims} == {JobState.QUEUED}
