"""Projects see nothing of each other: every operation with every kind of key, and every table."""

import re
import threading
import time
from uuid import uuid4

import jwt
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.api.edge.examples import EXAMPLES
from app.base.project_context import PROJECT
from app.schemas.keys import KeyRotation, KeySpec, Scope
from app.services.access.key_tokens import digest_of, new_token
from app.services.access.passes import ANY_SCOPE, PUBLIC, Pass
from app.services.access.request_rates import Allowance
from app.store.unit_of_work import Work, WorkFactory
from tests.api.access.inhabited_project import FLOWER, IRIS, OPERATIONS, inhabit, requested
from tests.pgbouncer import pgbouncer

ENDLESS = {"stream_job_events"}
"""Its response ends with the job: here it is requested with refused keys only."""
CREATING = {
    *("create_dataset", "upload_dataset", "create_file", "create_key", "create_project", "create_session"),
    *("list_algorithms", "get_algorithm", "get_caller", "read_metrics", "measure_predictions", "measure_distances"),
    "list_calculators", "create_preference", "create_upload",
}  # fmt: skip
"""Operations that name nothing of another project, and so succeed."""


@pytest.fixture(scope="module")
def needs(guarded):
    return {route.name: route.needs for route in guarded.app.routes if hasattr(route, "needs")}


@pytest.fixture(scope="module")
def key(services):
    def make(project, scopes=tuple(Scope), **more):
        made = services.keys.create_first(KeySpec(name=project, scopes=list(scopes), **more), project)
        return {"Authorization": f"Bearer {made.secret}"}

    return make


@pytest.fixture(scope="module")
def alpha(guarded, key, worker):
    """A project with one of everything: the header of its key, and the parameters of addresses that lead there."""
    header = key("alpha")
    return header, inhabit(guarded, header)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_stranger_reaches_nothing(guarded, alpha, needs, refusals, operation):
    _, own = alpha
    for headers, status, problem in refusals(needs[operation]):
        response = requested(guarded, operation, own, headers)
        if needs[operation] == PUBLIC:
            assert response.status_code < 500
        elif not (problem == "model_not_covered" and needs[operation] == ANY_SCOPE):
            assert (response.status_code, response.json()["code"]) == (status, problem), response.text


@pytest.fixture(scope="module")
def refusals(key, services, guarded):
    """`refusals(needs)`: headers that are refused, with status and code."""
    revoked, expired = key("alpha"), key("alpha")
    for header, column in ((revoked, "revoked_at"), (expired, "expires_at")):
        prefix = header["Authorization"].split()[1][:16]
        with services.work.across_projects() as w:
            change = f"update api_keys set {column} = now(), changed_at = now() where prefix = :prefix"
            w.session.execute(text(change), {"prefix": prefix})
    elsewhere = key("alpha", models=["elsewhere-*"])

    def make(needs):
        yield {}, 401, "credential_missing"
        yield revoked, 401, "credential_invalid"
        yield expired, 401, "credential_expired"
        yield elsewhere, 403, "model_not_covered"
        if needs not in {PUBLIC, ANY_SCOPE}:
            yield without[needs], 403, "scope_missing"

    without = {frozenset({scope}): key("alpha", scopes=[other for other in Scope if other != scope]) for scope in Scope}
    return make


def altered(header, change):
    """The header with another token, made of the one it has."""
    return {"Authorization": f"Bearer {change(header['Authorization'].partition(' ')[2])}"}


