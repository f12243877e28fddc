"""The best model by a real worker: a leaderboard and a version."""

import pytest
from sqlalchemy import text

from app.ml.jobs.automl import AutomlRequest
from app.schemas.jobs import JobState

CHEAP = ["logistic", "generative_bayes", "knn", "decision_tree"]


@pytest.fixture(scope="module")
def worker(fleet):
    return fleet.start()


def requested(fleet, **changes):
    body = {"dataset": str(fleet.dataset), "target": "species", "include": CHEAP, "validation": {"folds": 3}}
    return AutomlRequest.model_validate(body | changes)


def test_from_a_budget_of_units_to_a_version(fleet, worker):
    job, _ = fleet.services.submission.submit(requested(fleet, model="first", units=8))
    ended = fleet.ended(job.id)
    assert ended.state is JobState.SUCCEEDED, ended.error
    assert (ended.kind, ended.model, ended.version) == ("automl", "first", 1)
    result = fleet.job(job.id).result
    assert (result.units_done, result.ended_by) == (8, "units")
    assert result.evaluation.n == 30
    assert fleet.services.models.report("first", 1).reuse.uses == 1  # the test rows were looked at once


@pytest.mark.slow
def test_a_budget_of_seconds_ends_with_a_model(fleet, worker):
    job, _ = fleet.services.submission.submit(requested(fleet, model="timed", seconds=8, seed=1))
    ended = fleet.ended(job.id)
    assert ended.state is JobState.SUCCEEDED, ended.error
    result = fleet.job(job.id).result
    assert result.ended_by in {"budget", "exhausted"}
    assert fleet.services.models.report("timed", 1).reuse.uses == 1


def stored(fleet, job_id):
    """Number of units, and whether there is a model."""
    with fleet.services.work() as w:
        return len(w.job_parts.outcomes(job_id)), w.job_parts.checkpoint(job_id) is not None


def test_a_cancelled_job_keeps_its_best_model_and_its_leaderboard(fleet, worker):
    job, _ = fleet.services.submission.submit(requested(fleet, model="kept", seconds=120, seed=2))
    fleet.until(lambda: stored(fleet, job.id)[1], "a checkpoint")
    fleet.services.jobs.cancel(job.id)
    ended = fleet.ended(job.id)
    assert (ended.state, ended.version) == (JobState.CANCELLED, 1)
    result = fleet.job(job.id).result
    assert (result.ended_by, ended.error) == ("cancel", None)
    assert [row.rank for row in result.candidates].count(1) == 1
    assert any("cancelled" in warning for warning in ended.warnings)
    assert fleet.services.models.report("kept", 1).reuse.uses == 1


@pytest.mark.slow
def test_a_killed_worker_costs_no_stored_unit(fleet):
    job, _ = fleet.services.submission.submit(requested(fleet, model="again", units=15, seed=3))
    fleet.until(lambda: stored(fleet, job.id)[0] >= 3, "units")
    for each in fleet.workers:
        each.kill()
    fleet.start()
    ended = fleet.ended(job.id)
    assert ended.state is JobState.SUCCEEDED, ended.error
    assert (ended.attempt, fleet.job(job.id).result.units_done) == (2, 15)


@pytest.mark.slow
def test_a_job_whose_last_worker_dies_keeps_its_best_model(fleet):
    """No attempt is left: the sweeper of another worker ends it."""
    job, _ = fleet.services.submission.submit(requested(fleet, model="orphan", seconds=120, seed=4))
    with fleet.services.work() as w:
        w.session.execute(text("update jobs set max_attempts = 1 where id = :id"), {"id": job.id})
    fleet.keep(1)
    fleet.until(lambda: stored(fleet, job.id)[1], "a checkpoint")
    for each in fleet.workers:
        each.kill()
    fleet.start()
    ended = fleet.ended(job.id)
    assert (ended.state, ended.version, ended.error.code) == (JobState.FAILED, 1, "worker_lost")
    assert fleet.job(job.id).result.ended_by == "crash"
