"""The commands of the page on another major of Postgres, as printed: a server of 18 takes over from one of 15."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from migrations.schema_revision import upgrade
from tests.clusters import address, administer, cluster, programs
from tests.commands.test_backup_page import _dump_of, predictions, publish_one

PAGE = (Path(__file__).parents[2] / "app" / "docs" / "postgres-upgrade.md").read_text()
BLOCKS = [
    "\n".join(re.findall(r"^\$ (.*)$", text, re.MULTILINE))
    for text in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
]


@pytest.mark.slow
def test_a_server_of_a_later_major_takes_over(settings, publish, tmp_path):
    def at(folder):
        url = SecretStr(address(folder, "valiant", "valiant"))
        return settings.model_copy(update={"database_url": url, "cache_url": None})

    with cluster(15, wal_level="logical") as (old, _), cluster(18) as (new, _):
        administer(old, "create role valiant login createrole", "create database valiant owner valiant")
        upgrade(at(old).database_url.get_secret_value())
        before = publish_one(at(old), publish)
        addresses = {
            "OLD": address(old, database="valiant"),
            "NEW_ADMINISTRATOR": address(new),
            "NEW": address(new, database="valiant"),
            "DATABASE": address(new, "valiant", "valiant"),
            "FROM_NEW": f"host={old.sockets} dbname=valiant user=postgres",
            "VALIANT_DATA": str(tmp_path),
        }
        shell = {name: value for name, value in os.environ.items() if not name.startswith(("VALIANT_", "PG"))}
        folders = [Path(sys.executable).parent, _dump_of(15, tmp_path / "old"), programs(18)]
        shell["PATH"] = os.pathsep.join([*map(str, folders), os.environ["PATH"]])

        def run(script):
            command = ["timeout", "120", "bash", "-c", f"set -euo pipefail\n{script}"]
            done = subprocess.run(
                command, check=False, cwd=tmp_path, env=shell | addresses, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        first, second, third = BLOCKS
        run(first)
        run(second)
        with psycopg.connect(addresses["OLD"]) as connection:  # while it is replicated
            connection.execute("update model_versions set created_at = '2026-01-02'")
        printed = run(third)
        assert "FAULT" not in printed
        assert predictions(at(new)) == before
        with psycopg.connect(addresses["NEW"]) as connection:
            assert connection.execute(
                "select count(*) from model_versions where created_at = '2026-01-02'"
            ).fetchone() == (1,)
            assert connection.execute("select count(*) from pg_subscription").fetchone() == (0,)
