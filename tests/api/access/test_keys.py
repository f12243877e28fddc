"""Keys of the API: what they may do, when they end, and that no route is open by mistake."""

import math
import time

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.api.edge.admission import GuardedRoute
from app.schemas.keys import KeySpec
from app.services.access.passes import ANY_SCOPE, PUBLIC
from app.services.access.request_rates import RequestRates

OPEN = {"check_liveness", "check_readiness", "check_server_live", "check_server_ready", "get_server_metadata"}
"""Operations that anyone may call: they tell nothing of what is stored."""


@pytest.fixture(scope="module")
def key(services):
    """`key(role, …)`: a key as the command line creates it, as the header that sends it."""

    def make(role, project="default", **more):
        made = services.keys.create_first(KeySpec(name=role, role=role, **more), project)
        return made, {"Authorization": f"Bearer {made.secret}"}

    return make


def refused(response, status, code):
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return response.json()


def test_every_route_declares_what_it_needs(guarded):
    routes = [route for route in guarded.app.routes if getattr(route, "include_in_schema", False)]
    assert all(isinstance(route, GuardedRoute) and "needs" in vars(route) for route in routes)
    assert {route.name for route in routes if route.needs == PUBLIC} == OPEN
    assert {route.name for route in routes if route.needs == ANY_SCOPE} == {"get_caller"}


def test_a_request_without_a_key_is_refused(guarded):
    response = guarded.get("/v1/models")
    refused(response, 401, "credential_missing")
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert guarded.get("/livez").is_success


@pytest.mark.parametrize("sent", ["Basic dXNlcg==", "Bearer", "Bearer vlt_short", "Bearer \xff\xfe"])
def test_what_is_no_key_is_refused(guarded, sent):
    refused(guarded.get("/v1/models", headers={"Authorization": sent.encode("latin-1")}), 401, "credential_invalid")


def test_a_mistyped_key_is_refused_without_the_database(guarded, key):
    made, _ = key("admin")
    typo = made.secret[:-1] + ("a" if made.secret[-1] != "a" else "b")
    looks = guarded.app.services.access._looks
    refused(guarded.get("/v1/models", headers={"Authorization": f"Bearer {typo}"}), 401, "credential_invalid")
    assert guarded.app.services.access._looks == looks


def test_keys_do_what_their_scopes_say(guarded, key):
    _, viewer = key("viewer")
    assert guarded.get("/v1/models", headers=viewer).is_success
    problem = refused(guarded.post("/v1/jobs/train", headers=viewer, json={}), 403, "scope_missing")
    assert "write" in problem["errors"][0]["detail"]
    refused(guarded.get("/v1/keys", headers=viewer), 403, "scope_missing")
    refused(guarded.post("/v1/models/any/predict", headers=viewer, json={}), 403, "scope_missing")


def test_a_key_for_some_models_reaches_only_them(guarded, key, services, publish):
    publish(services.work, "fraud-eu")
    publish(services.work, "churn")
    _, caller = key("caller", models=["fraud-*", "other"])
    rows = {"rows": [{"length": 5.1, "width": 0.2, "size": "small"}]}
    assert guarded.post("/v1/models/fraud-eu/predict", headers=caller, json=rows).is_success
    assert guarded.get("/v2/models/fraud-eu", headers=caller).is_success
    for name in ("churn", "not-there", "fraud"):
        refused(guarded.post(f"/v1/models/{name}/predict", headers=caller, json=rows), 403, "model_not_covered")
    assert guarded.get("/v1/me", headers=caller).json()["models"] == ["fraud-*", "other"]
    _, viewer = key("viewer", models=["fraud-*"])
    refused(guarded.get("/v1/datasets", headers=viewer), 403, "model_not_covered")


def test_a_key_is_created_shown_rotated_and_revoked(guarded, key):
    _, admin = key("admin")
    response = guarded.post("/v1/keys", headers=admin, json={"name": "batch", "role": "editor", "expires_in_days": 7})
    assert response.status_code == 201
    made = response.json()
    own = {"Authorization": f"Bearer {made['secret']}"}
    assert guarded.get("/v1/me", headers=own).json()["scopes"] == ["predict", "read", "write"]

    shown = guarded.get(response.headers["location"], headers=admin).json()
    assert made["secret"].startswith(shown["prefix"])
    assert made["secret"] not in guarded.get("/v1/keys", headers=admin).text

    rotated = guarded.post(f"/v1/keys/{made['id']}:rotate", headers=admin, json={"grace_seconds": 0})
    assert rotated.status_code == 201
    new = {"Authorization": f"Bearer {rotated.json()['secret']}"}
    guarded.app.services.access.refresh()
    refused(guarded.get("/v1/me", headers=own), 401, "credential_expired")
    assert guarded.get("/v1/me", headers=new).is_success

    for _ in range(2):
        assert guarded.delete(f"/v1/keys/{rotated.json()['id']}", headers=admin).status_code == 204
    guarded.app.services.access.refresh()
    refused(guarded.get("/v1/me", headers=new), 401, "credential_invalid")
    rotation = guarded.post(f"/v1/keys/{rotated.json()['id']}:rotate", headers=admin, json={})
    refused(rotation, 409, "key_revoked")


