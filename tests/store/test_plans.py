"""Query plans of lists: no table is read whole, and no more rows than a page needs.

Evaluated by the plans of the very statements that the routes execute, on tables of some thousand rows.
"""

import json
from uuid import UUID

import pytest
from sqlalchemy import event, text
from starlette.testclient import TestClient

from app.base.errors import DatasetInUse
from app.store.jobs.job_records import Capable

JOBS, QUEUED, RUNNING, MODELS, DATASETS, MOVES, LIMIT = 20_000, 1_000, 5, 5_000, 5_000, 10_000, 50
LARGE = {"jobs", "job_transitions", "models", "model_versions", "datasets", "aliases", "alias_moves"}
FILL = f"""
create function pg_temp.id(i bigint) returns uuid language sql immutable as
    $$ select (lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000')::uuid $$;
insert into datasets (id, name, file_format, size_bytes, rows, digest, columns)
    select pg_temp.id(i), 'table-' || i % 100, 'csv', 1, 1, 'sha256:0', '[]' from generate_series(1, {DATASETS}) i;
insert into jobs (id, kind, name, state, request, request_hash, max_attempts, time_limit_seconds, finished_at,
                  lease_token, lease_until, dataset_id, curves)
    select pg_temp.id(i), 'train', case when i % 10 = 0 then 'name-' || i % 1000 end, state, '{{}}', '', 3, 60,
           case when state in ('succeeded', 'failed') then now() end,
           case when state = 'running' then pg_temp.id(i) end, case when state = 'running' then now() end,
           pg_temp.id(1 + i % {DATASETS}), '{{}}'
    from (select i, case when i > {JOBS - QUEUED} then 'queued' when i > {JOBS - QUEUED - RUNNING} then 'running'
                         when i % 1000 = 7 then 'failed' else 'succeeded' end as state
          from generate_series(1, {JOBS}) i) as made;
insert into job_transitions (job_id, state, attempt)
    select pg_temp.id(1 + i % {JOBS}), 'queued', 0 from generate_series(0, {2 * JOBS - 1}) i;
insert into models (name, last_version) select 'model-' || i, 2 from generate_series(1, {MODELS}) i;
insert into model_versions (model, version, job_id, dataset_id, dataset_digest, algorithm, task, parameters, inputs,
                            receipt, report, golden, digest, size_bytes)
    select 'model-' || i, version, pg_temp.id(2 * i + version), pg_temp.id(1), '', 'ridge', 'regression', '{{}}', '[]',
           '{{}}', '{{"test": [], "train": []}}', '{{}}', 'sha256:' || i, 1
    from generate_series(1, {MODELS}) i, generate_series(1, 2) version;
insert into aliases (model, alias, version, revision)
    select 'model-' || i, 'champion', 1, 1 from generate_series(1, {MODELS}) i;
insert into alias_moves (model, alias, version)
    select 'model-' || (1 + i % 3), 'alias-1', 1 from generate_series(1, {MOVES}) i;
"""
LISTS = {
    "jobs": "/v1/jobs",
    "jobs after": "/v1/jobs?cursor=00001000-0000-7000-8000-000000000000",
    "jobs of a name": "/v1/jobs?name=name-500",
    **{
        f"jobs {state}": f"/v1/jobs?state={state}"
        for state in ("queued", "running", "failed", "succeeded", "cancelled")
    },
    "jobs failed after": "/v1/jobs?state=failed&cursor=00004000-0000-7000-8000-000000000000",
    "one job": "/v1/jobs/name-500",
    "datasets": "/v1/datasets",
    "datasets after": "/v1/datasets?cursor=00000500-0000-7000-8000-000000000000",
    "datasets of a name": "/v1/datasets?name=table-7",
    "one dataset": "/v1/datasets/table-7",
    "models": "/v1/models",
    "models after": "/v1/models?cursor=model-3",
    "one model": "/v1/models/model-77",
    "versions": "/v1/versions",
    "versions after": "/v1/versions?cursor=9999999999999999.model-77.1",
    "versions of a model": "/v1/versions?model=model-77",
    "versions of a dataset": "/v1/versions?dataset=00000001-0000-7000-8000-000000000000",
    "history": "/v1/models/model-2/aliases/alias-1/history",
    "history after": "/v1/models/model-2/aliases/alias-1/history?cursor=5000",
}
IN_USE = UUID(int=(1 + JOBS % DATASETS << 96) | (0x7 << 76) | (0x8 << 60))
"""A dataset that the last of the queued jobs needs."""


