"""Backups of a service at work, restores that are refused, and restores that are killed."""

import os
import signal
import subprocess
import sys
import threading
import time

import psycopg
import pyarrow as pa
import pytest
from pydantic import SecretStr

from app.cli import main
from app.store.engine import make_engine
from app.store.unit_of_work import WorkFactory
from migrations.schema_revision import current, upgrade
from tests.clusters import address, administer, child, cluster, programs, server_on

pytestmark = pytest.mark.slow
TABLE = pa.table({"a": list(range(1000))})


@pytest.fixture(scope="module")
def server():
    with cluster(18) as (folder, _):
        administer(folder, "create role valiant login createrole")
        yield folder


@pytest.fixture
def database(server, monkeypatch, tmp_path, settings):
    """`database(name, revision)`: its address, once it is that of VALIANT_DATABASE_URL too."""
    monkeypatch.setenv("VALIANT_DATA", str(tmp_path))

    def use(name, revision="head"):
        with psycopg.connect(address(server), autocommit=True) as administrator:
            if not administrator.execute("select from pg_database where datname = %s", [name]).fetchall():
                administrator.execute(f"create database {name} owner valiant")
        url = address(server, "valiant", name)
        monkeypatch.setenv("VALIANT_DATABASE_URL", url)
        if revision:
            upgrade(url, revision)
        return url

    return use


def work_at(settings, url):
    engine = make_engine(settings.model_copy(update={"database_url": SecretStr(url)}), role="test")
    return WorkFactory(engine)


def add_datasets(settings, url, add_table, count=1):
    work = work_at(settings, url)
    try:
        return [add_table(work, TABLE, times=3) for _ in range(count)]
    finally:
        work.engine.dispose()


def ids_at(url):
    with psycopg.connect(url) as connection:
        connection.execute("set valiant.maintenance = 'on'")
        return {row[0] for row in connection.execute("select id from datasets")}


