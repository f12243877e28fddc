"""A client generated from the checked-in document does the whole job, against the real service."""

import importlib
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "app"
PACKAGE = "valiant_generated_client"


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """`generated("api.jobs.train_model")` is that module of the client."""
    folder = tmp_path_factory.mktemp("sdk")
    (folder / "config.yaml").write_text("post_hooks: []\n")
    command = "generate", "--path", HERE / "openapi.json", "--output-path", folder / PACKAGE, "--meta", "none"
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *command, "--config", folder / "config.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def address(api_address):
    return api_address()


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("upload", ["raw", "form"])
def test_upload_train_wait_predict(generated, address, upload):
    models = generated("models")
    client = generated("client").Client(base_url=address)
    file = generated("types").File(payload=BytesIO((HERE / "samples" / "iris.csv").read_bytes()), file_name="iris.csv")
    if upload == "raw":
        dataset = generated("api.datasets.create_dataset").sync(client=client, body=file, name="iris")
    else:
        form = models.UploadDatasetForm(file=file)
        dataset = generated("api.datasets.upload_dataset").sync(client=client, body=form)
    assert (dataset.rows, len(dataset.columns)) == (150, 5)
    target = dataset.columns[-1].name

    request = models.TrainRequest(
        model=f"sdk-{upload}",
        dataset=dataset.name,
        target=target,
        algorithm=models.RidgeAlgorithm(name="ridge", l2=0.5),
    )
    estimate = generated("api.jobs.validate_training").sync(client=client, body=request)
    assert estimate.task == "classification"
    train = generated("api.jobs.train_model")
    first = train.sync_detailed(client=client, body=request, idempotency_key=f"key-{dataset.id}")
    again = train.sync_detailed(client=client, body=request, idempotency_key=f"key-{dataset.id}")
    assert first.status_code == 202
    assert first.headers["location"] == f"/v1/jobs/{first.parsed.id}"
    assert first.parsed == again.parsed

    job = _end_of(first.parsed, lambda job: generated("api.jobs.get_job").sync(job.id, client=client))
    assert job.state == models.JobState.SUCCEEDED, job
    version = generated("api.models.get_model_version").sync(job.model, job.version, client=client)
    assert version.algorithm == "ridge"

    names = [column.name for column in dataset.columns[:-1]]
    table = models.PredictColumns(columns=names, data=[[5.1, 3.5, 1.4, 0.2], [6.3, 3.3, 6.0, 2.5]])
    response = generated("api.predictions.predict_rows").sync(job.model, client=client, body=table)
    assert response.version == job.version
    assert response.predictions == ["setosa", "virginica"]


def test_a_refusal_is_a_problem_with_its_faults(generated, address):
    models = generated("models")
    client = generated("client").Client(base_url=address)
    request = models.TrainRequest(
        model="Bad Name", dataset="00000000-0000-7000-8000-000000000000", algorithm=models.RidgeAlgorithm(name="ridge")
    )
    problem = generated("api.jobs.train_model").sync(client=client, body=request)
    assert isinstance(problem, models.Problem)
    found = {(error.pointer, error.code) for error in problem.errors}
    assert found == {("/model", "string_pattern_mismatch"), ("/dataset", "dataset_not_found")}


def _end_of(job, ask, seconds=60):
    end = time.monotonic() + seconds
    while not job.finished_at and time.monotonic() < end:  # absent is false
        time.sleep(0.05)
        job = ask(job)
    return job