def refused_deletion(w):
    with pytest.raises(DatasetInUse):
        w.datasets.delete(IN_USE)


ABLE = Capable(("train",), ("ridge",))
WHOLE_QUEUE = QUEUED + RUNNING
SWEEPS = {
    "waiting": (lambda w: w.jobs.waiting(), QUEUED),
    "next": (lambda w: w.leases.next(ABLE), LIMIT),
    "expired": (lambda w: w.leases.expired(0), RUNNING),
    "forgotten": (lambda w: w.jobs.forgotten(0, 0, 10), QUEUED),
    "counts of the queue": (lambda w: w.census.queue(), WHOLE_QUEUE),
    "deleting a dataset": (refused_deletion, WHOLE_QUEUE),
}
"""What is done, and how many rows it may read."""


@pytest.fixture(scope="module")
def large(database_factory):
    """An API on tables of many rows."""
    from app.composition.wiring import build
    from app.main import create_app

    settings = database_factory()
    services = build(settings, role="api")
    with services.work.engine.begin() as connection:
        connection.connection.driver_connection.execute(FILL)
    with services.work.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("vacuum analyze"))
    with TestClient(create_app(settings, services)) as client:
        yield services, client
    services.close()


@pytest.fixture
def plans(large):
    """`plans(act)`: the scans of large tables in the plans of all statements that `act` executes."""
    engine = large[0].work.engine

    def explained(act):
        executed = []

        def remember(_connection, _cursor, statement, parameters, _context, _many):
            executed.append((statement, parameters))

        event.listen(engine, "before_cursor_execute", remember)
        try:
            act()
        finally:
            event.remove(engine, "before_cursor_execute", remember)
        with engine.connect() as connection:
            for statement, parameters in executed:
                requested = f"explain (analyze, format json) {statement}"
                [[[plan]]] = connection.exec_driver_sql(requested, parameters).all()
                yield from (node for node in nodes(plan["Plan"]) if node.get("Relation Name") in LARGE)

    return explained


def nodes(plan, *, counts=False):
    """Each with whether it is below a count, as of the jobs that wait before those of a page."""
    counts = counts or plan["Node Type"] == "Aggregate"
    yield plan | {"Counts": counts}
    for part in plan.get("Plans", []):
        yield from nodes(part, counts=counts)


def rows_read(node):
    """By a scan, including those it threw away."""
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return (node["Actual Rows"] + removed) * node["Actual Loops"]


def check(scans, most):
    """most: rows that one of them may read."""
    assert scans
    for node in scans:
        seen = json.dumps({key: value for key, value in node.items() if key != "Plans"}, indent=1)
        assert node["Node Type"] != "Seq Scan", seen
        assert rows_read(node) <= most, seen


@pytest.mark.parametrize("path", LISTS.values(), ids=LISTS)
def test_a_list_reads_no_more_rows_than_it_shows(large, plans, path):
    def ask():
        response = large[1].get(path)
        assert response.status_code == 200, response.text

    found = list(plans(ask))
    check([node for node in found if not node["Counts"]], most=3 * LIMIT)
    counts = [node for node in found if node["Counts"]]  # the queue is counted once a page, not once a job
    assert len(counts) <= 1
    if counts:
        check(counts, most=QUEUED)


@pytest.mark.parametrize(("sweep", "most"), SWEEPS.values(), ids=SWEEPS)
def test_a_sweep_reads_the_queue_at_most(large, plans, sweep, most):
    def act():
        with large[0].work() as w:
            sweep(w)
            w.session.rollback()

    check(list(plans(act)), most)
