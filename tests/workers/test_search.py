"""Searches by a real worker: every candidate reported, the chosen one a version."""

import pytest

from app.ml.jobs.search import SearchRequest
from app.schemas.jobs import JobState


@pytest.fixture(scope="module")
def worker(fleet):
    return fleet.start()


def test_from_a_grid_to_a_version(fleet, worker):
    requested = {
        "model": "searched",
        "dataset": fleet.dataset,
        "target": "species",
        "algorithm": {"name": "logistic"},
        "alternatives": [{"name": "knn"}],
        "grid": [
            {"pointer": "/algorithm/l2", "values": [1000, 1.0]},
            {"pointer": "/alternatives/0/n_neighbors", "values": [9, 3]},
        ],
    }
    job, _ = fleet.services.submission.submit(SearchRequest.model_validate(requested))
    ended = fleet.ended(job.id)
    assert ended.state is JobState.SUCCEEDED, ended.error
    found = fleet.job(job.id).result
    assert (ended.kind, ended.model, ended.version) == ("search", "searched", 1)
    assert [one.algorithm for one in found.candidates] == ["logistic"] * 2 + ["knn"] * 2
    assert sorted(one.rank for one in found.candidates) == [1, 2, 3, 4]
    best = found.candidates[found.chosen]
    assert best.validation.value == min(one.validation.value for one in found.candidates)
    version = fleet.services.models.version("searched", 1)
    assert version.algorithm == best.algorithm
    assert fleet.services.models.report("searched", 1).reuse.uses == 1  # the test rows were looked at once

    requested["model"] = None
    job, _ = fleet.services.submission.submit(SearchRequest.model_validate(requested))
    assert fleet.ended(job.id).version is None
