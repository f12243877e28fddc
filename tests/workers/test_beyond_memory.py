"""A dataset larger than the memory of a job, through a real worker: learned by what learns in batches or blocks."""

from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import psutil
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.ml.jobs.predict import PredictJobRequest
from app.ml.jobs.train import TrainRequest
from app.ml.models.model import decode
from app.schemas.jobs import JobState

MEMORY = 408 << 20
COLUMNS, ROWS, TIMES, GROUPED = 20, 20_000, 130, 12


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


BLOCKS = {
    "pca": {"n_components": 3},
    "kmeans": {"n_clusters": 4, "n_init": 1, "max_iter": 5},
    "gmm": {"n_components": 2, "n_init": 1, "max_iter": 3},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
def test_fits_that_read_blocks_take_a_table_that_does_not_fit(fleet, worker, large, name):
    request = train_request(large, {"name": name, **BLOCKS[name]}, None)
    job, _ = fleet.services.submission.submit(request)
    done = fleet.ended(job.id)
    assert (done.state, done.error) == (JobState.SUCCEEDED, None)
    report = fleet.services.models.report(done.model, done.version)
    assert report.rows_train + report.rows_test >= 0.99 * ROWS * TIMES


@pytest.fixture(scope="module")
def client(fleet):
    """The API on the servers of the fleet, with the memory limit of its worker."""
    with TestClient(create_app(fleet.settings.model_copy(update={"job_memory_bytes": MEMORY}))) as connected:
        yield connected


@pytest.fixture(scope="module")
def groups(fleet, add_table):
    """Groups of rows about 0, 10 and 20 in all columns; too many rows for all to be prepared at once."""
    x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).round(1) + 10 * (np.arange(ROWS) % 3)[:, None]
    table = pa.table({f"x{j}": column for j, column in enumerate(x.T)})
    return add_table(fleet.services.work, table, GROUPED)


@pytest.mark.slow
def test_a_client_trains_on_a_table_beyond_memory_and_predicts(fleet, worker, client, groups):
    algorithm = {"name": "kmeans", "n_clusters": 3, "n_init": 3}
    request = {"model": "beyond-groups", "dataset": str(groups), "algorithm": algorithm}
    plan = client.post("/v1/jobs/train:validate", json=request).json()
    assert any("in batches of about" in warning for warning in plan["warnings"])
    job = client.post("/v1/jobs/train", json=request)
    done = fleet.ended(UUID(job.json()["id"]))
    assert (done.state, done.error) == (JobState.SUCCEEDED, None)
    report = client.get("/v1/models/beyond-groups/versions/1/report").json()
    assert report["rows_train"] == ROWS * GROUPED
    assert sum(one["size"] for one in report["summary"]["clusters"]) == ROWS * GROUPED
    found = sorted(row["values"]["x0"] for row in report["prototypes"])
    np.testing.assert_allclose(found, [0, 10, 20], atol=0.05)
    rows = {"columns": [f"x{j}" for j in range(COLUMNS)], "data": [[value] * COLUMNS for value in (0, 10, 20, 1)]}
    labels = client.post("/v1/models/beyond-groups/predict", json=rows).json()["predictions"]
    assert len(set(labels[:3])) == 3
    assert labels[3] == labels[0]


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


WHOLE = {
    "ridge": ({"name": "ridge"}, "score", "r2", 0.96),
    "lasso": ({"name": "lasso"}, "score", "r2", 0.8),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_rows_beside_memory_are_fitted_whole(fleet, worker, large, name):
    algorithm, target, metric, expected = WHOLE[name]
    job, _ = fleet.services.submission.submit(train_request(large, algorithm, target))
    done = fleet.ended(job.id)
    assert (done.state, done.error) == (JobState.SUCCEEDED, None)
    report = fleet.services.models.report(done.model, done.version)
    (found,) = [one for one in report.test if one.name == metric and one.label is None]
    assert found.value > expected
    assert report.rows_train + report.rows_test == ROWS * TIMES


def test_what_memory_cannot_hold_is_refused_before_the_job(client, large):
    algorithm = {"name": "random_forest", "min_samples_leaf": 1}
    request = train_request(large, algorithm, "score").model_dump(mode="json", exclude_unset=True)
    for operation in ("train:validate", "train"):
        refusal = client.post(f"/v1/jobs/{operation}", json=request)
        (fault,) = refusal.json()["errors"]
        assert (refusal.status_code, fault["code"], fault["pointer"]) == (422, "too_large", "/algorithm")
        assert "GiB of memory and a job has 408 MiB: at most" in fault["detail"]


@pytest.mark.slow
def test_millions_of_rows_are_predicted_into_a_dataset_and_survive_kills(fleet, worker, large):
    """None is lost, doubled or different from what `predict` returns, and the memory of the job does not grow."""
    small = {"algorithm": {"name": "linear_sgd", "epochs": 1}, "target": "score"}
    trained, _ = fleet.services.submission.submit(train_request(large, **small))
    done = fleet.ended(trained.id)
    request = {"model": done.model, "version": done.version, "dataset": large, "keep": ["x0", "x7"]}
    job, _ = fleet.services.submission.submit(PredictJobRequest.model_validate(request))
    fleet.until(lambda: kept(fleet, job.id) >= 5, "the first rows")
    for trainer in trainers(worker):
        trainer.kill()
    early = fleet.until(lambda: kept(fleet, job.id) >= 20 and highest(worker), "rows of a second attempt")
    late = fleet.until(lambda: kept(fleet, job.id) >= 80 and highest(worker), "more of them")
    assert late - early < 16 << 20
    worker.kill()
    fleet.start(job_memory_bytes=MEMORY)
    done = fleet.ended(job.id)
    assert (done.state, done.error, done.attempt) == (JobState.SUCCEEDED, None, 3)
    assert done.result.rows == ROWS * TIMES
    datasets, tested = fleet.services.datasets, 0
    pointer = fleet.services.models.pointer(done.model, request["version"])
    model = decode(b"".join(fleet.services.models.artifact(pointer)))
    sources, rows = datasets.tables(large), pa.table({"x7": []})
    for found in datasets.tables(done.result.result_dataset):
        rows = rows if rows.num_rows else next(sources)
        part, rows = rows.slice(0, found.num_rows), rows.slice(found.num_rows)
        assert found["x7"].equals(part["x7"])
        np.testing.assert_array_equal(found["prediction"].to_numpy(), model.predict(part).values)
        tested += part.num_rows
    assert tested == ROWS * TIMES
    assert kept(fleet, job.id) == 0


def trainers(worker):
    (template,) = psutil.Process(worker.pid).children()
    return template.children()


def highest(worker):
    """Bytes that were resident at most, of the process of the job; 0 where there is none."""
    (status, *_) = [*(Path(f"/proc/{one.pid}/status").read_text() for one in trainers(worker)), "VmHWM: 0"]
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def kept(fleet, job_id):
    with fleet.services.work() as w:
        return w.job_chunks.count(job_id)
