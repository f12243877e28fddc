"""Evaluations by a real worker: what they find, and the count of what they opened."""

import pytest

from app.ml.jobs.evaluate import EvaluateRequest
from app.ml.jobs.train import TrainRequest
from app.schemas.jobs import JobState


@pytest.fixture(scope="module")
def worker(fleet):
    return fleet.start()


def done(fleet, request):
    job, _ = fleet.services.submission.submit(request)
    ended = fleet.ended(job.id)
    assert ended.state is JobState.SUCCEEDED, ended.error
    return ended


def test_from_a_model_to_its_evaluation(fleet, worker):
    requested = {"model": "flowers", "dataset": fleet.dataset, "target": "species", "algorithm": {"name": "logistic"}}
    first = done(fleet, TrainRequest.model_validate(requested))
    second = done(fleet, TrainRequest.model_validate(requested | {"algorithm": {"name": "ridge"}}))
    reports = [fleet.services.models.report("flowers", job.version) for job in (first, second)]
    assert [report.reuse.uses for report in reports] == [1, 2]
    assert [any("evaluated 2 times" in warning for warning in report.warnings) for report in reports] == [False, True]
    assert any("evaluated 2 times" in warning for warning in second.warnings)

    job = done(fleet, EvaluateRequest.model_validate({"model": "flowers", "version": 1, "dataset": fleet.dataset}))
    found = fleet.job(job.id).result
    assert (job.kind, job.model, job.version) == ("evaluate", "flowers", None)
    assert (found.kind, found.version, found.rows, found.reuse.uses) == ("evaluate", 1, reports[0].rows_test, 3)
    assert found.confusion_matrix.counts == reports[0].confusion_matrix.counts
    assert {f.name: f.value for f in found.metrics} == pytest.approx({f.name: f.value for f in reports[0].test})
    assert any("evaluated 3 times" in warning for warning in job.warnings)
    assert fleet.services.jobs.page(10).items[0].result is None


def test_the_version_is_that_of_the_submission(fleet, worker):
    """Between submission and run the newest version may change; the job keeps what it was accepted for."""
    requested = {"model": "moving", "dataset": fleet.dataset, "target": "species", "algorithm": {"name": "ridge"}}
    done(fleet, TrainRequest.model_validate(requested))
    job, _ = fleet.services.submission.submit(
        EvaluateRequest.model_validate({"model": "moving", "dataset": fleet.dataset})
    )
    done(fleet, TrainRequest.model_validate(requested))
    assert fleet.ended(job.id).result.version == 1
