"""One worker with good jobs and bad ones."""

import pytest

from app.messaging.queue import publish
from app.ml.jobs.train import TrainRequest
from app.schemas.jobs import JobState

ENDS = {  # how → state, code, attempts
    "segfault": ("failed", "trainer_crashed", 2),
    "abort": ("failed", "trainer_crashed", 2),
    "os_exit": ("failed", "trainer_crashed", 2),
    "sys_exit": ("failed", "trainer_crashed", 2),
    "memory_error": ("failed", "out_of_memory", 1),
    "allocate": ("failed", "out_of_memory", 1),
    "exception": ("failed", "internal_error", 1),
    "invalid": ("failed", "invalid_data", 1),
    "unstorable": ("failed", "invalid_data", 1),
    "loop": ("timed_out", "timed_out", 1),
    "loop_holding_the_lock": ("timed_out", "timed_out", 1),
}


@pytest.fixture(scope="module")
def worker(fleet):
    return fleet.start(worker_concurrency=2, log_level="DEBUG")


@pytest.fixture(scope="module")
def poisoned(fleet, worker):
    """All the poison at once, with a healthy job behind it."""
    jobs = {how: fleet.submit(how, time_limit_seconds=4 if "loop" in how else 300) for how in ENDS}
    return jobs | {"healthy": fleet.submit()}


@pytest.mark.parametrize("how", ENDS)
def test_poison_ends_with_a_reason(fleet, poisoned, how):
    job = fleet.ended(poisoned[how])
    assert (job.state, job.error.code, job.attempt) == ENDS[how]
    assert job.error.request_id == f"request-{job.id}"
    assert fleet.models(job.id) == 0


def test_what_the_trainer_raised_is_for_the_log_only(fleet, poisoned, worker):
    job = fleet.ended(poisoned["exception"])
    secret = "correct horse battery staple"
    assert secret not in job.model_dump_json()
    log = fleet.until(lambda: (text := worker.logfile.read_text()) and secret in text and text, "the log")
    assert any(str(job.id) in line and secret in line for line in log.splitlines())


def test_poison_takes_nobody_with_it(fleet, poisoned, worker):
    assert fleet.ended(poisoned["healthy"]).state is JobState.SUCCEEDED
    for how in ENDS:
        fleet.ended(poisoned[how])
    assert worker.alive


def test_what_a_fit_prints_is_no_response(fleet, worker):
    assert fleet.ended(fleet.submit("chatter")).state is JobState.SUCCEEDED


def test_from_a_request_to_a_version(fleet, worker):
    requested = {"model": "iris", "dataset": fleet.dataset, "target": "species", "algorithm": {"name": "logistic"}}
    job, replayed = fleet.services.submission.submit(TrainRequest.model_validate(requested), request_id="abc")
    done = fleet.ended(job.id)
    assert not replayed
    assert (done.state, done.progress, done.attempt, done.error) == (JobState.SUCCEEDED, 1, 1, None)
    version = fleet.services.models.version("iris", done.version)
    assert (version.job, version.dataset, version.algorithm) == (job.id, fleet.dataset, "logistic")


def test_progress_and_curves_are_reported_while_it_runs(fleet, worker):
    job_id = fleet.submit("work", seconds=3)
    seen = fleet.until(lambda: (job := fleet.job(job_id)).curves and job, "a curve")
    assert seen.state is JobState.RUNNING
    assert 0 < seen.progress < 1
    assert seen.message
    done = fleet.ended(job_id)
    (loss,) = [curve for curve in done.curves if curve.name == "loss"]
    assert loss.values == sorted(loss.values, reverse=True)
    assert len(loss.values) > len(seen.curves[0].values)


def test_cancel_ends_its_own_job_and_no_other(fleet, worker):
    neighbour = fleet.submit("work", seconds=4)
    doomed = fleet.submit("loop_holding_the_lock")
    queued = fleet.submit("work")
    fleet.running(neighbour)
    fleet.until(lambda: fleet.job(doomed).state is JobState.RUNNING, "the start")
    assert fleet.services.jobs.cancel(queued).state is JobState.CANCELLED
    assert fleet.services.jobs.cancel(doomed).state is JobState.CANCELLING
    job = fleet.ended(doomed)
    assert [line.state for line in job.transitions] == ["queued", "running", "cancelling", "cancelled"]
    assert fleet.ended(neighbour).state is JobState.SUCCEEDED
    assert [fleet.models(job_id) for job_id in (doomed, queued, neighbour)] == [0, 0, 1]


def test_a_message_that_comes_five_times_is_one_run(fleet, worker):
    job_id = fleet.submit("work", seconds=0.5)
    for _ in range(4):
        publish(fleet.services.celery, job_id)
    done = fleet.ended(job_id)
    publish(fleet.services.celery, job_id)
    after = fleet.ended(fleet.submit())
    assert after.state is JobState.SUCCEEDED
    assert [line.state for line in fleet.job(job_id).transitions] == ["queued", "running", "succeeded"]
    assert fleet.job(job_id) == done


def test_nonsense_from_the_broker_hurts_nobody(fleet, worker):
    for task, arguments in (("valiant.run", ["no id"]), ("valiant.run", []), ("os.system", ["true"])):
        fleet.services.celery.send_task(task, args=arguments)
    assert fleet.ended(fleet.submit()).state is JobState.SUCCEEDED


def test_a_job_nobody_announced_is_found(fleet, worker):
    assert fleet.ended(fleet.submit(announce=False)).state is JobState.SUCCEEDED


def test_no_trainer_is_left_behind(fleet, worker):
    import psutil

    fleet.until(lambda: fleet.services.jobs.page(100, state=JobState.RUNNING).items == [], "quiet")
    fleet.until(lambda: len(psutil.Process(worker.pid).children(recursive=True)) == 1, "the template alone")


def test_the_canary_is_received(fleet, worker):
    fleet.until(lambda: "canary_received" in worker.logfile.read_text(), "the canary")
