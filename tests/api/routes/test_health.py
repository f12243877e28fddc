import re
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.services import census
from app.store.tables import WorkerRow
from migrations import downgrade, upgrade
from tests.api.test_database_away import frozen


def checks(client):
    response = client.get("/readyz")
    assert response.status_code == 200, response.text
    return {check["name"]: check["ok"] for check in response.json()["checks"] if check["name"] != "workers"}


def failing(client):
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["code"] == "not_ready"
    assert int(response.headers["retry-after"]) > 0
    assert client.get("/livez").json() == {"status": "alive"}
    return {error["code"] for error in response.json()["errors"]}


def test_a_whole_process_is_ready(client):
    assert client.get("/livez").json() == {"status": "alive"}
    assert checks(client) == {"not_draining": True, "database": True, "schema": True, "cache": True, "broker": True}


def test_workers_are_counted_and_needed_for_nothing(database_factory, monkeypatch):
    monkeypatch.setattr(census, "FRESH_SECONDS", 0.5)
    with TestClient(create_app(database_factory(lease_seconds=30))) as client:

        def shown():
            (check,) = [one for one in client.get("/readyz").json()["checks"] if one["name"] == "workers"]
            return check["ok"], check["required"], check["detail"]

        def becomes(*expected):
            end = time.monotonic() + 20
            while (found := shown()) != expected:
                assert time.monotonic() < end, found

        def add(name, age):
            with client.app.services.work() as w:
                w.workers.seen(name)
                w.session.get(WorkerRow, name).seen_at = datetime.now(UTC) - timedelta(seconds=age)

        becomes(False, False, "0 alive")
        add("first", 0)
        becomes(True, False, "1 alive")
        add("second", 3)
        becomes(True, False, "2 alive")
        add("second", 35)
        end = time.monotonic() + 20
        while not re.fullmatch("1 alive, 1 silent for up to [34]. s", shown()[2]):
            assert time.monotonic() < end
        assert not shown()[0]
        metrics = client.get("/metrics").text
        assert 'valiant_workers{state="silent"} 1.0' in metrics
        assert 'valiant_workers{state="alive"} 1.0' in metrics
        add("second", 700)
        add("first", 0)  # whoever is seen forgets those long gone
        becomes(True, False, "1 alive")


def test_a_process_that_shuts_down_says_so_first(settings):
    app = create_app(settings)
    with TestClient(app) as client:
        app.state.draining = True
        assert failing(client) == {"not_draining"}


def test_liveness_touches_nothing_and_readiness_only_what_is_needed(stack_factory):
    stack = stack_factory()
    address = stack.settings.database_url.get_secret_value()
    with TestClient(create_app(stack.settings)) as client:
        assert all(checks(client).values())

        stack.servers["cache"].kill()
        stack.servers["broker"].kill()
        assert checks(client) == {
            "not_draining": True,
            "database": True,
            "schema": True,
            "cache": False,
            "broker": False,
        }

        downgrade(address, "base")
        assert failing(client) == {"schema"}
        upgrade(address)
        assert checks(client)["database"]

        stack.servers["postgres"].kill()
        assert failing(client) == {"database"}
        stack.servers["postgres"].start()
        assert checks(client)["database"]


@pytest.mark.parametrize(
    "server", ["postgres", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cache", "broker"))]
)
def test_readiness_is_known_within_a_second_whatever_hangs(stack_factory, server):
    stack = stack_factory()
    name = "database" if server == "postgres" else server
    with TestClient(create_app(stack.settings)) as client:
        assert checks(client)[name]
        with frozen(stack.servers[server]):
            time.sleep(0.1)
            threads = []
            for _ in range(6):
                begun = time.monotonic()
                response = client.get("/readyz")
                assert time.monotonic() - begun < 1
                threads.append(threading.active_count())
                assert response.status_code == (503 if server == "postgres" else 200)
                shown = response.json()
                bad = [one["code"] for one in shown.get("errors", ())]
                bad += [one["name"] for one in shown.get("checks", ()) if not one["ok"] and one["name"] != "workers"]
                assert bad == [name]
            assert threads[-1] == threads[0]
        end = time.monotonic() + 20
        while not client.get("/readyz").is_success or not checks(client)[name]:
            assert time.monotonic() < end


def test_a_process_with_warm_models_stays_ready_without_the_database(stack_factory, publish):
    stack = stack_factory()
    strict = stack.settings.model_copy(update={"stale_seconds": 0.0})
    rows = {"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"]]}
    with TestClient(create_app(stack.settings)) as warm, TestClient(create_app(strict)) as other:
        publish(warm.app.services.work, "one")
        for client in (warm, other):
            assert client.post("/v1/models/one/predict", json=rows).status_code == 200
        stack.servers["postgres"].kill()
        response = warm.get("/readyz")
        assert response.status_code == 200
        (check,) = [check for check in response.json()["checks"] if check["name"] == "database"]
        assert (check["ok"], check["required"]) == (False, False)
        assert "Warm models predict for up to" in check["detail"]
        assert failing(other) == {"database"}
        stack.servers["postgres"].start()
