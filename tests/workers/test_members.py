"""Members of a learner fitted on several cores: the same model, and one job in all that befalls it."""

import psutil
import pytest

from app.schemas.jobs import JobState


@pytest.fixture(scope="module")
def worker(fleet):
    return fleet.start(worker_concurrency=2)


def bagging(fleet, *, count=12):
    member = {"name": "poison", "how": "work", "seconds": 0.25}
    return fleet.submit(algorithm={"name": "bagging", "n_estimators": count, "estimator": member})


def digest(fleet, job_id):
    job = fleet.ended(job_id)
    assert job.state is JobState.SUCCEEDED, job
    assert fleet.models(job_id) == 1
    return fleet.services.models.version(job.model, job.version).digest


def helped(fleet, worker, job_id):
    """The forks at work, as soon as there are any."""
    (template,) = psutil.Process(worker.pid).children()
    return fleet.until(lambda: [fork for trainer in template.children() for fork in trainer.children()], "help")


@pytest.fixture(scope="module")
def parents(fleet, worker):
    """Two at once: as many as there are cores."""
    return [fleet.ended(job_id) for job_id in [bagging(fleet), bagging(fleet)]]


@pytest.fixture(scope="module")
def alone(fleet, parents):
    return digest(fleet, min(parents, key=lambda job: job.finished_at).id)


@pytest.mark.slow
def test_two_parents_on_two_cores_wait_for_nobody(fleet, worker, parents):
    assert len({digest(fleet, job.id) for job in parents}) == 1


def test_the_model_is_the_same_to_the_byte_however_many_made_it(fleet, worker, alone):
    job_id = bagging(fleet)
    assert digest(fleet, job_id) == alone
    assert fleet.job(job_id).cores > 1
    assert [line.state for line in fleet.job(job_id).transitions] == ["queued", "running", "succeeded"]


def test_a_member_that_is_killed_is_fitted_again(fleet, worker, alone):
    job_id = bagging(fleet)
    for fork in helped(fleet, worker, job_id):
        fork.kill()
    assert digest(fleet, job_id) == alone
    assert fleet.job(job_id).attempt == 1


def test_who_waits_comes_before_the_next_members_and_cancelling_ends_them_all(fleet, worker):
    long = bagging(fleet, count=400)
    forks = helped(fleet, worker, long)
    assert forks
    assert fleet.ended(fleet.submit()).state is JobState.SUCCEEDED
    assert fleet.job(long).state is JobState.RUNNING
    fleet.services.jobs.cancel(long)
    assert fleet.ended(long).state is JobState.CANCELLED
    fleet.until(lambda: not any(fork.is_running() for fork in forks), "the end of the members")
    assert fleet.models(long) == 0


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_loses_nothing(fleet, worker, alone):
    job_id = bagging(fleet)
    forks = helped(fleet, worker, job_id)
    worker.kill()
    fleet.start(worker_concurrency=2)
    assert digest(fleet, job_id) == alone
    assert fleet.job(job_id).attempt == 2
    fleet.until(lambda: not any(fork.is_running() for fork in forks), "the end of the members")
