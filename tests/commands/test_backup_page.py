"""The commands of the page Back up and restore, as printed: what predicted before predicts the same afterwards."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.embedded.stack import Stack
from app.main import create_app
from migrations.schema_revision import upgrade
from tests.clusters import address, administer, cluster, programs

PAGE = (Path(__file__).parents[2] / "app" / "docs" / "backup.md").read_text()
SECTIONS = {
    title: re.findall(r"^\$ (.*)$", "".join(re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)), re.MULTILINE)
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
}
"""Commands by section."""
ROWS = {
    "columns": ["length", "width", "size"],
    "data": [[5.1, 0.2, "small"], [6.9, 2.3, "large"], [None, 1.3, "small"]],
}


def run(section, folder, path=(), **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VALIANT_", "PG"))}
    search = os.pathsep.join([str(Path(sys.executable).parent), *map(str, path), os.environ["PATH"]])
    script = "\n".join(["set -euo pipefail", *SECTIONS[section]])
    done = subprocess.run(
        ["bash", "-c", script],
        check=False,
        cwd=folder,
        env=environment | variables | {"PATH": search},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def predictions(settings):
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        response = client.post("/v1/models/one/predict", json=ROWS)
        assert response.status_code == 200, response.text
        end = time.monotonic() + 20  # a check that takes longer than it is waited for is known at a later one
        while (readiness := client.get("/readyz")).status_code != 200:
            assert time.monotonic() < end, readiness.text
        return response.json()["predictions"], response.json()["probabilities"]


def publish_one(settings, publish):
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        publish(client.app.services.work, "one")
    return predictions(settings)


@pytest.mark.slow
def test_an_embedded_stack_is_restored_from_nothing(data_folder, publish):
    settings = Settings(data=data_folder / "var")
    with Stack(settings) as stack:
        upgrade(stack.settings.database_url.get_secret_value())
        before = publish_one(stack.settings, publish)
        assert run("Back up", data_folder).startswith("saved: ")  # while it runs
        running = run("Check", data_folder)
        assert "FAULT" not in running
    run("To a point in time", data_folder)
    printed = run("Restore on one machine", data_folder)
    assert "newest job" in printed
    with Stack(settings) as stack:
        assert predictions(stack.settings) == before
    run("Back up", data_folder)  # of a stopped one
    run("Check", data_folder)
    with Stack(Settings(data=data_folder / "var.saved")) as stack:
        assert predictions(stack.settings) == before


def _dump_of(major, folder):
    """A folder with `pg_dump` of this major alone: that of another may write what no server takes."""
    folder.mkdir()
    program = folder / "pg_dump"
    program.write_text(f'#!/bin/sh\nexec {programs(major) / "pg_dump"} "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("section", ["Restore on your servers", "With Postgres's own tools"])
@pytest.mark.parametrize("majors", [(15, 15), (15, 18), (18, 18)])
def test_a_new_server_is_filled_from_a_backup(section, majors, settings, publish, tmp_path):
    old, new = majors

    def at(folder):
        return settings.model_copy(
            update={"database_url": SecretStr(address(folder, "valiant", "valiant")), "cache_url": None}
        )

    with cluster(old) as (folder, server), cluster(new) as (other, _):
        administer(folder, "create role valiant login createrole", "create database valiant owner valiant")
        upgrade(at(folder).database_url.get_secret_value())
        before = publish_one(at(folder), publish)
        addresses = {
            "BEFORE": address(folder, "valiant", "valiant"),
            "DATABASE": address(other, "valiant", "valiant"),
            "ADMINISTRATOR": address(other),
        }
        if section == "Restore on your servers":
            run("Back up", tmp_path, VALIANT_DATABASE_URL=addresses["BEFORE"], VALIANT_DATA=str(tmp_path))
            server.stop()
        search = [_dump_of(old, tmp_path / "old"), programs(new)]
        printed = run(section, tmp_path, search, VALIANT_DATA=str(tmp_path), **addresses)
        assert "FAULT" not in printed
        assert predictions(at(other)) == before
