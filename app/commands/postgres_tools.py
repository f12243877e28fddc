"""Postgres's own tools, pg_dump, pg_restore and psql: those of the major of the server."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine, make_url

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.embedded.postgres import tool_folders
from app.store.engine import driver_url

CREATED = re.compile(r"^; Archive created at (\S+ \S+)", re.MULTILINE)
STAMP_ROWS = re.compile(r"^COPY public\.alembic_version .*\n(\w+)$", re.MULTILINE)
LAST_LINES = 5
"""Lines of a tool's messages that an error shows."""


class Archive(NamedTuple):
    """A backup: when it was made, and the revision of its schema."""

    created_at: datetime
    revision: str


class Tools(NamedTuple):
    """The tools of one server, and how to reach its database."""

    folder: Path
    address: str
    environment: dict[str, str]

    @classmethod
    def for_server(cls, settings: Settings, engine: Engine, *, embedded: bool) -> "Tools":
        """Raises StartFailed where the tools of the server's major are not on this machine."""
        assert settings.database_url is not None  # noqa: S101  callers have one
        with engine.connect() as connection:
            major = connection.exec_driver_sql("show server_version_num").scalar_one()
        url = make_url(driver_url(settings.database_url.get_secret_value()))
        environment = {
            name: value for name, value in os.environ.items() if not (embedded and name.startswith("PG"))
        } | {"TZ": "UTC", "LC_ALL": "C"}
        if url.password is not None:
            environment["PGPASSWORD"] = str(url.password)  # not in the address, which other users see
        environment["PGOPTIONS"] = (
            f"{environment.get('PGOPTIONS', '')} -c valiant.maintenance=on -c client_min_messages=warning".strip()
        )
        address = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
        return cls(find_folder(int(major) // 10_000), address, environment)

    def demand_maintenance(self) -> None:
        """Raises StartFailed where a pooler keeps the tools from seeing all rows: a dump would lack them silently."""
        if self._run("psql", "-XAtqc", "show valiant.maintenance", f"--dbname={self.address}").strip() != "on":
            raise StartFailed("A connection pooler drops options: give the address of the server itself.")

    def dump(self, file: Path) -> None:
        """Write the database into `file`, which is there."""
        self._run("pg_dump", "--enable-row-security", "--format=custom", f"--file={file}", f"--dbname={self.address}")

    def read_archive(self, file: Path) -> Archive:
        """Raises StartFailed where the file is not a backup that this server's tools can read."""
        created = CREATED.search(self._run("pg_restore", "--list", str(file)))
        stamp = STAMP_ROWS.search(self._run("pg_restore", "--data-only", "--table=alembic_version", "-f-", str(file)))
        if created is None or stamp is None:
            raise StartFailed(f"{file} is no backup of a database of Valiant.")
        return Archive(datetime.fromisoformat(created[1]).replace(tzinfo=UTC), stamp[1])

    def restore(self, file: Path, before: str) -> None:
        """Restore everything after the statements `before`, in one transaction. Raises StartFailed.

        The last word, COMMIT, is sent once pg_restore has ended well: whatever ends before, the database is unchanged.
        """
        psql = self._start("psql", "-Xqv", "ON_ERROR_STOP=1", f"--dbname={self.address}", stdin=subprocess.PIPE)
        assert psql.stdin is not None  # noqa: S101  a pipe
        failure = ""
        with suppress(BrokenPipeError), psql.stdin as statements:  # psql has ended, and its message is the reason
            statements.write(f"begin;\n{before}\n".encode())
            statements.flush()
            options = ("--no-owner", "--no-privileges", "--schema=public", "-f-")
            reader = self._start("pg_restore", *options, str(file), stdout=statements)
            message = reader.communicate()[1].decode(errors="replace")
            if reader.returncode == 0:
                statements.write(b"commit;\n")
            else:
                failure = message or "pg_restore was killed."
        psql.stdin = None
        message = psql.communicate()[1].decode(errors="replace")
        if psql.returncode or failure:
            raise StartFailed(f"{file} could not be restored; the database is as it was. {_shown(message or failure)}")

    def _run(self, program: str, *arguments: str) -> str:
        process = self._start(program, *arguments, stdout=subprocess.PIPE)
        printed, message = process.communicate()
        if process.returncode:
            raise StartFailed(f"{program} failed: {_shown(message.decode(errors='replace'))}")
        return printed.decode(errors="replace")

    def _start(self, program: str, *arguments: str, **pipes: object) -> "subprocess.Popen[bytes]":
        command = [str(self.folder / program), *arguments]
        return subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE, **pipes)  # type: ignore[call-overload, no-any-return]  # noqa: S603


def find_folder(major: int) -> Path:
    """The folder with the tools of this major. Raises StartFailed."""
    for folder in _folders(major):
        if (folder / "pg_restore").exists() and _major(folder / "pg_dump") == major:
            return folder
    raise StartFailed(
        f"pg_dump and pg_restore of PostgreSQL {major}, the major of the server, are not on this machine: install "
        f"postgresql-client-{major}, or add their folder to PATH."
    )


def _folders(major: int) -> Iterator[Path]:
    yield from tool_folders()
    if program := shutil.which("pg_dump"):
        yield Path(program).parent
    yield Path(f"/usr/lib/postgresql/{major}/bin")
    yield Path(f"/usr/pgsql-{major}/bin")


def _major(program: Path) -> int | None:
    try:
        shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r"(\d+)", shown.stdout)
    return None if version is None else int(version[1])


def _shown(message: str) -> str:
    return " ".join(" ".join(message.splitlines()[-LAST_LINES:]).split())
