"""Full is full: refused at once, in time or not at all, and the health checks respond meanwhile."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

from app.main import create_app

ROW = {"length": 5.1, "width": 0.2, "size": "small"}
MANY = {"rows": [ROW] * 2000}


@pytest.fixture(scope="module")
def name(services, publish):
    made = f"o-{uuid4()}"
    publish(services.work, made)
    return made


@pytest.fixture
def full(settings, name):
    """A client, and the gate at which its large predictions stand: one in the thread, one waiting for it."""
    own = settings.model_copy(update={"predict_threads": 1, "max_waiting_predictions": 1})
    gate = threading.Event()
    with TestClient(create_app(own)) as client, ThreadPoolExecutor(2) as callers:
        services = client.app.services
        threads = services.admission._threads
        threads.submit(gate.wait)  # the one thread is busy, as with a batch that takes long
        requested = [callers.submit(client.post, f"/v1/models/{name}/predict", json=MANY) for _ in range(2)]
        try:
            while services.admission.large < 2 and not any(one.done() for one in requested):
                time.sleep(0.01)
            yield client
        finally:
            gate.set()
        assert [one.result().status_code for one in requested] == [200, 200]
        assert client.post(f"/v1/models/{name}/predict", json=MANY).status_code == 200


def test_a_full_house_refuses_at_once_and_stays_well(full, name):
    refused = full.post(f"/v1/models/{name}/predict", json=MANY)
    assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
    assert refused.headers["content-type"] == "application/problem+json"
    assert int(refused.headers["retry-after"]) > 0
    assert full.get("/livez").status_code == 200
    assert full.get("/readyz").status_code == 200
    assert full.post(f"/v1/models/{name}/predict", json={"rows": [ROW]}).status_code == 200


def test_no_place_at_all(settings, name):
    with TestClient(create_app(settings.model_copy(update={"max_predictions": 1}))) as client:
        admission = client.app.services.admission
        admission.take()
        refused = client.post(f"/v1/models/{name}/predict", json={"rows": [ROW]})
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        assert client.get("/livez").status_code == 200
        admission.inside -= 1
        assert client.post(f"/v1/models/{name}/predict", json={"rows": [ROW]}).status_code == 200


def test_what_cannot_begin_in_time_is_refused(settings, name):
    with TestClient(create_app(settings.model_copy(update={"predict_threads": 1}))) as client:
        admission = client.app.services.admission
        taken = client.portal.call(admission._turns.acquire)
        late = client.post(f"/v1/models/{name}/predict", json=MANY, headers={"X-Request-Timeout": "0.05"})
        assert taken
        assert (late.status_code, late.json()["code"]) == (504, "deadline_exceeded")
        client.portal.call(admission._turns.release)
        assert client.post(f"/v1/models/{name}/predict", json=MANY).status_code == 200


@pytest.mark.parametrize("sent", ["0", "-1", "soon", "nan", "inf", "1e3", "", "86401", "9" * 5000, "٣"])
def test_a_timeout_that_is_none_is_named(client, name, sent):
    response = client.post(
        f"/v1/models/{name}/predict", json={"rows": [ROW]}, headers={"X-Request-Timeout": sent.encode()}
    )
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
    assert [error["pointer"] for error in response.json()["errors"]] == ["/header/X-Request-Timeout"]


def test_time_enough_changes_nothing(client, name):
    response = client.post(f"/v1/models/{name}/predict", json={"rows": [ROW]}, headers={"X-Request-Timeout": "2.5"})
    assert response.status_code == 200
