"""Metrics: what they count, and that a scrape never waits for a database that does not respond."""

import time
from uuid import uuid4

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as families
from starlette.testclient import TestClient

from app.processes.health import check

ROWS = {"rows": [{"length": 5.0, "width": 0.2, "size": "small"}, {"length": 6.0, "width": 2.0, "size": "large"}]}


def samples(text):
    """Values by name and labels."""
    return {(s.name, *sorted(s.labels.items())): s.value for family in families(text) for s in family.samples}


@pytest.fixture
def scrape(client):
    return lambda: samples(client.get("/metrics").text)


def test_says_which_release_runs(scrape):
    from importlib.metadata import version

    assert [dict(labels)["version"] for name, *labels in scrape() if name == "valiant_build_info"] == [
        version("valiant")
    ]


def test_counts_predictions_and_rows_of_each_model(client, services, publish, scrape):
    name = f"counted-{uuid4().hex[:8]}"
    publish(services.work, name)
    numbers = {"inputs": [
        {"name": "length", "shape": [3], "datatype": "FP64", "data": [5.0, 6.0, 7.0]},
        {"name": "width", "shape": [3], "datatype": "FP64", "data": [0.2, 1.0, 2.0]},
        {"name": "size", "shape": [3], "datatype": "BYTES", "data": ["small", "small", "large"]},
    ]}  # fmt: skip
    for _ in range(2):
        assert client.post(f"/v1/models/{name}/predict", json=ROWS).status_code == 200
    assert client.post(f"/v2/models/{name}/infer", json=numbers).status_code == 200
    assert client.post(f"/v1/models/{name}/predict", json={"rows": [{}]}).status_code == 422
    found = scrape()
    assert found["valiant_predictions_total", ("model", name)] == 3
    assert found["valiant_predicted_rows_total", ("model", name)] == 7


def test_counts_where_models_were_found(services, publish, settings):
    from app.main import create_app

    name = f"found-{uuid4().hex[:8]}"
    publish(services.work, name, seed=uuid4().int % 2**31)  # bytes of its own: Redis knows models by their bytes

    def lookups(client):
        found = samples(client.get("/metrics").text)
        return {
            (dict(key[1:])["level"], dict(key[1:])["result"]): value
            for key, value in found.items()
            if key[0] == "valiant_model_lookups_total"
        }, found["valiant_model_loads_total",]

    with TestClient(create_app(settings)) as first:
        for _ in range(3):
            first.post(f"/v1/models/{name}/predict", json=ROWS)
        assert lookups(first) == (
            {
                ("memory", "miss"): 1, ("memory", "hit"): 2, ("redis", "miss"): 1, ("redis", "hit"): 0,
                ("postgres", "hit"): 1, ("postgres", "miss"): 0,
            },
            1,
        )  # fmt: skip
    with TestClient(create_app(settings)) as second:
        second.post(f"/v1/models/{name}/predict", json=ROWS)
        found, loads = lookups(second)
    assert (found["redis", "hit"], found["postgres", "hit"], loads) == (1, 0, 1)


def test_the_thousandth_model_is_the_last_with_a_name():
    from app.services.predictions.prediction_counts import MOST_MODELS, OTHER, Tally

    tally = Tally()
    for number in range(MOST_MODELS + 5):
        tally.add(f"model-{number}", 2)
    tally.add("model-0", 2)
    counted = {model: (requests, rows) for model, requests, rows in tally.models()}
    assert len(counted) == MOST_MODELS + 1
    assert counted["model-0"] == (2, 4)
    assert counted[OTHER] == (5, 10)


def test_counts_jobs_and_the_age_of_the_queue(database_factory, add_iris):
    from app.composition.wiring import build
    from app.main import create_app

    own = database_factory()
    services = build(own, role="api")
    with TestClient(create_app(own, services)) as client:
        dataset = str(add_iris(services.work))
        body = {"model": "m", "dataset": dataset, "target": "species", "algorithm": {"name": "ridge"}}
        first, *_ = [client.post("/v1/jobs/train", json=body).json()["id"] for _ in range(3)]
        client.post(f"/v1/jobs/{first}/cancel")
        found, cancelled = {}, ("valiant_jobs", ("kind", "train"), ("state", "cancelled"))
        end = time.monotonic() + 60
        while cancelled not in found and time.monotonic() < end:  # a scrape waits for the database less than a second
            found = samples(client.get("/metrics").text)
    services.close()
    assert found["valiant_database_up",] == 1
    assert found["valiant_jobs", ("kind", "train"), ("state", "queued")] == 2
    assert found[cancelled] == 1
    assert found["valiant_queue_jobs",] == 2
    assert 0 < found["valiant_queue_oldest_seconds",] < 60
    assert found["valiant_database_connections_limit",] == own.database_pool


def test_a_scrape_does_not_wait_for_a_database_that_does_not_respond(database_factory):
    from app.composition.wiring import build
    from app.main import create_app

    own = database_factory()
    services = build(own, role="api")
    with TestClient(create_app(own, services)) as client:
        with services.work.engine.begin() as connection:
            connection.exec_driver_sql("lock table jobs in access exclusive mode")
            begun = time.monotonic()
            found = samples(client.get("/metrics").text)
            assert time.monotonic() - begun < 5
        assert found["valiant_database_up",] == 0
        assert not [key for key in found if key[0].startswith(("valiant_jobs", "valiant_queue"))]
        assert found["valiant_database_connections_in_use",] >= 1
        deadline = time.monotonic() + 30
        while not found["valiant_database_up",] and time.monotonic() < deadline:
            found = samples(client.get("/metrics").text)
        assert found["valiant_queue_jobs",] == 0
    services.close()


def test_a_worker_shows_its_attempts_and_slots(stack, client, add_iris, services):
    from app.commands import processes
    from app.processes import ports

    with ports.listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    own = stack.settings.model_copy(update={"worker_metrics_port": port - 1, "worker_concurrency": 2})
    child = processes.worker(own, stack.folder, number=2)
    child.start()
    try:
        body = {
            "model": "measured", "dataset": str(add_iris(services.work)), "target": "species",
            "algorithm": {"name": "ridge"},
        }  # fmt: skip
        event = ("valiant_attempts_total", ("event", "succeeded"), ("kind", "train"), ("reason", ""))
        client.post("/v1/jobs/train", json=body)
        deadline, found = time.monotonic() + 60, {}
        while not found.get(event) and time.monotonic() < deadline:
            time.sleep(0.2)
            try:
                found = samples(httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text)
            except httpx.TransportError:
                continue
            if not found.get(event):
                client.post("/v1/jobs/train", json=body)  # another worker of this session may have taken the first
        check(own.model_copy(update={"port": 1, "worker_metrics_port": port}))  # `valiant health` beside a worker
    finally:
        child.stop()
    assert found["valiant_attempts_total", ("event", "started"), ("kind", "train"), ("reason", "")] >= 1
    assert sum(value for key, value in found.items() if key[0] == "valiant_worker_slots") == 2
    stages = {key: value for key, value in found.items() if key[0] == "valiant_job_stage_seconds_count"}
    assert {dict(key[1:])["stage"] for key in stages} == {
        "queued", "reading", "preparing", "fitting", "evaluating", "storing",
    }  # fmt: skip
    assert set(stages.values()) == {found[event]}
    assert [key for key in found if key[0] == "valiant_build_info"]
