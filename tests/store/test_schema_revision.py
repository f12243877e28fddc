import subprocess
import sys

import pytest
from alembic import command
from sqlalchemy import inspect, text

from app.store.engine import make_engine
from app.store.table_base import Base
from migrations import schema_revision


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
    names = ["dataset_chunks", "file_chunks", "job_chunks", "model_chunks", "training_row_chunks"]
    assert stored == [(name, "e") for name in names]


def test_the_command_line_of_alembic_finds_the_folder():
    heads = subprocess.run([sys.executable, "-m", "alembic", "heads"], capture_output=True, text=True, check=True)
    assert schema_revision.head() in heads.stdout
