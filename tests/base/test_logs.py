"""Logs are read by programs, and by people who must not find a password in them."""

import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from app.base import logs
from app.base.settings import Settings

SECRET = "hunter2-canary"  # what must not be seen


@pytest.fixture
def logging_as_configured(capfd):
    """Call it, log, and call what it gives for the lines. (In the test itself: pytest changes stderr before each.)"""
    before, level = logging.root.handlers, logging.root.level

    def configure():
        logs.configure("INFO")
        return lambda: [json.loads(line) for line in capfd.readouterr().err.splitlines()]

    yield configure
    structlog.reset_defaults()
    logging.root.handlers = before
    logging.root.setLevel(level)


def test_one_json_object_a_line_whoever_writes(logging_as_configured):
    written = logging_as_configured()
    structlog.get_logger("ours").info("begun", count=1, odd=object, nothing=None)
    logging.getLogger("uvicorn.error").warning("started %s", "here")
    logging.getLogger("celery.task").error("two\nlines")
    structlog.get_logger().debug("not requested")
    logging.getLogger("any").debug("nor this")
    lines = written()
    assert [(line["event"], line["level"]) for line in lines] == [
        ("begun", "info"),
        ("started here", "warning"),
        ("two\nlines", "error"),
    ]
    assert lines[0]["count"] == 1
    assert all(line["timestamp"].endswith("Z") for line in lines)
    assert [line["logger"] for line in lines] == ["ours", "uvicorn.error", "celery.task"]


def test_ids_bound_at_the_edge_are_on_every_line(logging_as_configured):
    written = logging_as_configured()
    with structlog.contextvars.bound_contextvars(request_id="r-1", job_id="j-1"):
        structlog.get_logger("ours").info("a")
        logging.getLogger("sqlalchemy").warning("b")
    structlog.get_logger("ours").info("c")
    assert [line.get("request_id") for line in written()] == ["r-1", "r-1", None]


def test_an_exception_is_written_without_the_values_of_its_variables(logging_as_configured):
    written = logging_as_configured()

    def fail():
        password = SECRET
        raise ValueError(len(password))

    try:
        fail()
    except ValueError:
        structlog.get_logger("ours").exception("failed")
        logging.getLogger("theirs").exception("failed")
    text = json.dumps(written())
    assert text.count("ValueError: 14") == 2
    assert SECRET not in text


def test_passwords_within_addresses_are_struck_out(logging_as_configured):
    written = logging_as_configured()
    for url in (f"postgresql://user:{SECRET}@host/db", f"redis://:{SECRET}@host:1/0", f"amqp://u:{SECRET}:x@h//"):
        logging.getLogger("celery").error("Cannot connect to %s: refused", url)
        structlog.get_logger("ours").error("failed", address=url, nested={"url": [url]})
    text = json.dumps(written())
    assert SECRET not in text
    assert "postgresql://user:***@host/db" in text


def test_secrets_are_in_no_text_of_the_settings():
    address = f"postgresql://user:{SECRET}@host/db"
    settings = Settings(database_url=address, broker_url=address, cache_url=address)
    assert SECRET not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


def test_a_process_whose_servers_are_unreachable_keeps_its_passwords():
    """A process of its own with wrong addresses: everything it says, on both streams, is searched."""
    program = """
from app.base import logs
from app.base.settings import Settings
from app.main import create_app
from starlette.testclient import TestClient
logs.configure("DEBUG")
with TestClient(create_app(Settings()), base_url="http://localhost") as client:
    print(client.get("/readyz").text, client.get("/v1/jobs").status_code)
"""
    where = f"user:{SECRET}@127.0.0.1:1/0"
    environment = {
        "VALIANT_DATABASE_URL": f"postgresql://{where}",
        "VALIANT_BROKER_URL": f"redis://{where}",
        "VALIANT_CACHE_URL": f"redis://{where}",
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert "not_ready" in done.stdout
    assert done.stdout.split()[-1] == "503"
    assert "database" in done.stderr or "OperationalError" in done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_the_page_shows_a_line_as_it_is_written(logging_as_configured):
    page = (Path(__file__).parents[2] / "app" / "docs" / "logs.md").read_text()
    shown = json.loads(re.search(r"```json\n(.+?)\n```", page)[1])
    written = logging_as_configured()
    token = logs.IDS.set((shown["request_id"], shown["trace_id"]))
    facts = {name: shown[name] for name in ("route", "method", "model", "status", "ms")}
    logs.request(**facts)
    logs.IDS.reset(token)
    (line,) = written()
    assert line.keys() == shown.keys()
    assert {name: value for name, value in line.items() if name != "timestamp"} == {
        name: value for name, value in shown.items() if name != "timestamp"
    }


@pytest.mark.parametrize(("share", "lines"), [(0, range(1)), (0.5, range(350, 650)), (1, range(1000, 1001))])
def test_a_share_of_the_requests_that_succeed_is_logged_and_every_other(logging_as_configured, share, lines):
    logging_as_configured()
    logs.configure("INFO", request_share=share)
    assert sum(logs.logs_request(200) for _ in range(1000)) in lines
    assert all(logs.logs_request(status) for status in (400, 404, 429, 500, 503) for _ in range(100))
    logs.configure("INFO")
