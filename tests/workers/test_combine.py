"""Models combined by a real worker, and the predictions of the committee from the store."""

import asyncio

import numpy as np
import pytest

from app.ml.jobs.combine import CombineRequest
from app.ml.jobs.evaluate import EvaluateRequest
from app.ml.jobs.train import TrainRequest
from tests.workers.test_evaluate import done


@pytest.fixture(scope="module")
def worker(fleet):
    return fleet.start()


def test_from_models_to_a_committee(fleet, worker):
    requested = {"model": "alone", "dataset": fleet.dataset, "target": "species"}
    for name in ("logistic", "decision_tree"):
        done(fleet, TrainRequest.model_validate(requested | {"algorithm": {"name": name}}))
    members = [{"model": "alone", "version": 1, "weight": 3}, {"model": "alone", "version": 2}]
    team = {"model": "team", "dataset": fleet.dataset, "members": members}
    job = done(fleet, CombineRequest.model_validate(team))
    assert (job.kind, job.model, job.version) == ("combine", "team", 1)
    report = fleet.services.models.report("team", 1)
    assert report.rows_test == fleet.services.models.report("alone", 1).rows_test  # the same split held them out
    found = fleet.job(
        done(fleet, EvaluateRequest.model_validate({"model": "team", "dataset": fleet.dataset})).id
    ).result
    assert {f.name: f.value for f in found.metrics} == pytest.approx({f.name: f.value for f in report.test})

    def explained(model, version):
        model = asyncio.run(fleet.services.predictions.serve(model, version)).model
        raw = np.array([[column.minimum for column in model.inputs], [column.maximum for column in model.inputs]])
        return model.predict_raw(raw).probabilities

    np.testing.assert_allclose(explained("team", 1), (3 * explained("alone", 1) + explained("alone", 2)) / 4, rtol=1e-9)
