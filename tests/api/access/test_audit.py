"""The audit log: a change and its entry stand together, or neither does."""

from contextlib import contextmanager
from uuid import uuid4

import pytest
from sqlalchemy import text

from app.api.edge.admission import CHANGING
from app.schemas.keys import KeySpec, Scope
from tests.api.access.inhabited_project import OPERATIONS, inhabit, requested

TABLES = """select table_name from information_schema.tables
    where table_schema = 'public' and table_name not in ('audit', 'alembic_version', 'workers')"""
BODIES = {
    "train_model": {"model": "species", "dataset": "iris", "target": "species", "algorithm": {"name": "logistic"}},
    "evaluate_model": {"model": "species", "dataset": "iris"},
    "predict_dataset": {"model": "species", "dataset": "iris"},
    "move_model_alias": {"version": 1},
    "label_review": {"label": "setosa"},
    "export_reviews": {"model": "species"},
    "publish_session": {"model": "published"},
    "rotate_key": {},
}
"""Requests that a project with one of everything fulfils, where the example of the operation names something else."""


@pytest.fixture(scope="module")
def hasty(settings):
    """A client of an API that wants keys, waits for locks for a tenth of a second, and tries nothing again."""
    from starlette.testclient import TestClient

    from app.main import create_app
    from app.store import engine, unit_of_work

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_OPTIONS", engine._OPTIONS.replace("lock_timeout=10s", "lock_timeout=100ms"))
        patch.setattr(unit_of_work, "_transient", lambda _: False)
        app = create_app(settings.model_copy(update={"auth": "keys"}))
        with TestClient(app) as client:
            yield client


@pytest.fixture
def header(services):
    """Of a key that may do everything in a project of its own."""
    made = services.keys.create_first(KeySpec(name="all", scopes=list(Scope)), f"audited-{uuid4().hex[:8]}")
    return {"Authorization": f"Bearer {made.secret}"}


@pytest.fixture
def locked(services):
    """`locked(tables)`: a block during which another connection holds these tables."""

    @contextmanager
    def hold(*tables):
        with services.work.engine.connect() as connection:
            connection.execute(text("set local idle_in_transaction_session_timeout = 0"))
            connection.execute(text(f"lock table {', '.join(tables)} in access exclusive mode"))
            yield
            connection.rollback()

    return hold


@pytest.fixture
def rows(services):
    """`rows(condition)`: table → digest of its rows with which the condition holds, where there are any."""

    def read(condition="true"):
        with services.work.engine.connect() as connection:
            row = "(to_jsonb(t) - 'last_used_at')::text"
            digest = f"select md5(string_agg({row}, '' order by {row})) from {{}} t where {{}}"
            digests = {
                table: connection.scalar(text(digest.format(table, condition)))
                for table in connection.scalars(text(TABLES)).all()
            }
        return {table: value for table, value in digests.items() if value is not None}

    return read


@pytest.fixture
def entries(services):
    """`entries()`: the whole log, with the transaction that wrote each entry."""

    def read():
        columns = "id, actor, action, target, outcome, request_id, xmin::text as transaction"
        with services.work.engine.connect() as connection:
            return connection.execute(text(f"select {columns} from audit order by id")).all()

    return read


def changing(app):
    """Names of the operations that are audited, each after those that it needs; those that delete things last."""
    routes = [route for route in app.routes if getattr(route, "include_in_schema", False)]
    audited = {each.name for each in routes if each.methods != {"GET"} and not each.needs.isdisjoint(CHANGING)}
    assert audited < OPERATIONS.keys()
    late = ("export_reviews", "revoke_key")  # after the label of a review; after the new secret of the key
    return sorted(audited, key=lambda name: (OPERATIONS[name][0] == "delete", name in late, name))


def refused_by_lock(response):
    assert (response.status_code, response.json()["code"]) == (503, "database_unavailable"), response.text
    assert int(response.headers["retry-after"]) > 0


def test_a_key_whose_entry_cannot_be_written_is_not_created(hasty, header, locked, rows, entries):
    hasty.get("/v1/me", headers=header)
    before = rows(), entries()
    with locked("audit"):
        refused_by_lock(hasty.post("/v1/keys", headers=header, json={"name": "x", "role": "viewer"}))
        refused_by_lock(hasty.post("/v1/keys", headers=header, json={}))
    assert (rows(), entries()) == before
    created = hasty.post("/v1/keys", headers=header, json={"name": "x", "role": "viewer"})
    *_, entry = entries()
    assert (entry.outcome, entry.target) == (201, created.headers["location"])
    assert "api_keys" in rows(f"xmin = '{entry.transaction}'::xid")


def test_an_entry_of_a_lost_commit_is_not_written_twice(services):
    """Where the connection ends during a commit, the change with its entry may stand."""
    from app.services.access.audit import Audit

    audit, request = Audit(services.work), uuid4().hex
    entry = audit.begin(actor="a", action="create_key", target="/v1/keys", outcome=201, request_id=request)
    audit.complete(entry, outcome=201)
    entry.stored, entry.uncertain = False, True
    audit.complete(entry, outcome=201)
    assert [each.request_id for each in audit.page(2, None).items].count(request) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_no_change_stands_without_its_entry(hasty, header, locked, rows, entries):
    parameters = inhabit(hasty, header) | {"alias": "fresh"}
    before = rows(), entries()
    with locked("audit"):
        for operation in changing(hasty.app):
            refused_by_lock(requested(hasty, operation, parameters, header, body=BODIES.get(operation)))
            assert rows() == before[0], operation
        refused_by_lock(hasty.get("/v1/audit", headers=header))
    assert (rows(), entries()) == before


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_every_operation_leaves_one_entry_of_its_outcome(hasty, header, rows, entries):
    parameters = inhabit(hasty, header) | {"alias": "fresh"}
    succeeded = set()
    for operation in changing(hasty.app):
        before = len(entries())
        response = requested(hasty, operation, parameters, header, body=BODIES.get(operation))
        assert response.status_code < 500, response.text
        (entry,) = entries()[before:]
        assert (entry.action, entry.outcome) == (operation, response.status_code)
        assert entry.request_id == response.headers["x-request-id"]
        assert entry.target in {response.headers.get("location"), response.request.url.path}
        if response.is_success:
            succeeded.add(operation)
        unchanged = operation == "cancel_job" or operation.startswith("validate_")  # the job is over
        if response.is_success and not unchanged and OPERATIONS[operation][0] != "delete":
            assert rows(f"xmin = '{entry.transaction}'::xid"), operation
    assert succeeded >= {
        *("create_dataset", "upload_dataset", "create_file", "create_key", "rotate_key", "revoke_key"),
        *("create_session", "play_rounds", "publish_session", "create_preference", "label_review", "export_reviews"),
        *("create_project", "train_model", "predict_dataset", "move_model_alias", "cancel_job"),
        *("put_monitor", "change_alarm", "delete_monitor"),
        *("delete_session", "delete_preference", "delete_model"),
    }


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_locked_table_is_a_service_that_is_away_for_a_moment(hasty, header, locked, rows):
    """On every operation: those that need no table are served."""
    parameters = inhabit(hasty, header)
    tables = [*rows(), "audit"]
    with locked(*(table for table in tables if table not in {"api_keys", "projects"})):
        for operation in OPERATIONS:
            response = requested(hasty, operation, parameters, header)
            if response.status_code >= 500:
                assert (response.status_code, operation, "retry-after" in response.headers) == (503, operation, True)
