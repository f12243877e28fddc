"""Members of a learner fitted in several slots of a worker: the same model, and one job in all that befalls it."""

import psutil
import pytest

from app.schemas.jobs import JobState


@pytest.fixture(scope="module")
def worker(fleet):
    return fleet.start(worker_concurrency=2)


def bagging(fleet, *, count=6, seconds=0.25, how="work"):
    return fleet.submit(
        algorithm={"name": "bagging", "count": count, "base": {"name": "poison", "how": how, "seconds": seconds}}
    )


def digest(fleet, job_id):
    job = fleet.ended(job_id)
    assert job.state is JobState.SUCCEEDED, job
    assert fleet.models(job_id) == 1
    return fleet.services.models.version(job.model, job.version).digest


def lent(fleet, worker, job_id):
    return sum("slot_lent" in line for line in fleet.log_of(worker, job_id))


def forks(worker):
    """Of all trainers of the worker."""
    return [fork for trainer in psutil.Process(worker.pid).children() for fork in trainer.children()]


@pytest.fixture(scope="module")
def alone(fleet, worker):
    """The digest of what the trainer does without help: the other slot is taken."""
    neighbour = fleet.submit("work", seconds=60)
    fleet.running(neighbour)
    job_id = bagging(fleet)
    made = digest(fleet, job_id)
    assert lent(fleet, worker, job_id) == 0
    fleet.services.jobs.cancel(neighbour)
    fleet.ended(neighbour)
    return made


def test_the_model_is_the_same_to_the_byte_however_many_made_it(fleet, worker, alone):
    job_id = bagging(fleet)
    assert digest(fleet, job_id) == alone
    assert lent(fleet, worker, job_id) >= 1
    assert [line.state for line in fleet.job(job_id).transitions] == ["queued", "running", "succeeded"]


def test_two_parents_in_two_slots_wait_for_nobody(fleet, worker, alone):
    assert {digest(fleet, job_id) for job_id in [bagging(fleet), bagging(fleet)]} == {alone}


def test_a_job_that_waits_comes_before_a_members_turn(fleet, worker):
    long = bagging(fleet, count=60, seconds=0.25)
    fleet.until(lambda: lent(fleet, worker, long), "help")
    short = fleet.submit()
    assert fleet.ended(short).state is JobState.SUCCEEDED
    assert fleet.job(long).state is JobState.RUNNING
    fleet.services.jobs.cancel(long)
    fleet.ended(long)


def test_cancelling_ends_the_members_too(fleet, worker):
    job_id = bagging(fleet, count=100)
    fleet.until(lambda: lent(fleet, worker, job_id), "help")
    at_work = forks(worker)
    assert at_work
    fleet.services.jobs.cancel(job_id)
    assert fleet.ended(job_id).state is JobState.CANCELLED
    fleet.until(lambda: not any(one.is_running() for one in at_work), "the end of the members")
    assert fleet.models(job_id) == 0
    assert fleet.ended(fleet.submit()).state is JobState.SUCCEEDED


def test_a_member_that_is_killed_is_fitted_again(fleet, worker, alone):
    job_id = bagging(fleet)
    fleet.until(lambda: lent(fleet, worker, job_id), "help")
    for fork in forks(worker):
        fork.kill()
    assert digest(fleet, job_id) == alone


def test_a_member_that_fails_fails_its_parent_with_its_reason(fleet, worker):
    job = fleet.ended(bagging(fleet, how="invalid"))
    assert (job.state, job.error.code, job.error.detail) == ("failed", "invalid_data", "These rows will not do.")


def test_a_worker_killed_in_the_middle_loses_nothing(fleet, worker, alone):
    job_id = bagging(fleet)
    fleet.until(lambda: lent(fleet, worker, job_id), "help")
    trainers = psutil.Process(worker.pid).children(recursive=True)
    worker.kill()
    fleet.start(worker_concurrency=2)
    assert digest(fleet, job_id) == alone
    assert fleet.job(job_id).attempt == 2
    fleet.until(lambda: not any(one.is_running() for one in trainers), "the end of the trainers")
