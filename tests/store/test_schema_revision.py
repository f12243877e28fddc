import subprocess
import sys
from uuid import uuid4

import psycopg
import pytest
from alembic import command
from pydantic import SecretStr
from sqlalchemy import inspect, make_url, text

from app.base.project_context import PROJECT
from app.base.settings import Settings
from app.cli import main
from app.embedded.stack import Stack
from app.store.base.table_base import Base
from app.store.engine import make_engine
from app.store.unit_of_work import WorkFactory
from migrations import schema_revision, security


def url(settings):
    return settings.database_url.get_secret_value()


@pytest.fixture
def empty(database_factory):
    return database_factory(migrated=False)


@pytest.fixture
def engine(empty):
    made = make_engine(empty, role="test")
    yield made
    made.dispose()


def test_the_migrations_make_what_the_tables_say(empty):
    schema_revision.upgrade(url(empty))
    command.check(schema_revision.config(url(empty)))


def test_a_table_nobody_migrated_is_noticed(empty, engine):
    schema_revision.upgrade(url(empty))
    with engine.begin() as connection:
        connection.execute(text("alter table jobs drop column message"))
    with pytest.raises(Exception, match="New upgrade operations"):
        command.check(schema_revision.config(url(empty)))


def test_down_and_up_again(empty, engine):
    assert not schema_revision.current(engine)
    schema_revision.upgrade(url(empty))
    assert schema_revision.current(engine)
    schema_revision.downgrade(url(empty), "base")
    assert not schema_revision.current(engine)
    assert set(inspect(engine).get_table_names()) == {"alembic_version"}
    schema_revision.upgrade(url(empty))
    assert schema_revision.current(engine)
    assert set(inspect(engine).get_table_names()) == {"alembic_version", *Base.metadata.tables}


def test_a_release_serves_on_the_schema_of_the_next(empty, engine):
    """Replicas of both run side by side while they are replaced one by one."""
    schema_revision.upgrade(url(empty))
    with engine.begin() as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    assert schema_revision.current(engine)
    with engine.begin() as connection:
        connection.execute(text("update alembic_version set version_num = '0001'"))
    assert not schema_revision.current(engine)


@pytest.mark.slow
def test_five_processes_at_once(empty, engine):
    program = "import sys; from migrations import schema_revision; schema_revision.upgrade(sys.argv[1])"
    racers = [
        subprocess.Popen([sys.executable, "-c", program, url(empty)], stderr=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    ends = [(racer.communicate(timeout=60)[1], racer.returncode) for racer in racers]
    assert [status for _, status in ends] == [0] * 5, ends
    assert schema_revision.current(engine)


def test_waiting_for_the_others_has_an_end(empty, engine):
    env = schema_revision.config(url(empty))
    env.attributes["patience"] = "200ms"
    with engine.connect() as holder:
        holder.execute(text("select pg_advisory_lock(:key)"), {"key": schema_revision.LOCK})
        with pytest.raises(Exception, match="lock timeout"):
            command.upgrade(env, "head")
    assert not schema_revision.current(engine)


def test_chunks_are_not_compressed_twice(database_factory):
    engine = make_engine(database_factory(), role="test")
    storage = "select attrelid::regclass::text, attstorage from pg_attribute where attname = 'payload' order by 1"
    with engine.connect() as connection:
        stored = [tuple(row) for row in connection.execute(text(storage)) if row[0].endswith("_chunks")]
    engine.dispose()
    names = ["dataset_chunks", "file_chunks", "job_chunks", "model_chunks", "training_row_chunks", "upload_chunks"]
    assert stored == [(name, "e") for name in names]


def test_the_command_line_of_alembic_finds_the_folder():
    heads = subprocess.run([sys.executable, "-m", "alembic", "heads"], capture_output=True, text=True, check=True)
    assert schema_revision.head() in heads.stdout


@pytest.fixture
def plain(settings):
    """A login that may create no roles, and its own database on the shared server: its address, and the administrator's
    connection."""
    own = make_url(url(settings))
    name = f"login_{uuid4().hex}"
    admin = own.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"create role {name} login")
        connection.execute(f"create database {name} owner {name}")
        yield own.set(username=name, database=name).render_as_string(hide_password=False), connection, name
        connection.execute(f"drop database {name} with (force)")
        connection.execute(f"drop role {name}")


@pytest.mark.slow
def test_a_login_without_the_roles_is_one_sentence(plain, settings, monkeypatch, capsys):
    schema_revision.upgrade(url(settings))  # the roles are there
    address, _, _ = plain
    monkeypatch.setenv("VALIANT_DATABASE_URL", address.replace("+psycopg", ""))
    assert main(["migrate"]) == 1
    message = capsys.readouterr().err
    assert all(f"grant {role} to {make_url(address).username}" in message for role in security.ROLES)


def test_a_plain_login_with_the_roles_keeps_projects_apart(plain, settings):
    address, administrator, name = plain
    administrator.execute(f"grant valiant_app, valiant_queue, valiant_owner to {name}")
    schema_revision.upgrade(address)
    assert seen_by_two_projects(settings, address) == [1, 1]


def test_a_login_that_makes_the_roles_can_take_them(data_folder):
    """From Postgres 16 on it would administer them alone."""
    with Stack(Settings(data=data_folder)) as stack:
        own = make_url(url(stack.settings))
        with psycopg.connect(url(stack.settings).replace("+psycopg", ""), autocommit=True) as administrator:
            administrator.execute("create role maker login createrole")
            administrator.execute("create database made owner maker")
        address = own.set(username="maker", database="made").render_as_string(hide_password=False)
        schema_revision.upgrade(address)
        assert seen_by_two_projects(stack.settings, address) == [1, 1]
        row = "insert into files (id, digest, size_bytes) values (gen_random_uuid(), 'd', 1)"
        with psycopg.connect(address.replace("+psycopg", "")) as owner:
            owner.execute("set valiant.maintenance = 'on'")
            owner.execute(row)
            owner.execute("reset valiant.maintenance")
            assert owner.execute("select count(*) from files").fetchone() == (0,)


def seen_by_two_projects(settings, address):
    engine = make_engine(settings.model_copy(update={"database_url": SecretStr(address)}), role="test")
    work, seen = WorkFactory(engine), []
    for project in (uuid4(), uuid4()):
        before = PROJECT.set(project)
        with work() as w:
            w.session.execute(text("insert into uses (data_digest, rows, times) values ('d', 'r', 1)"))
            seen.append(w.session.scalar(text("select count(*) from uses")))
        PROJECT.reset(before)
    engine.dispose()
    return seen


def test_the_owner_sees_rows_only_where_it_maintains_them(plain, settings):
    address, administrator, name = plain
    schema_revision.upgrade(url(settings))
    administrator.execute(f"grant valiant_app, valiant_queue, valiant_owner to {name}")
    schema_revision.upgrade(address)
    row = "insert into uses (project_id, data_digest, rows, times) values (%s, 'd', 'r', 1)"
    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as owner:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            owner.execute(row, [uuid4()])
        owner.execute("set valiant.maintenance = 'on'")
        owner.execute(row, [uuid4()])
        assert owner.execute("select count(*) from uses").fetchone() == (1,)
        owner.execute("set valiant.maintenance = 'off'")
        assert owner.execute("select count(*) from uses").fetchone() == (0,)
        owner.execute("set row_security = off")  # as a dump does that does not state it: better none than one half
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            owner.execute("select * from uses")
