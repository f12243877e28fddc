"""The shortcut can be turned off, turns itself off beside a uvicorn it was not tested with, and changes no response."""

import socket
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from app.api import fast
from app.base.settings import Settings
from app.main import create_app
from tests.api.fast.test_connection import ROWS, normalised, read, request_of, serving


@pytest.fixture(scope="module")
def name(services, publish):
    made = f"s-{uuid4()}"
    publish(services.work, made)
    return made


def responses(settings, requests):
    with serving(create_app(settings)) as (port, _), socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(b"".join(requests))
        return normalised(read(line, len(requests)))


def test_both_positions_give_the_same_bytes(settings, name):
    requests = [
        request_of(name, ROWS),
        request_of(name, ROWS, path="predict?confidence=0.9"),
        request_of(name, {"columns": ["length"], "data": [["long"]]}),
        request_of(name, b"{"),
        request_of("nobody", ROWS),
        request_of(name, b"length,width,size\n5.1,0.2,small\n", "Content-Type: text/csv"),
    ]
    on, off = (responses(settings.model_copy(update={"fast_path": way}), requests) for way in (True, False))
    assert [response.partition(b"\r\n")[0] for response in on] == [response.partition(b"\r\n")[0] for response in off]
    assert [bodies(response) for response in on] == [bodies(response) for response in off]
    assert [sorted(heads(response)) for response in on] == [sorted(heads(response)) for response in off]


def heads(response):
    return response.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]


def bodies(response):
    return response.partition(b"\r\n\r\n")[2]


def test_the_switch_gives_the_frameworks_way(settings):
    app = create_app(settings.model_copy(update={"fast_path": False}))
    assert not app.fast
    assert app._at("/v1/models/m/predict") is None
    assert create_app(settings.model_copy(update={"fast_path": True}))._at("/v1/models/m/predict") is not None


def test_another_uvicorn_turns_it_off_with_a_warning(monkeypatch):
    monkeypatch.setattr(fast, "TESTED", ("0.1",))
    with capture_logs() as logs:
        assert not fast.is_on(Settings())
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("fast_path_off", "warning")]


def test_nothing_is_logged_where_it_was_not_wanted(monkeypatch):
    monkeypatch.setattr(fast, "TESTED", ())
    with capture_logs() as logs:
        assert not fast.is_on(Settings(fast_path=False))
    assert logs == []