@pytest.fixture(scope="module")
def kinds_of_credentials(alpha, beta, refusals, services):
    """`kinds_of_credentials(needs)`: what a caller may send to reach alpha, and its refusals."""
    header, _ = alpha
    old = services.keys.create_first(KeySpec(name="old", scopes=list(Scope)), "alpha")
    with services.work.across_projects() as w:
        project = w.projects.ensure("alpha").id
    services.keys.rotate(old.id, KeyRotation(grace_seconds=0), Pass(Allowance(), project))
    rotated = {"Authorization": f"Bearer {old.secret}"}
    token = header["Authorization"].partition(" ")[2]
    cookie = {"Cookie": f"__Host-valiant={token}"}
    none = jwt.encode({"sub": "a", "valiant_projects": ["alpha"], "valiant_role": "operator"}, None, algorithm="none")
    shared = jwt.encode({"sub": "a", "valiant_projects": ["alpha"]}, token, algorithm="HS256")
    invalid, missing = (401, "credential_invalid"), (401, "credential_missing")

    def make(needs):
        for sent, *refusal in refusals(needs):
            yield sent, tuple(refusal)
        yield rotated, (401, "credential_expired")
        yield {"Authorization": f"Bearer {new_token()}"}, invalid
        yield altered(header, lambda token: token[:-1] + ("a" if token[-1] != "a" else "b")), invalid
        yield altered(header, lambda token: token[:16]), invalid
        yield altered(header, lambda token: digest_of(token.encode()).hex()), invalid
        yield {"Authorization": f"Basic {token}"}, invalid
        yield {"Authorization": f"Bearer {token} {token}"}, invalid
        yield {"Authorization": f"Bearer {none}"}, invalid
        yield {"Authorization": f"Bearer {shared}"}, invalid
        yield {"X-Api-Key": token, "Valiant-Key": token}, missing
        yield cookie | {"Sec-Fetch-Site": "cross-site"}, missing
        yield cookie | {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}, missing
        yield header | {"Valiant-Project": "beta"}, (403, "project_not_covered")
        yield beta | {"Valiant-Project": "alpha"}, (403, "project_not_covered")

    return make


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_kind_of_credential_opens_what_is_not_its_own(guarded, alpha, needs, kinds_of_credentials, operation):
    """The refusal is the same whether or not what the address names is there, and tells nothing of it."""
    _, own = alpha
    nothing = {name: value if name == "version" else str(uuid4()) for name, value in own.items()}
    kinds = list(kinds_of_credentials(needs[operation]))
    assert len(kinds) >= 15
    for headers, refusal in kinds:
        responses = [requested(guarded, operation, parameters, headers) for parameters in (own, nothing)]
        if needs[operation] == PUBLIC or (refusal[1] == "model_not_covered" and needs[operation] == ANY_SCOPE):
            assert max(response.status_code for response in responses) < 500
            continue
        problems = [response.json() | {"request_id": "", "instance": ""} for response in responses]
        assert [response.status_code for response in responses] == [refusal[0]] * 2
        assert (problems[0]["code"], problems[1]) == (refusal[1], problems[0])
        assert not [value for name, value in own.items() if name.endswith("_id") and value in responses[0].text]


@pytest.mark.slow
@pytest.mark.parametrize("operation", [name for name, (method, _) in OPERATIONS.items() if method == "get"])
def test_a_head_request_is_refused_as_its_get_is(guarded, alpha, needs, kinds_of_credentials, operation):
    _, own = alpha
    path = re.sub(r"{(\w+)}", lambda found: str(own.get(found[1], "ridge")), OPERATIONS[operation][1])
    for headers, refusal in kinds_of_credentials(needs[operation]):
        response = guarded.head(path, headers=headers)
        if needs[operation] != PUBLIC and not (refusal[1] == "model_not_covered" and needs[operation] == ANY_SCOPE):
            assert (response.status_code, response.content) == (refusal[0], b"")


@pytest.fixture(scope="module")
def beta(key):
    return key("beta")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_another_project_sees_nothing(guarded, alpha, beta, operation):
    """The same names and ids, with a key that may do everything, in another project."""
    header, own = alpha
    response = requested(guarded, operation, own, beta)
    assert response.status_code < 500, response.text
    ids = {value for name, value in own.items() if name.endswith("_id")}
    path = OPERATIONS[operation][1]
    named = set(re.findall(r"{(\w+)}", path)) & own.keys() if operation not in CREATING else set()
    if named:
        assert response.status_code in {404, 422}, response.text
        assert response.status_code == 404 or operation in EXAMPLES, response.text
    elif operation == "list_audit_entries":  # of its own requests, which name what they sought
        actors = {item["actor"] for item in response.json()["items"]}
        assert actors <= {guarded.get("/v1/me", headers=beta).json()["key"]}
        assert requested(guarded, operation, own, header).json()["items"]
    elif response.is_success:
        assert not [value for value in ids if value in response.text]
        page = response.json() if "json" in response.headers.get("content-type", "") else {}
        if operation.startswith("list_") and operation not in CREATING | {"list_projects"}:
            assert all(item.get("name") in {"other", "beta", "clicks", "advertising"} for item in page["items"]), page
    if operation not in ENDLESS and OPERATIONS[operation][0] == "get" and named:
        assert requested(guarded, operation, own, header).status_code in {200, 409}, operation  # it is there


def test_names_are_those_of_a_project(guarded, alpha, beta):
    """Both may have a dataset, a model and a key of idempotency of one name."""
    header, _ = alpha
    body = {"model": "species", "dataset": "iris", "target": "species", "algorithm": {"name": "ridge"}}
    guarded.post("/v1/datasets?name=iris&file_format=csv", headers=beta, content=IRIS)
    jobs = [
        guarded.post("/v1/jobs/train", headers=each | {"Idempotency-Key": "same"}, json=body).json()["id"]
        for each in (header, beta)
    ]
    assert jobs[0] != jobs[1]
    for each, job in zip((header, beta), jobs, strict=True):
        until = time.monotonic() + 120
        while (found := guarded.get(f"/v1/jobs/{job}", headers=each).json())["state"] in {"queued", "running"}:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert found["state"] == "succeeded", found
    versions = [guarded.get("/v1/models/species", headers=each).json()["latest_version"] for each in (header, beta)]
    assert versions == [2, 1]
    rows = {"rows": [FLOWER]}
    predicted = [guarded.post("/v1/models/species/predict", headers=each, json=rows) for each in (header, beta)]
    assert [each.headers["x-model-version"] for each in predicted] == ["1", "1"]  # the champion, and the newest
    digests = [each.json()["digest"] for each in predicted]
    assert digests[0] != digests[1]
    guarded.delete("/v1/models/species", headers=beta)
    assert guarded.get("/v1/models/species", headers=header).is_success


