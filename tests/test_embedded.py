"""The embedded stack: real servers that start, stop, and start again after anything."""

import psycopg


def connect(settings):
    return psycopg.connect(settings.database_url.get_secret_value().replace("+psycopg", ""), autocommit=True)


def test_shared_stack_is_migrated(settings):
    with connect(settings) as connection:
        assert connection.execute("select count(*) from datasets").fetchone() is not None


def test_postgres_comes_back_after_a_crash(stack_factory):
    stack = stack_factory()
    with connect(stack.settings) as connection:
        connection.execute("create table kept (x int)")
        connection.execute("insert into kept values (1)")
    for name in ("postgres", "broker", "cache"):
        stack.servers[name].kill()
        stack.servers[name].start()
    with connect(stack.settings) as connection:
        assert connection.execute("select x from kept").fetchall() == [(1,)]
