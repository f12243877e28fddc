"""Claims: one worker gets a job, when its time has come."""

import threading
from uuid import uuid4

import pytest

from app.schemas.jobs import JobState
from app.store.jobs.job_records import Capable, Pinned

ABLE = Capable(("train",), ("logistic",))


def states(job):
    return [line.state for line in job.transitions]


def test_a_claim_begins_an_attempt_and_is_recorded(world):
    job_id = world.submit()
    claim = world.attempts.claim(job_id)
    job = world.jobs.get(job_id)
    assert (claim.job_id, claim.attempt, claim.model) == (job_id, 1, "m")
    assert (job.state, job.attempt, job.queue_position) == (JobState.RUNNING, 1, None)
    assert job.started_at is not None
    assert states(job) == ["queued", "running"]


def test_of_many_claims_at_once_one_wins(world):
    job_id = world.submit()
    claims, start = [], threading.Barrier(8)

    def go():
        start.wait()
        claims.append(world.attempts.claim(job_id))

    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(claim is not None for claim in claims) == 1
    assert world.jobs.get(job_id).attempt == 1


def test_a_claim_whose_commit_was_not_confirmed_is_found_again(world):
    job_id, token = world.submit(), uuid4()
    with world.work() as w:
        first = w.leases.claim(job_id, token, 30, ABLE)
    with world.work() as w:
        assert w.leases.claim(job_id, token, 30, ABLE) == first


def test_nobody_claims_before_its_time(world):
    job_id = world.submit()
    world.run("update jobs set not_before = clock_timestamp() + interval '1 hour' where id = :id", id=job_id)
    assert world.attempts.claim(job_id) is None
    assert world.attempts.claim_next() is None


LATER = {
    "algorithm": {"algorithm": "of_tomorrow"},
    "kind": {"kind": "of_tomorrow", "algorithm": None},
    "one of its algorithms": {"algorithm": None, "inputs": Pinned(algorithms=("ridge", "of_tomorrow")).written()},
}


@pytest.mark.parametrize("what", LATER)
def test_jobs_of_what_this_release_does_not_have_stay_queued(world, what):
    job_id = world.submit(**LATER[what])
    assert world.attempts.claim(job_id) is None
    assert world.attempts.claim_next() is None
    assert world.state(job_id) is JobState.QUEUED


def test_without_a_broker_the_oldest_goes_first(world):
    first, second = world.submit(), world.submit()
    assert [world.attempts.claim_next().job_id for _ in range(2)] == [first, second]
    assert world.attempts.claim_next() is None


def test_a_training_queued_by_the_release_before_is_run(world):
    """Its row says nothing of what it needs but the dataset."""
    claim = world.attempts.claim(world.submit())
    assert claim.inputs == {}
    assert claim.pinned == Pinned(datasets=(world.dataset,))
    assert claim.kind == "train"
