"""The table of roles, privileges and policies: whatever was changed is noticed and made right."""

import time

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import create_engine
from starlette.testclient import TestClient

from app.cli import main
from app.main import create_app
from app.services.observability.database_access import list_faults
from app.store.engine import driver_url, make_engine
from app.store.unit_of_work import WorkFactory
from migrations import security
from tests.clusters import MAJORS, address, administer, cluster

DEFAULTS = "alter default privileges for role valiant"
DRIFT = {
    "a privilege on the audit log": "grant delete on audit to valiant_app",
    "a privilege for everybody": "grant truncate on models to public",
    "a privilege on a column": "grant update (actor) on audit to valiant_queue",
    "a privilege to pass on": "grant select on jobs to valiant_app with grant option",
    "a privilege on a sequence": "grant update on sequence audit_id_seq to valiant_app",
    "no privilege on a sequence": "revoke usage on sequence audit_id_seq from valiant_queue",
    "a privilege on the schema": "grant create on schema public to valiant_app",
    "no privilege on the schema": "revoke usage on schema public from valiant_app",
    "no privilege on a table": "revoke insert on jobs from valiant_app",
    "privileges on tables to come": f"{DEFAULTS} in schema public grant delete on tables to valiant_app",
    "privileges on sequences to come": f"{DEFAULTS} grant update on sequences to valiant_queue",
    "no policies": "alter table models disable row level security",
    "policies for others than the owner": "alter table audit no force row level security",
    "a policy less": "drop policy queue on jobs",
    "another policy": "alter policy project on datasets using (true)",
    "a policy that is renamed": "alter policy maintenance on files rename to upkeep",
    "a policy for another role": "alter policy maintenance on jobs to public",
    "a policy more": "create policy all_rows on models using (true)",
    "a policy that hides": "create policy no_rows on models as restrictive using (false)",
    "a table without projects that hides its rows": "alter table projects enable row level security",
}
OWNER_DRIFT = "alter table audit owner to valiant_app"
ROLE_DRIFT = {
    "passes policies": "alter role valiant_app bypassrls",
    "is a superuser": "alter role valiant_queue superuser",
    "logs in": "alter role valiant_app login",
    "makes roles": "alter role valiant_owner createrole",
    "is a member": "grant pg_write_all_data to valiant_app",
    "maintains": "grant valiant_owner to valiant_queue",
}


@pytest.fixture
def migrate(monkeypatch, capsys):
    """`migrate(address)`: the exit status of `valiant migrate`, and what it printed to both streams."""

    def run(address):
        monkeypatch.setenv("VALIANT_DATABASE_URL", address)
        return main(["migrate"]), *capsys.readouterr()

    return run


def faults_at(settings, url):
    engine = make_engine(settings.model_copy(update={"database_url": SecretStr(url)}), role="test")
    try:
        return list_faults(WorkFactory(engine))
    finally:
        engine.dispose()


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("; ".join((*DRIFT.values(), OWNER_DRIFT)), id="all of it"),
        pytest.param(OWNER_DRIFT, marks=pytest.mark.slow, id="a table that the service owns"),
        *(pytest.param(statement, marks=pytest.mark.slow, id=name) for name, statement in DRIFT.items()),
    ],
)
def test_what_was_changed_is_noticed_and_repaired_once(statement, database_factory, migrate):
    settings = database_factory()
    url = settings.database_url.get_secret_value().replace("+psycopg", "")
    assert migrate(url) == (0, "", "")
    assert faults_at(settings, url) == []
    with psycopg.connect(url) as connection:
        connection.execute(statement)
    assert faults_at(settings, url)
    status, printed, _ = migrate(url)
    assert (status, printed.partition(":")[0]) == (0, "repaired")
    assert faults_at(settings, url) == []
    assert migrate(url) == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("major", MAJORS)
