import re
import time
from datetime import UTC, datetime, timedelta

from starlette.testclient import TestClient

from app.main import create_app
from app.services import census
from app.store.tables import WorkerRow
from migrations import downgrade, upgrade


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
    assert checks(client) == {"not_draining": True, "database": True, "cache": True, "broker": True}


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
        assert checks(client) == {"not_draining": True, "database": True, "cache": False, "broker": False}

        downgrade(address, "base")
        assert failing(client) == {"database"}
        upgrade(address)
        assert checks(client)["database"]

        stack.servers["postgres"].kill()
        assert failing(client) == {"database"}
        stack.servers["postgres"].start()
        assert checks(client)["database"]
