"""A dataset of predictions over HTTP: every row of a dataset predicted by a job, whatever interrupts it."""

import io
import os
import signal
import time

import numpy as np
import psutil
import pyarrow as pa
import pytest
from sklearn import datasets
from sqlalchemy import func, select

NAMES = ["a", "b", "c", "d"]
IRIS = datasets.load_iris()
ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


def upload(client, columns, **params):
    sink = io.BytesIO()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    response = client.post("/v1/datasets", content=sink.getvalue(), params={"file_format": "arrow", **params})
    assert response.status_code == 201, response.text
    return response.json()["id"]


def downloaded(client, dataset):
    response = client.get(f"/v1/datasets/{dataset}/file", headers=ARROW)
    return pa.ipc.open_stream(response.content).read_all()


@pytest.fixture
def flowers(client):
    species = IRIS.target_names[IRIS.target].tolist()
    columns = dict(zip(NAMES, IRIS.data.T, strict=True))
    return upload(client, {"id": [f"f-{i:03}" for i in range(150)], **columns, "species": species}, name="flowers")


@pytest.fixture
def trained(client, done, flowers):
    def train(model, algorithm, **more):
        body = {"model": model, "dataset": flowers, "features": NAMES, "algorithm": algorithm, **more}
        return done("train", body)["version"]

    return train


def test_classes_their_probabilities_and_kept_columns_become_a_dataset(client, done, flowers, trained):
    version = trained("scored-species", {"name": "random_forest", "n_estimators": 20}, target="species")
    body = {
        "model": "scored-species",
        "version": version,
        "dataset": flowers,
        "keep": ["id", "a"],
        "result_name": "scored",
    }
    result = done("predict", body)["result"]
    assert (result["kind"], result["version"], result["rows"], result["dataset"]) == ("predict", version, 150, flowers)
    scored = client.get(f"/v1/datasets/{result['result_dataset']}").json()
    assert (scored["name"], scored["rows"], scored["file_format"]) == ("scored", 150, "arrow")
    probabilities = [f"probability_{name}" for name in IRIS.target_names]
    assert [column["name"] for column in scored["columns"]] == ["id", "a", "prediction", *probabilities, "flags"]
    table = downloaded(client, result["result_dataset"])
    assert table["id"].to_pylist() == [f"f-{i:03}" for i in range(150)]
    sent = {"columns": NAMES, "data": IRIS.data.tolist()}
    direct = client.post("/v1/models/scored-species/predict", params={"version": version}, json=sent).json()
    assert table["prediction"].to_pylist() == direct["predictions"]
    found = np.column_stack([table[name].to_numpy() for name in probabilities])
    np.testing.assert_array_equal(found, direct["probabilities"])
    assert client.get("/v1/datasets", params={"name": "scored"}).json()["items"][0]["id"] == result["result_dataset"]


def test_it_is_a_dataset_like_any_other(client, done, flowers, trained):
    trained("scored-petals", {"name": "ridge"}, target="d", features=["a", "b", "c"])
    body = {"model": "scored-petals", "dataset": flowers, "keep": ["d", "species"], "confidence": 0.9}
    result = done("predict", body)["result"]
    scored = client.get(f"/v1/datasets/{result['result_dataset']}").json()
    kinds = {column["name"]: column["kind"] for column in scored["columns"]}
    assert kinds["species"] == "categorical"
    table = downloaded(client, scored["id"])
    inside = (table["lower"].to_numpy() <= table["d"].to_numpy()) & (table["d"].to_numpy() <= table["upper"].to_numpy())
    assert inside.mean() > 0.85
    again = {"model": "scored-twice", "dataset": scored["id"], "target": "d", "algorithm": {"name": "linear"}}
    assert done("train", again)["state"] == "succeeded"


