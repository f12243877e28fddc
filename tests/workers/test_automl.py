"""The best model by a real worker: a leaderboard and a version."""

import pytest

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
