"""A dataset larger than the memory of a job, through a real worker: learned by what learns batch by batch."""

from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from app.ml.jobs.train import TrainRequest
from app.schemas.jobs import JobState

MEMORY = 384 << 20
COLUMNS, ROWS, TIMES = 20, 20_000, 130


@pytest.fixture(scope="module")
def worker(fleet):
    return fleet.start(job_memory_bytes=MEMORY)


@pytest.fixture(scope="module")
def large(fleet, add_table):
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(ROWS, COLUMNS)), 1)  # few digits press well
    score = x @ np.linspace(-1, 1, COLUMNS) + 0.5 * rng.normal(size=ROWS)
    target = {"score": np.round(score, 1), "sign": np.where(score > 0, "plus", "minus")}
    table = pa.table({f"x{j}": column for j, column in enumerate(x.T)} | target)
    assert table.drop_columns(["sign"]).nbytes * TIMES > MEMORY
    return add_table(fleet.services.work, table, TIMES)


def train_request(dataset, algorithm, target):
    features = [f"x{j}" for j in range(COLUMNS)]
    spec = {"model": f"m{uuid4().hex}", "dataset": dataset, "target": target, "features": features}
    return TrainRequest.model_validate(spec | {"algorithm": algorithm})


CASES = {
    "linear_sgd": ({"name": "linear_sgd", "epochs": 1}, "score", "r2", 0.96),
    "perceptron": ({"name": "perceptron", "epochs": 1}, "sign", "accuracy", 0.93),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_does_not_fit_is_learned_in_batches(fleet, worker, large, name):
    algorithm, target, metric, expected = CASES[name]
    job, _ = fleet.services.submission.submit(train_request(large, algorithm, target))
    done = fleet.ended(job.id)
    assert (done.state, done.error) == (JobState.SUCCEEDED, None)
    report = fleet.services.models.report(done.model, done.version)
    (found,) = [one for one in report.test if one.name == metric and one.label is None]
    assert found.value > expected
    assert report.rows_train + report.rows_test == ROWS * TIMES
    assert any("in batches" in warning for warning in report.warnings)


def test_what_needs_all_rows_at_once_runs_out_of_memory(fleet, worker, large):
    job, _ = fleet.services.submission.submit(train_request(large, {"name": "ridge"}, "score"))
    done = fleet.ended(job.id)
    assert (done.state, done.error.code) == (JobState.FAILED, "out_of_memory")