def test_nobody_gives_more_than_they_have(guarded, key):
    operators, _ = key("operator")
    _, admin = key("admin")
    problem = refused(
        guarded.post("/v1/keys", headers=admin, json={"name": "x", "role": "operator"}), 403, "scope_missing"
    )
    assert problem["errors"][0]["pointer"] == "/scopes"
    rotation = guarded.post(f"/v1/keys/{operators.id}:rotate", headers=admin, json={})
    refused(rotation, 403, "scope_missing")
    elsewhere = {"name": "x", "role": "viewer", "project": "default-not"}
    refused(guarded.post("/v1/keys", headers=admin, json=elsewhere), 403, "scope_missing")


def test_a_key_needs_either_a_role_or_scopes(guarded, key):
    _, admin = key("admin")
    for spec in ({}, {"role": "viewer", "scopes": ["read"]}):
        refused(guarded.post("/v1/keys", headers=admin, json={"name": "x", **spec}), 422, "invalid_request")


def test_an_operator_manages_projects(guarded, key):
    _, operator = key("operator")
    assert guarded.post("/v1/projects", headers=operator, json={"name": "managed"}).status_code == 201
    refused(guarded.post("/v1/projects", headers=operator, json={"name": "managed"}), 409, "project_exists")
    assert "managed" in {each["name"] for each in guarded.get("/v1/projects", headers=operator).json()["items"]}
    made = guarded.post("/v1/keys", headers=operator, json={"name": "x", "role": "admin", "project": "managed"}).json()
    own = {"Authorization": f"Bearer {made['secret']}"}
    assert guarded.get("/v1/me", headers=own).json()["project"] == "managed"
    refused(guarded.get("/v1/projects", headers=own), 403, "scope_missing")
    refused(guarded.get(f"/v1/keys/{made['id']}", headers=operator), 404, "key_not_found")


@pytest.fixture(scope="module")
def served(api_address):
    """The address of an API process that wants keys."""
    return api_address(auth="keys")


def test_the_fast_path_wants_keys_too(served, key, services, publish):
    import httpx

    publish(services.work, "guarded")
    made, caller = key("caller", models=["guarded"])
    body = {"rows": [{"length": 5.1, "width": 0.2, "size": "small"}]}
    with httpx.Client(base_url=served) as client:

        def predict(headers, model="guarded"):
            return client.post(f"/v1/models/{model}/predict", json=body, headers=headers)

        refused(predict({}), 401, "credential_missing")
        for _ in range(3):  # looked up, remembered, and with a remembered head
            assert predict(caller).is_success
        refused(predict({}), 401, "credential_missing")
        refused(predict(caller, "another"), 403, "model_not_covered")
        refused(predict(key("viewer")[1]), 403, "scope_missing")
        services.keys.revoke(made.id, services.access.anyone)
        deadline = time.monotonic() + 30
        while (response := predict(caller)).is_success and time.monotonic() < deadline:
            time.sleep(0.05)
        refused(response, 401, "credential_invalid")


def test_guesses_do_not_load_the_database(settings, services):
    from app.services.access.access import LOOKS_PER_SECOND, Access
    from app.services.access.key_tokens import new_token
    from app.services.access.passes import AuthUnavailable, CredentialInvalid

    access = Access(services.work, RequestRates(services.cache), settings, clock=lambda: 1000.0)
    guesses = [new_token().encode() for _ in range(LOOKS_PER_SECOND + 1)]
    for guess in guesses[:-1]:
        with pytest.raises(CredentialInvalid):
            access.find(guess)
    with pytest.raises(AuthUnavailable):
        access.find(guesses[-1])
    with pytest.raises(CredentialInvalid):  # still known to be unknown
        access.find(guesses[0])


