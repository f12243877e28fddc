from starlette.testclient import TestClient

from app.main import create_app
from migrations import downgrade, upgrade


def checks(client):
    response = client.get("/readyz")
    assert response.status_code == 200, response.text
    return {check["name"]: check["ok"] for check in response.json()["checks"]}


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