@pytest.mark.parametrize("rights", ["superuser", "createrole"])
def test_each_line_of_the_table_undone_is_repaired(major, rights, settings, migrate):
    """By statements that are made of the table itself, each for one line."""
    with cluster(major) as (folder, _):
        administer(folder, f"create role valiant login {rights}", "create database valiant owner valiant")
        url = address(folder, "valiant", "valiant")
        assert migrate(url) == (0, "", "")
        assert migrate(url) == (0, "", "")
        engine = create_engine(driver_url(url))
        with engine.connect() as connection:
            undoing = list(undo_each_line(connection))
        assert len(undoing) > 150
        for statement in (*undoing, *DRIFT.values()):
            administer(folder, statement, database="valiant")
            with engine.begin() as connection:
                assert security.list_repairs(connection, of_login=False), statement
                assert security.repair(connection), statement
                assert not security.list_repairs(connection), statement
        for statement in (OWNER_DRIFT, *ROLE_DRIFT.values()):  # what an administrator did mostly takes one to undo
            administer(folder, statement, database="valiant")
            assert faults_at(settings, url)
            status, _, error = migrate(url)
            if status:
                printed = (line.strip().rstrip(";") for line in error.splitlines() if line.startswith("    "))
                administer(folder, *printed, database="valiant")
                status, _, error = migrate(url)
            assert status == 0, error
            assert faults_at(settings, url) == []
            assert migrate(url) == (0, "", "")
        engine.dispose()


def undo_each_line(connection):
    for name in security.PROTECTED:
        yield f"alter table {name} disable row level security"
        yield f"alter table {name} no force row level security"
        for policy, (_, _, tables) in security.POLICIES.items():
            if name in tables:
                yield f"drop policy {policy} on {name}"
    for role in (security.APP, security.QUEUE):
        yield f"revoke usage on schema public from {role}"
        for name in security.TABLES:
            for privilege in security.PRIVILEGES.get(name, security.ALL_PRIVILEGES):
                yield f"revoke {privilege} on {name} from {role}"
            for privilege in {*security.ALL_PRIVILEGES} - {*security.PRIVILEGES.get(name, security.ALL_PRIVILEGES)}:
                yield f"grant {privilege} on {name} to {role}"


@pytest.mark.slow
@pytest.mark.parametrize("major", MAJORS)
def test_a_login_that_may_nothing_ends_with_the_statements_that_are_missing(major, settings, migrate):
    with cluster(major) as (folder, _):
        administer(folder, "create role valiant login", "create database valiant owner valiant")
        url = address(folder, "valiant", "valiant")
        status, printed, error = migrate(url)
        assert (status, printed) == (1, "")
        statements = [line.strip().rstrip(";") for line in error.splitlines() if line.startswith("    ")]
        assert len(statements) == 6, error
        administer(folder, *statements)
        assert migrate(url) == (0, "", "")
        assert faults_at(settings, url) == []
        administer(folder, "alter table jobs owner to postgres", database="valiant")
        status, _, error = migrate(url)
        assert status == 1
        assert "alter table jobs owner to valiant" in error


def becomes_ready(client, status=200):
    """Faults by check, once the status is this one: what is right is looked at again after some seconds."""
    end = time.monotonic() + 30
    while (response := client.get("/readyz")).status_code != status:
        assert time.monotonic() < end, response.text
        time.sleep(0.1)
    return {fault["code"]: fault["detail"] for fault in response.json().get("errors", ())}


@pytest.mark.slow
@pytest.mark.parametrize("major", MAJORS)
def test_a_service_without_its_roles_is_not_ready_and_says_what_to_do(major, settings, migrate, monkeypatch):
    with cluster(major) as (folder, _):
        administer(folder, "create role valiant login createrole", "create database valiant owner valiant")
        url = address(folder, "valiant", "valiant")
        assert migrate(url) == (0, "", "")
        given = settings.model_copy(update={"database_url": SecretStr(url)})
        with TestClient(create_app(given)) as client:
            becomes_ready(client)
            assert client.get("/v1/models").status_code == 200
            administer(folder, "drop owned by valiant_app, valiant_queue, valiant_owner", database="valiant")
            administer(folder, "drop role valiant_app, valiant_queue, valiant_owner")
            for path in ("/v1/models", "/v1/models/none"):
                response = client.get(path)
                assert (response.status_code, response.json()["code"]) == (503, "database_not_prepared")
                assert "retry-after" not in response.headers
            row = {"columns": ["a"], "data": [[1]]}
            for _ in range(2):
                response = client.post("/v1/models/none/predict", json=row)
                assert (response.status_code, response.json()["code"]) == (503, "database_not_prepared")
            assert becomes_ready(client, status=503)["access"].startswith("Role valiant_app is missing")
            status, printed, error = migrate(url)
            assert status == 0, error
            repaired = printed.splitlines()[-1]  # after what the service has logged
            assert repaired.startswith("repaired: ")
            assert "3 roles" in repaired
            becomes_ready(client)
            assert client.get("/v1/models").status_code == 200
            assert migrate(url) == (0, "", "")