@pytest.fixture
def rows_of(services):
    """`rows_of(project)`: the number of rows that a project sees of a table; None is a unit of work without one."""

    def count(table, project):
        with services.work.engine.begin() as connection:
            connection.execute(text("select set_config('role', 'valiant_app', true)"))
            if project is not None:
                connection.execute(text("select set_config('valiant.project', :id, true)"), {"id": str(project)})
            return connection.scalar(text(f"select count(*) from {table}"))

    return count


def owned(services):
    found = (
        "select table_name from information_schema.columns where (table_schema, column_name) = ('public', 'project_id')"
    )
    with services.work.engine.begin() as connection:
        return sorted(connection.scalars(text(found)))


def test_every_table_of_projects_has_its_policy(services, alpha, rows_of):
    tables = owned(services)
    assert {"datasets", "jobs", "models", "model_chunks", "api_keys", "reviews", "sessions"} <= set(tables)
    secured = """select relname from pg_class where relrowsecurity and relforcerowsecurity
        and oid in (select polrelid from pg_policy where polname = 'project')"""
    with services.work.engine.begin() as connection:
        assert sorted(connection.scalars(text(secured))) == tables
        assert not connection.scalar(
            text("select bool_or(rolsuper or rolbypassrls) from pg_roles where rolname like 'valiant\\_%'")
        )
    for table in tables:
        assert rows_of(table, None) == 0
        assert rows_of(table, uuid4()) == 0


def test_nothing_is_written_for_another_project(services, alpha):
    for project in (None, uuid4()):
        with services.work.engine.connect() as connection:
            connection.execute(text("select set_config('role', 'valiant_app', true)"))
            if project is not None:
                connection.execute(text("select set_config('valiant.project', :id, true)"), {"id": str(project)})
            insert = "insert into uses (project_id, data_digest, rows, times) values (:id, 'd', 'r', 1)"
            with pytest.raises(DBAPIError, match="row-level security"):
                connection.execute(text(insert), {"id": uuid4()})


@pytest.fixture(params=["directly", pytest.param("by PgBouncer", marks=pytest.mark.slow)])
def one_connection(request, settings):
    """Settings of a process that has one connection to Postgres, or two to a pooler that has one."""
    if request.param == "directly":
        yield settings.model_copy(update={"database_pool": 1})
        return
    with pgbouncer(settings.database_url.get_secret_value()) as url:
        yield settings.model_copy(update={"database_pool": 2, "database_url": SecretStr(url)})


def test_one_connection_serves_projects_in_turn(one_connection, services, alpha):
    from app.store.engine import make_engine

    with services.work.across_projects() as w:
        projects = [w.projects.ensure(name).id for name in ("alpha", "gamma")]
    engine = make_engine(one_connection, role="test")
    work, right = WorkFactory(engine), []

    def turns(project, seen):
        PROJECT.set(project)
        for _ in range(500):
            with work() as w:
                right.append(bool(w.session.scalar(text("select count(*) from model_versions"))) is seen)

    threads = [threading.Thread(target=turns, args=pair) for pair in zip(projects, (True, False), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.dispose()
    assert right == [True] * 1000


def test_a_unit_of_work_without_the_database_leaves_no_session(settings):
    from sqlalchemy import create_engine

    engine = create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none")
    with pytest.raises(DBAPIError), Work(engine):
        pass
    assert engine.pool.checkedout() == 0


def test_a_role_that_passes_policies_serves_nobody(stack_factory):
    import psycopg

    from app.base.errors import StartFailed
    from app.services.access.access import Access
    from app.services.access.request_rates import RequestRates
    from app.store.engine import make_engine
    from app.store.models.model_cache import Cache

    settings = stack_factory(auth="keys").settings
    engine = make_engine(settings, role="test")
    access = Access(WorkFactory(engine), RequestRates(Cache(settings)), settings)
    access.start()
    access.close()
    with psycopg.connect(settings.database_url.get_secret_value().replace("+psycopg", ""), autocommit=True) as owner:
        owner.execute("alter role valiant_queue bypassrls")
    with pytest.raises(StartFailed, match="nobypassrls"):
        access.start()
    engine.dispose()
