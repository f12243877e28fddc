import re
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.services.observability import database_counts as census
from app.store.jobs.job_tables import WorkerRow
from migrations.schema_revision import downgrade, upgrade
from tests.api.edge.test_database_away import frozen

READY = {"not_draining": True, "database": True, "schema": True, "access": True, "cache": True, "broker": True}


def checks(client):
    shown = client.get("/readyz").json().get("checks", ())
    return {check["name"]: check["ok"] for check in shown if check["name"] != "workers"}


def becomes(expected, read, client):
    """A server on a busy machine may take longer than a check waits, so a state is one that is reached."""
    end = time.monotonic() + 20
    while (found := read(client)) != expected:
        assert time.monotonic() < end, found


def failing(client):
    response = client.get("/readyz")
    if response.is_success:
        return set()
    assert response.status_code == 503
    assert response.json()["code"] == "not_ready"
    assert int(response.headers["retry-after"]) > 0
    assert client.get("/livez").json() == {"status": "alive"}
    return {error["code"] for error in response.json()["errors"]}


def test_a_whole_process_is_ready(client):
    assert client.get("/livez").json() == {"status": "alive"}
    becomes(READY, checks, client)


def test_workers_are_counted_and_needed_for_nothing(database_factory, monkeypatch):
    monkeypatch.setattr(census, "FRESH_SECONDS", 0.5)
    with TestClient(create_app(database_factory(lease_seconds=30))) as client:

        def shown(client):
            found = [one for one in client.get("/readyz").json().get("checks", ()) if one["name"] == "workers"]
            return [(check["ok"], check["required"], check["detail"]) for check in found]

        def add(name, age):
            with client.app.services.work() as w:
                w.workers.seen(name)
                w.session.get(WorkerRow, name).seen_at = datetime.now(UTC) - timedelta(seconds=age)

        becomes([(False, False, "0 alive")], shown, client)
        add("first", 0)
        becomes([(True, False, "1 alive")], shown, client)
        add("second", 3)
        becomes([(True, False, "2 alive")], shown, client)
        add("second", 35)
        silent = re.compile(r"\[\(False, False, '1 alive, 1 silent for up to [34]. s'\)\]")
        becomes(True, lambda client: silent.fullmatch(str(shown(client))) is not None, client)
        counted = re.compile(r'^valiant_workers\{state="(\w+)"\} (\S+)$', re.MULTILINE)
        becomes(
            {"alive": "1.0", "silent": "1.0"}, lambda client: dict(counted.findall(client.get("/metrics").text)), client
        )
        add("second", 700)
        add("first", 0)  # whoever is seen forgets those long gone
        becomes([(True, False, "1 alive")], shown, client)


def test_a_process_that_shuts_down_says_so_first(settings):
    app = create_app(settings)
    with TestClient(app) as client:
        app.state.draining = True
        becomes({"not_draining"}, failing, client)


def test_liveness_touches_nothing_and_readiness_only_what_is_needed(stack_factory):
    stack = stack_factory()
    address = stack.settings.database_url.get_secret_value()
    with TestClient(create_app(stack.settings)) as client:
        becomes(READY, checks, client)

        stack.servers["cache"].kill()
        stack.servers["broker"].kill()
        becomes({**READY, "cache": False, "broker": False}, checks, client)

        downgrade(address, "base")
        becomes({"schema"}, failing, client)
        upgrade(address)
        becomes(set(), failing, client)

        stack.servers["postgres"].kill()
        becomes({"database"}, failing, client)
        stack.servers["postgres"].start()
        becomes(set(), failing, client)


@pytest.mark.parametrize(
    "server", ["postgres", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cache", "broker"))]
)
def test_readiness_is_known_within_a_second_whatever_hangs(stack_factory, server):
    stack = stack_factory()
    name = "database" if server == "postgres" else server
    with TestClient(create_app(stack.settings)) as client:
        becomes(READY, checks, client)
        with frozen(stack.servers[server]):
            time.sleep(0.1)
            threads = []
            for turn in range(6):
                begun = time.monotonic()
                response = client.get("/readyz")
                assert time.monotonic() - begun < 1
                threads.append(threading.active_count())
                assert response.status_code == (503 if server == "postgres" and turn else 200), "late once is ready"
                shown = response.json()
                bad = [one["code"] for one in shown.get("errors", ())]
                bad += [one["name"] for one in shown.get("checks", ()) if not one["ok"] and one["name"] in READY]
                assert [one for one in bad if one not in {"schema", "access"}] == [name]
            assert threads[-1] <= threads[0], "a request adds no thread"
        becomes(READY, checks, client)


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
        becomes({"database"}, failing, other)
        stack.servers["postgres"].start()