def test_refusals_change_nothing(database, settings, add_table, tmp_path, capsys):
    file = tmp_path / "file.dump"
    source = database("refused")
    added = {*add_datasets(settings, source, add_table, 2)}
    assert main(["backup", str(file)]) == 0
    assert oct(file.stat().st_mode)[-3:] == "600"
    assert not file.with_name("file.dump.part").exists()
    further = {*add_datasets(settings, source, add_table)}

    def refused(text, *options):
        capsys.readouterr()
        assert main(["restore", str(file), *options]) == 1
        assert text in capsys.readouterr().err
        assert ids_at(source) == added | further

    refused("is not empty (dataset_chunks, datasets)")
    with psycopg.connect(source, application_name="valiant-api"):
        refused("valiant-api (1)", "--replace")
    damaged = file.read_bytes()
    file.write_bytes(damaged[: len(damaged) // 2])
    refused("", "--replace")
    file.write_text("no backup")
    refused("pg_restore failed", "--replace")
    file.write_bytes(damaged)
    assert main(["restore", str(file), "--replace"]) == 0
    assert ids_at(source) == added
    with psycopg.connect(source) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    assert main(["backup", str(file)]) == 0
    capsys.readouterr()
    assert main(["restore", str(file), "--replace"]) == 1
    assert "revision 9999" in capsys.readouterr().err


def test_a_login_that_would_not_see_all_rows_makes_no_backup(database, settings, add_table, tmp_path, capsys):
    """Policies hide rows without an error."""
    file = tmp_path / "file.dump"
    source = database("hidden")
    add_datasets(settings, source, add_table)
    with psycopg.connect(source) as owner:
        owner.execute("drop policy maintenance on datasets")
    assert main(["backup", str(file)]) == 1
    assert "Table datasets lacks its policy maintenance" in capsys.readouterr().err
    assert not file.exists()
    assert main(["migrate"]) == 0
    assert main(["backup", str(file)]) == 0


def test_a_restore_that_is_killed_leaves_the_database_as_it_was(database, settings, add_table, tmp_path):
    file = tmp_path / "file.dump"
    source = database("killed")
    add_datasets(settings, source, add_table, 3)
    assert main(["backup", str(file)]) == 0
    later = ids_at(source) | {*add_datasets(settings, source, add_table, 2)}
    with psycopg.connect(source, autocommit=True) as watcher, psycopg.connect(source) as holder:
        holder.execute("lock table datasets in share mode")
        command = [sys.executable, "-m", "app.cli", "restore", str(file), "--replace"]
        process = subprocess.Popen(command, env=os.environ)
        waiting = "select pid from pg_stat_activity where application_name = 'psql' and wait_event_type = 'Lock'"
        while not watcher.execute(waiting).fetchall():
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        holder.rollback()
        while watcher.execute(
            "select from pg_stat_activity where application_name in ('psql', 'pg_restore')"
        ).fetchall():
            time.sleep(0.1)
    assert ids_at(source) == later
    assert main(["restore", str(file), "--replace"]) == 0
    assert len(ids_at(source)) == 3


def test_a_backup_under_load_is_whole(database, settings, add_table, tmp_path, capsys):
    file = tmp_path / "file.dump"
    source = database("loaded")
    work, stop = work_at(settings, source), threading.Event()

    def load():
        while not stop.is_set():
            add_table(work, TABLE, times=5)

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        while len(ids_at(source)) < 10:
            time.sleep(0.1)
        assert main(["backup", str(file)]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    work.engine.dispose()
    copy = database("copied", revision=None)
    capsys.readouterr()
    assert main(["restore", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "datasets: all of their bytes are there" in printed
    assert "FAULT" not in printed
    assert ids_at(copy)
    assert ids_at(copy) < ids_at(source)


def test_a_backup_of_the_release_before_is_migrated(database, settings, tmp_path):
    file = tmp_path / "file.dump"
    database("former", revision="0018")
    assert main(["backup", str(file)]) == 0
    copy = database("present")  # migrated, and empty
    assert main(["restore", str(file)]) == 0
    work = work_at(settings, copy)
    assert current(work.engine)
    work.engine.dispose()


def test_keys_that_were_revoked_since_are_named(database, settings, tmp_path, capsys):
    file = tmp_path / "file.dump"
    source = database("keyed")
    assert main(["keys", "create", "--role", "admin", "--name", "me"]) == 0
    assert main(["backup", str(file)]) == 0
    capsys.readouterr()
    assert main(["restore", str(file), "--replace"]) == 0
    assert "work again" in capsys.readouterr().out
    assert main(["restore", str(file), "--replace", "--revoke-keys"]) == 0
    assert "revoked: 1 keys" in capsys.readouterr().out
    with psycopg.connect(source) as connection:
        connection.execute("set valiant.maintenance = 'on'")
        assert connection.execute("select count(*) from api_keys where revoked_at is null").fetchone() == (0,)


def test_the_doctor_names_what_is_wrong(database, settings, add_table, capsys):
    source = database("ill")
    add_datasets(settings, source, add_table)
    assert main(["doctor"]) == 0
    with psycopg.connect(source) as connection:
        connection.execute("set valiant.maintenance = 'on'")
        connection.execute("delete from dataset_chunks where seq = 1")
    capsys.readouterr()
    assert main(["doctor"]) == 1
    assert "FAULT datasets: 1 lack some of their bytes." in capsys.readouterr().out


def test_a_server_is_restored_to_the_second_before_a_mistake(settings, add_table, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("VALIANT_DATA", str(tmp_path))
    with cluster(18, archive_mode="on") as (folder, server):
        archive, base = folder.own(folder.root / "archive"), folder.own(folder.root / "base")
        administer(folder, "create role valiant login createrole", "create database valiant owner valiant",
                   f"alter system set archive_command = 'cp %p {archive}/%f'", "select pg_reload_conf()")  # fmt: skip
        url = address(folder, "valiant", "valiant")
        monkeypatch.setenv("VALIANT_DATABASE_URL", url)
        assert main(["migrate"]) == 0
        copier = child(folder, programs(18) / "pg_basebackup", "-h", folder.sockets, "-U", "postgres", "-D", base)
        assert copier.process.wait() == 0
        before = {*add_datasets(settings, url, add_table, 2)}
        with psycopg.connect(address(folder), autocommit=True) as administrator:
            (moment,) = administrator.execute("select clock_timestamp()").fetchone()
            time.sleep(1)
            with psycopg.connect(url) as owner:
                owner.execute("set valiant.maintenance = 'on'")
                owner.execute("delete from datasets")
            (last,) = administrator.execute("select pg_walfile_name(pg_switch_wal())").fetchone()
            archived = "select last_archived_wal >= %s from pg_stat_archiver"
            while administrator.execute(archived, [last]).fetchone() != (True,):
                time.sleep(0.1)
        assert ids_at(url) == set()
        server.stop()
        with (base / "postgresql.auto.conf").open("a") as configuration:
            configuration.write(f"restore_command = 'cp {archive}/%f %p'\nrecovery_target_time = '{moment}'\n")
            configuration.write("recovery_target_action = 'promote'\n")
        (base / "recovery.signal").touch()
        with server_on(folder, programs(18), base):
            with psycopg.connect(address(folder), autocommit=True) as administrator:
                while administrator.execute("select pg_is_in_recovery()").fetchone() == (True,):
                    time.sleep(0.1)
            assert ids_at(url) == before
            capsys.readouterr()
            assert main(["migrate"]) == 0
            assert capsys.readouterr().out == ""
            assert main(["doctor"]) == 0