def test_outputs_and_coordinates_have_columns_of_their_own(client, done, flowers, trained):
    trained("scored-map", {"name": "pca", "n_components": 3})
    result = done("predict", {"model": "scored-map", "dataset": flowers, "include": ["distance"]})["result"]
    table = downloaded(client, result["result_dataset"])
    assert table.column_names == ["prediction_1", "prediction_2", "prediction_3", "distance", "flags"]
    assert client.get(f"/v1/datasets/{result['result_dataset']}").json()["name"] == "scored-map-predictions"


def test_a_file_is_read_in_the_notation_of_the_model(client, done):
    german = "preis;y\n" + "".join(f"{n}.{100 + n},50;{1000 * n + 100 + n}\n" for n in range(1, 40))
    trained_on, scored = (
        client.post("/v1/datasets", content=body, params={"file_format": "csv"}).json()["id"]
        for body in (german, "preis;name\n1.234;a\n2.500;b\n7.100;c\n")
    )
    done("train", {"model": "german", "dataset": trained_on, "target": "y", "algorithm": {"name": "linear"}})
    result = done("predict", {"model": "german", "dataset": scored})["result"]
    predictions = downloaded(client, result["result_dataset"])["prediction"].to_pylist()
    assert predictions == pytest.approx([1233.5, 2499.5, 7099.5], abs=1)


def test_flags_name_the_rows_in_doubt(client, done, trained):
    trained("scored-species", {"name": "logistic"}, target="species")
    rows = np.vstack([IRIS.data[:2], [[99.0, 3, 1, 0.2]], [[np.nan, 3, 1, 99]]])
    dataset = upload(client, dict(zip(NAMES, rows.T, strict=True)))
    result = done("predict", {"model": "scored-species", "dataset": dataset})["result"]
    flags = downloaded(client, result["result_dataset"])["flags"].to_pylist()
    assert flags == [None, None, "outside_range:a", "outside_range:d imputed:a"]


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        ({"keep": ["i"]}, {("/keep/0", "The dataset has no column 'i'; did you mean 'id'?")}),
        ({"keep": ["id", "id"]}, {("/keep/1", "This column is named twice.")}),
        ({"include": ["distance"]}, {("/include/0", "The model has no outputs.")}),
        ({"confidence": 0.9}, {(
            "/confidence", "Only a regression has prediction intervals; this is a classification."
        )}),
        ({"dataset": "narrow", "keep": ["prediction"]}, {
            ("/dataset", "It lacks the column 'd'."),
            ("/keep/0", "The new dataset has a column 'prediction' of its own."),
        }),
    ],
)  # fmt: skip
def test_every_fault_is_named_before_the_job(client, flowers, trained, change, faults):
    trained("scored-species", {"name": "logistic"}, target="species")
    upload(client, {**dict(zip(NAMES[:3], IRIS.data.T[:3], strict=True)), "prediction": [1.0] * 150}, name="narrow")
    response = client.post("/v1/jobs/predict", json={"model": "scored-species", "dataset": flowers} | change)
    assert response.status_code == 422
    assert {(fault["pointer"], fault["detail"]) for fault in response.json()["errors"]} == faults


def stored(services):
    from app.store.jobs.job_tables import JobChunkRow

    with services.work() as w:
        return w.session.scalar(select(func.count()).select_from(JobChunkRow))


@pytest.fixture
def long_job(client, trained):
    """A job of several seconds, and the table that it predicts."""
    trained("scored-slow", {"name": "knn", "n_neighbors": 9}, target="species")
    rows = np.random.default_rng(0).permutation(np.repeat(IRIS.data, 2000, axis=0)) + 0.01
    dataset = upload(client, {"row": np.arange(len(rows)), **dict(zip(NAMES, rows.T, strict=True))})
    body = {"model": "scored-slow", "dataset": dataset, "keep": ["row"]}
    return client.post("/v1/jobs/predict", json=body).headers["location"], rows


def wait(true, seconds=120):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.002)