def test_a_flood_of_guesses_keeps_no_new_key_waiting(settings, services, key):
    """From whatever address both come, as all do behind a proxy: what is stored differs from guesses without a look."""
    from app.services.access.access import LOOKS_PER_SECOND, Access
    from app.services.access.key_tokens import new_token
    from app.services.access.passes import AuthUnavailable, ValiantError

    access = Access(services.work, RequestRates(services.cache), settings, clock=lambda: 1000.0)

    def flood():
        for _ in range(2 * LOOKS_PER_SECOND):
            with pytest.raises(ValiantError):
                access.find(new_token().encode())

    before = key("caller")[0].secret.encode()
    access.refresh()
    flood()
    assert access.find(before).live
    created_meanwhile = key("caller")[0].secret.encode()
    with pytest.raises(AuthUnavailable) as waits:
        access.find(created_meanwhile)
    assert waits.value.headers["Retry-After"] == "1"
    access.refresh()  # as each second
    flood()
    assert access.find(created_meanwhile).live
    assert len(access._passes) == 2


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("sites", "methods"),
    [
        (["same-origin"], {"GET", "POST"}),
        (["none"], {"GET"}),  # an address that a person has entered
        ([], {"GET"}),  # of a browser without the header
        (["cross-site"], set()),
        (["same-site"], set()),
        (["same-origin", "cross-site"], set()),
        (["same-origin, none"], set()),
    ],
)
def test_a_cookie_counts_in_requests_of_our_own_pages(guarded, key, method, sites, methods):
    made, _ = key("admin")
    headers = [("Cookie", f"a=b; __Host-valiant={made.secret}"), *(("Sec-Fetch-Site", site) for site in sites)]
    for path in (
        ("/v1/models/none/predict", "/v1/keys") if method == "POST" else ("/v1/keys", "/v1/me", "/v1/models/no")
    ):
        response = guarded.request(method, path, headers=headers, json=None if method == "GET" else {})
        assert (response.status_code == 401) is (method not in methods), response.text
        assert method in methods or response.json()["code"] == "credential_missing"


def test_a_link_from_elsewhere_leads_to_the_console_and_to_no_data(guarded, key):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    headers = link | {"Cookie": f"__Host-valiant={key('admin')[0].secret}"}
    assert guarded.get("/console/", headers=headers).is_success
    refused(guarded.get("/v1/datasets", headers=headers), 401, "credential_missing")


def test_known_keys_outlive_the_database_for_a_while(settings, services, key):
    from sqlalchemy import create_engine

    from app.services.access.access import Access
    from app.services.access.passes import AuthUnavailable
    from app.store.unit_of_work import WorkFactory

    now = 1000.0
    access = Access(services.work, RequestRates(services.cache), settings, clock=lambda: now)
    token = key("caller")[0].secret.encode()
    own = access.find(token)
    access._work = WorkFactory(create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none"))
    now += settings.auth_stale_seconds - 1
    access.check(own)
    now += 2
    with pytest.raises(AuthUnavailable):
        access.check(own)
    with pytest.raises(AuthUnavailable):
        access.find(b"vlt_" + token[4:])


def test_requests_pass_ahead_of_the_next_check_where_nothing_can_end_before(settings, services, key):
    from app.services.access.access import AHEAD, Access

    now = 1000.0
    access = Access(services.work, RequestRates(services.cache), settings, clock=lambda: now)
    own = access.find(key("caller")[0].secret.encode())

    def ahead():
        own.ahead = -1
        access.check(own)
        return own.ahead

    assert ahead() == AHEAD
    own.update(own.key)  # as whenever it changes
    assert own.ahead == 0
    own.rate.limit(5)
    assert ahead() == 0
    own.rate.limit(math.inf)
    now += settings.auth_stale_seconds - 1
    assert ahead() == 0  # what is known of keys is too old before long
    now = own.expires - 1
    access.refresh()
    assert ahead() == 0


def test_a_key_is_not_logged_nor_in_a_repr(served, key, stack):
    import httpx

    made, header = key("admin")
    assert httpx.get(f"{served}/v1/me", headers=header).is_success
    assert httpx.post(f"{served}/v1/jobs/train", headers=header, json={"model": 1}).status_code == 422
    logs = b"".join(path.read_bytes() for path in (stack.folder.root / "log").iterdir())
    assert made.secret[20:].encode() not in logs


def test_changes_and_refusals_are_in_the_audit_log(guarded, key):
    made, admin = key("admin", project="audited")
    viewer, looking = key("viewer", project="audited")
    created = guarded.post("/v1/keys", headers=admin, json={"name": "x", "role": "viewer"})
    guarded.post("/v1/jobs/train", headers=looking, json={})
    guarded.post("/v1/datasets?file_format=csv", headers=admin, content=b"")
    guarded.get("/v1/keys", headers=admin)
    found = guarded.get("/v1/audit", headers=admin, params={"limit": 2}).json()
    rest = guarded.get("/v1/audit", headers=admin, params={"cursor": found["next_cursor"]}).json()
    entries = [*found["items"], *rest["items"]]
    assert [(each["actor"], each["action"], each["outcome"]) for each in entries] == [
        (str(made.id), "create_dataset", 422),
        (str(viewer.id), "train_model", 403),
        (str(made.id), "create_key", 201),
    ]
    assert entries[2]["target"] == created.headers["location"]
    assert entries[2]["request_id"] == created.headers["x-request-id"]


@pytest.mark.parametrize("role", ["valiant_app", "valiant_queue"])
@pytest.mark.parametrize("change", ["delete from audit", "update audit set actor = 'nobody'", "truncate audit"])
def test_the_audit_log_only_grows(services, role, change):
    with services.work.engine.connect() as connection:
        connection.execute(text("select set_config('role', :role, true)"), {"role": role})
        with pytest.raises(DBAPIError, match="permission denied"):
            connection.execute(text(change))