@pytest.mark.slow
def test_a_killed_job_goes_on_behind_the_rows_it_has_stored(client, services, worker, long_job):
    location, rows = long_job
    wait(lambda: stored(services) >= 2)
    trainers = [p for p in psutil.Process(worker.pid).children(recursive=True) if p.num_threads() >= 1]
    job = client.get(location).json()
    assert job["state"] == "running"
    busy = max(trainers, key=lambda p: sum(p.cpu_times()[:2]))
    os.kill(busy.pid, signal.SIGKILL)
    kept = stored(services)
    wait(lambda: client.get(location).json()["state"] not in {"queued", "running"})
    job = client.get(location).json()
    assert job["state"] == "succeeded", job
    assert job["attempt"] == 2
    assert kept >= 2
    table = downloaded(client, job["result"]["result_dataset"])
    assert table["row"].to_pylist() == list(range(len(rows)))
    some = np.random.default_rng(1).choice(len(rows), 500, replace=False)
    sent = {"columns": NAMES, "data": rows[some].tolist()}
    direct = client.post("/v1/models/scored-slow/predict", json=sent).json()
    assert table["prediction"].take(pa.array(some)).to_pylist() == direct["predictions"]
    assert stored(services) == 0


def test_a_cancelled_job_leaves_no_rows_behind(client, services, long_job):
    location, _ = long_job
    wait(lambda: stored(services) >= 1)
    client.post(f"{location}/cancel")
    wait(lambda: client.get(location).json()["state"] == "cancelled")
    wait(lambda: stored(services) == 0)


@pytest.mark.slow
def test_a_million_rows_are_predicted_as_by_requests_in_little_memory_though_killed_half_way(client, worker, trained):
    """Bit for bit, each row once; the job's process takes 200 MB beside what it takes before the first row."""
    trained("scored-million", {"name": "gradient_boosting", "n_estimators": 40}, target="species")
    rows = np.random.default_rng(0).permutation(np.tile(IRIS.data, (6667, 1))[:1_000_000])
    rows += np.random.default_rng(1).normal(0, 0.1, rows.shape)
    dataset = upload(client, {"row": np.arange(len(rows)), **dict(zip(NAMES, rows.T, strict=True))})
    family = psutil.Process(worker.pid)
    before = {one.pid: one.memory_full_info().uss for one in family.children(recursive=True)}
    body = {"model": "scored-million", "dataset": dataset, "keep": ["row"]}
    location = client.post("/v1/jobs/predict", json=body).headers["location"]
    peak, killed = 0, False
    while (job := client.get(location).json())["state"] in {"queued", "running"}:
        children = [one for one in family.children(recursive=True) if one.is_running()]
        peak = max([peak, *(grown(one, before) for one in children)])
        if not killed and job.get("progress", 0) > 0.5:
            killed = True
            os.kill(max(children, key=lambda one: sum(one.cpu_times()[:2])).pid, signal.SIGKILL)
        time.sleep(0.02)
    assert (job["state"], job["attempt"], killed) == ("succeeded", 2, True)
    assert peak < 200e6
    table = downloaded(client, job["result"]["result_dataset"])
    assert table["row"].to_pylist() == list(range(len(rows)))
    for start in range(0, len(rows), 50_000):
        part, sent = table.slice(start, 50_000), io.BytesIO()
        np.save(sent, rows[start : start + 50_000])
        found = client.post(
            "/v1/models/scored-million/predict", content=sent.getvalue(), headers={"Content-Type": "application/x-npy"}
        ).json()
        assert part["prediction"].to_pylist() == found["predictions"]
        shares = np.column_stack([part[f"probability_{name}"].to_numpy() for name in IRIS.target_names])
        assert np.array_equal(shares, np.array(found["probabilities"]))


def grown(process, before):
    """Bytes that the process has to itself, beyond those of the smallest before."""
    try:
        return process.memory_full_info().uss - before.get(process.pid, min(before.values(), default=0))
    except psutil.NoSuchProcess:
        return 0
